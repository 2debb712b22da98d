package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// With every table that a library writes protected and rewritten, its writing
// statements are sent as they are, sent in another form, or refused. What is
// refused stands in testdata/refused.golden, with the rule and its words.
func TestCapturedStatementsRewritten(t *testing.T) {
	files, err := filepath.Glob("testdata/captured/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var golden strings.Builder
	for _, file := range files {
		writing, policy := writingStatements(t, file)
		same, rewritten := 0, 0
		var refused []string
		for _, sql := range writing {
			plan := policy.Plan(sql)
			switch {
			case len(plan.Violations) > 0:
				v := plan.Violations[0]
				refused = append(refused, fmt.Sprintf("  %s %s: %s\n      %s\n", v.Rule, v.Rule.Slug(), strings.Join(strings.Fields(sql), " "), v.Message))
			case plan.Text() != sql:
				rewritten++
				require.True(t, plan.Guarded(), sql)
				require.Equal(t, plan.Text(), policy.Plan(plan.Text()).Text(), "what was rewritten is left alone")
			default:
				same++
				require.True(t, plan.Guarded(), "it writes a protected table: %s", sql)
			}
		}
		slices.Sort(refused)
		fmt.Fprintf(&golden, "%s: %d writing statements, %d sent as they are, %d rewritten, %d refused\n%s\n",
			strings.TrimSuffix(filepath.Base(file), ".jsonl"), len(writing), same, rewritten, len(refused), strings.Join(refused, ""))
	}
	const path = "testdata/refused.golden"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(golden.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String(), "run go test ./internal/check -run TestCapturedStatementsRewritten -update, and read the difference")
}

// writingStatements returns the texts of a file that write rows, and a policy
// that protects all tables which they write.
func writingStatements(t *testing.T, file string) (writing []string, p *Policy) {
	t.Helper()
	var tables []Table
	for _, s := range readStatements(t, file) {
		stmts, err := sqltree.Parse(s.SQL)
		require.NoError(t, err)
		before := len(tables)
		for _, stmt := range stmts {
			tables = append(tables, targets(stmt)...)
		}
		if len(tables) > before {
			writing = append(writing, s.SQL)
		}
	}
	slices.SortFunc(tables, func(a, b Table) int { return strings.Compare(a.Schema+"."+a.Name, b.Schema+"."+b.Name) })
	p, err := NewPolicy(slices.CompactFunc(tables, func(a, b Table) bool { return a.Schema == b.Schema && a.Name == b.Name })...)
	require.NoError(t, err)
	return writing, p
}

// targets returns the tables that are written below n.
func targets(n *sqltree.Node) (tables []Table) {
	if slices.Contains([]string{"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"}, n.Kind()) {
		rel := n.Get("relation")
		tables = append(tables, Table{Schema: rel.Str("schemaname"), Name: rel.Str("relname"), Mode: Lease, Rewrite: true})
	}
	for _, k := range n.Kids {
		tables = append(tables, targets(k)...)
	}
	return tables
}
