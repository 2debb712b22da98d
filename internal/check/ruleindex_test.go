package check

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/rules.md is made from the table of rules.
func TestRuleIndex(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Rules\n\nWhy fencerow refuses a statement. Ids are never reused: FR1xx unproven writes, FR2xx statements that can't be\nguarded, FR3xx tokens and arguments, FR9xx texts and sessions that can't be analysed.\n\n| rule | name | refuses |\n|---|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| [%s](../rewrite/rules/%s.md) | %s | %s |\n", r.ID, r.ID, r.Slug, strings.ReplaceAll(r.Summary, "|", `\|`))
	}
	const index = "../../docs/rules.md"
	if *update {
		require.NoError(t, os.WriteFile(index, []byte(b.String()), 0o600))
	}
	got, err := os.ReadFile(index)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "run go test ./internal/check -run TestRuleIndex -update")
}
