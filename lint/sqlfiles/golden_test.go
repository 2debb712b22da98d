package sqlfiles

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// notShown are the rules that no file can break although a decision is made for them.
var notShown = []rewrite.Rule{rewrite.SeveralStatements, rewrite.UnknownNode, rewrite.CheckerPanic, rewrite.UnsafePath}

// ruleLine is a line of the rules' own data.
type ruleLine struct {
	Expect, Mode, SQL string
	Closure           rewrite.Closure
	Without           []string
	Bytes             []byte
	Repeat            *struct {
		Prefix, Unit, Suffix string
		Count                int
	}
}

func (l ruleLine) text() string {
	switch {
	case l.Bytes != nil:
		return string(l.Bytes)
	case l.Repeat != nil:
		return l.Repeat.Prefix + strings.Repeat(l.Repeat.Unit, l.Repeat.Count) + l.Repeat.Suffix
	}
	return l.SQL
}

// policy protects what the data is about.
func (l ruleLine) policy(t *testing.T) *rewrite.Policy {
	t.Helper()
	mode, err := rewrite.ParseMode(l.Mode)
	require.NoError(t, err)
	p, err := rewrite.NewPolicy(
		rewrite.Table{Name: "protected_rows", Mode: mode, Key: []string{"id"}},
		rewrite.Table{Schema: "app", Name: "accounts", Mode: mode},
		rewrite.Table{Name: "accounts_child", Mode: mode},
		rewrite.Table{Name: "Order Items", TokenColumn: "fence", Mode: mode},
	)
	require.NoError(t, err)
	l.Closure.Views = append(l.Closure.Views, rewrite.Name{Schema: "public", Name: "v_rows"})
	l.Closure.Cascades = append(l.Closure.Cascades,
		rewrite.Cascade{Name: rewrite.Name{Schema: "app", Name: "accounts"}, Into: rewrite.Name{Schema: "public", Name: "accounts_child"},
			Delete: true})
	p, err = p.WithClosure(l.Closure)
	require.NoError(t, err)
	return p
}

// What a file is told by each rule that it can break: the first statement of
// the rule's data that does.
func TestMessages(t *testing.T) {
	var b strings.Builder
	for _, info := range rewrite.Rules() {
		if info.ID == rewrite.BadSuppression {
			continue // it has no data, see TestSuppressions
		}
		message := ruleMessage(t, info.ID)
		cannot := decide(info.ID).verdict == absent || slices.Contains(notShown, info.ID)
		require.Equal(t, cannot, message == "", info.ID)
		if message != "" {
			b.WriteString(message + "\n\n")
		}
	}
	const golden = "testdata/messages.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "run go test ./lint/sqlfiles -run TestMessages -update, and read the difference")
}

func ruleMessage(t *testing.T, rule rewrite.Rule) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("../../internal/check/testdata/rules/%s.jsonl", rule))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	for text := range strings.Lines(string(data)) {
		var l ruleLine
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		slow := len(l.text()) > 4<<20 && len(l.Repeat.Unit) > 1 // many tokens
		if l.Expect != "refuse" || l.Without != nil || slow {
			continue
		}
		linter := &linter{Config: Config{Policy: l.policy(t)}, result: &Result{Unparsed: map[string]int{}}}
		linter.lintText(string(rule)+".sql", "-- name: Query :exec\n"+l.text()+";\n", false)
		for _, f := range linter.result.Findings {
			if f.Rule == rule {
				return f.String()
			}
		}
	}
	return ""
}
