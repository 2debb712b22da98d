package sqlfiles

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/rewrite"
)

var update = flag.Bool("update", false, "write the golden files anew")

func ordersPolicy(t *testing.T) *rewrite.Policy {
	t.Helper()
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease})
	require.NoError(t, err)
	return policy
}

// lintText checks a text as a file of that name.
func lintText(t *testing.T, name, text string) *Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	result, err := Lint(t.Context(), Config{Policy: ordersPolicy(t)}, file)
	require.NoError(t, err)
	for i := range result.Findings {
		result.Findings[i].Path = name
	}
	return result
}

// places lists findings as line:column rule.
func places(findings []lint.Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Rule))
	}
	return out
}

// statementsOf lists the statements of a file, each on one line.
func statementsOf(f *file) []string {
	out := []string{}
	for _, s := range f.statements {
		text := f.code[f.tokens[s.first].Start:f.tokens[s.last].End]
		out = append(out, strings.Join(strings.Fields(text), " "))
	}
	return out
}
