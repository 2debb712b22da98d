package check

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refusedCaptures are the captured statements that are refused although they
// touch no protected table, with the reason. Their white space is that of one line.
var refusedCaptures = map[string]Rule{}

// meaningOther are the answers of a server on which shared names mean tables that
// aren't protected.
func meaningOther(s *Shared) []string {
	answers := make([]string, len(s.names))
	for i, name := range s.names {
		n := s.policy.namesakes[name][0]
		answers[i] = fmt.Sprintf("=%d %s", n.OID, n.Schema)
	}
	return answers
}

// What real libraries send to tables that aren't protected must pass, by the
// quick way out or by the full check.
func TestCapturedStatementsPass(t *testing.T) {
	files, err := filepath.Glob("testdata/captured/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	p := casesPolicy(t, Strict)
	tried, quick, refused, gated := 0, 0, 0, 0
	for _, file := range files {
		for _, s := range readStatements(t, file) {
			tried++
			plan := p.Plan(s.SQL)
			if plan.Cleared {
				plan = p.fullPlan(s.SQL)
			}
			if shared := plan.Shared(); shared != nil {
				plan = shared.Plan(meaningOther(shared))
				gated++
			}
			if rule, ok := refusedCaptures[strings.Join(strings.Fields(s.SQL), " ")]; ok {
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
	t.Logf("tried %d, refused %d, cleared by the quick way out %d, sent with a gate %d", tried, refused, quick, gated)
}
