package rewrite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// refusedCaptures are the captured statements that are refused although they
// touch no protected table, with the reason.
var refusedCaptures = map[string]Rule{
	"DISCARD TEMP": SQLPrepare, // every DISCARD is: ALL removes statements under their names
}

// What real libraries send to tables that aren't protected must pass, by the
// quick way out or by the full check.
func TestCapturedStatementsPass(t *testing.T) {
	files, err := filepath.Glob("testdata/captured/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	p := casesPolicy(t, Strict)
	tried, quick, refused := 0, 0, 0
	for _, file := range files {
		for _, s := range readStatements(t, file) {
			tried++
			plan := p.fullPlan(s.SQL)
			if rule, ok := refusedCaptures[s.SQL]; ok {
				refused++
				require.Equal(t, rule, plan.Violations[0].Rule)
				continue
			}
			require.NoError(t, plan.Refusal(), "%s: %s", filepath.Base(file), s.SQL)
			require.False(t, plan.Guarded())
			if p.clears(s.SQL) {
				quick++
			}
		}
	}
	require.Equal(t, len(refusedCaptures), refused)
	t.Logf("tried %d, refused %d, cleared by the quick way out %d", tried, refused, quick)
}
