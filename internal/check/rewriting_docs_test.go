package check

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page about rewriting says what becomes of its statements.
func TestRewritingPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/rewriting.md")
	require.NoError(t, err)
	p, err := NewPolicy(Table{Name: "orders", Mode: Lease, Rewrite: true, Columns: []string{"id", "status", "n", "last_token"}})
	require.NoError(t, err)
	sent := regexp.MustCompile("(?m)^\\| `(.*)` \\| `(.*)` \\|$").FindAllStringSubmatch(string(page), -1)
	require.Len(t, sent, 11)
	for _, row := range sent {
		plan := p.Plan(row[1])
		require.NoError(t, plan.Refusal(), row[1])
		require.Equal(t, row[2], plan.Text())
	}
	refused := regexp.MustCompile("(?m)^\\| `([^|]*)` \\| ([^`|]*) \\|$").FindAllStringSubmatch(string(page), -1)
	require.Len(t, refused, 7)
	for _, row := range refused {
		require.ErrorContains(t, p.Plan(row[1]).Refusal(), "(not rewritten: "+row[2], row[1])
	}
}
