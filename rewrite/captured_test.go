package rewrite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refusedCaptures are the captured statements that are refused although they
// touch no protected table, with the reason. Their white space is that of one line.
var refusedCaptures = map[string]Rule{
	"DISCARD TEMP": SQLPrepare, // every DISCARD is: ALL removes statements under their names

	// MERGE by a bare name that app.accounts has as well: what it inserts has no place for a gate
	mergeAccounts + `THEN UPDATE SET balance = _data.balance WHEN NOT MATCHED THEN INSERT ("id", "owner", "balance", "version") VALUES (DEFAULT, _data.owner, _data.balance, 0);`:                                                                                                                      UnguardedMerge,
	mergeAccounts + `AND a.balance < 0 THEN DELETE WHEN NOT MATCHED THEN DO NOTHING;`:                                                                                                                                                                                                                  CascadeWrite,
	`MERGE INTO accounts a USING (VALUES ($1::bigint, $2::bigint)) AS s(id, delta) ON s.id = a.id WHEN MATCHED AND a.balance + s.delta < 0 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET balance = a.balance + s.delta WHEN NOT MATCHED THEN INSERT (id, owner, balance) VALUES (s.id, 'new', s.delta)`: UnguardedMerge,

	// several statements, one of which inserts into accounts by its bare name: a gate is added to single statements
	"CREATE TABLE users ( id bigint GENERATED ...": UnguardedInsert,
}

const mergeAccounts = `WITH "_data" ("id", "owner", "balance", "version") AS (VALUES (1::BIGINT, 'ann'::VARCHAR, 1::BIGINT, 0::BIGINT), (77::BIGINT, 'new'::VARCHAR, 2::BIGINT, 0::BIGINT)) MERGE INTO "accounts" AS "a" USING _data ON "a".id = _data.id WHEN MATCHED `

// captureKey returns a text on one line, and of a script its beginning.
func captureKey(sql string) string {
	words := strings.Fields(sql)
	if strings.Count(sql, ";") > 1 {
		words = append(words[:min(len(words), 7)], "...")
	}
	return strings.Join(words, " ")
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
			if other, _ := plan.Elsewhere(); other != nil {
				plan = other
				gated++
			}
			if rule, ok := refusedCaptures[captureKey(s.SQL)]; ok {
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
