package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

func TestMain(m *testing.M) { localpg.Main(m) }

func TestReport(t *testing.T) {
	list := []skip{{name: "TestA", reason: "not built yet"}, {name: "TestB", reason: "design forbids", only: checkAll}}
	var out strings.Builder
	require.NoError(t, report(&out, []tally{{run: "pgx alone", passed: 3}, {run: "fencerow", passed: 2, skipped: 1}}, list))
	require.Equal(t, `tests, by exec mode  passed  failed  skipped
pgx alone            3       0       0
fencerow             2       0       1

skipped  reason
TestA    not built yet
TestB    design forbids
         (fencerow, every statement parsed)
`, out.String())

	out.Reset()
	err := report(&out, []tally{{run: "fencerow", failed: 1, problems: []string{"TestC fails"}}}, nil)
	require.ErrorContains(t, err, "as they should: 1")
	require.Contains(t, out.String(), "\nTestC fails\n")
}

// TestCheckAll makes sure of what the names of the last runs say.
func TestCheckAll(t *testing.T) {
	var tables []rewrite.Table
	for _, name := range words {
		tables = append(tables, rewrite.Table{Name: name, Mode: rewrite.Strict})
	}
	policy, err := check.NewPolicy(tables...)
	require.NoError(t, err)
	for _, sql := range []string{"select 1", "insert into t values($1)", "update t set a = $1", "show transaction_isolation", "create temporary table t(a int)"} {
		plan := policy.Plan(sql)
		require.False(t, plan.Cleared, sql)
		require.NoError(t, plan.Refusal(), sql)
	}
}

func TestProtect(t *testing.T) {
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			require.NoError(t, protect(context.Background(), localpg.Database(t), r, []string{"t", "docs"}))
		})
	}
}
