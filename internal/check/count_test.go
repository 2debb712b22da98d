package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// countedWrite is a protected write in WITH, and what it is sent as: [1] stands for what
// it returns, and [2] for the count.
func TestCounts(t *testing.T) {
	const (
		write   = `UPDATE protected_rows SET value = 'x', last_token = $1 WHERE id = 1 AND last_token <= $1`
		returns = write + ` RETURNING id`
		column  = `(SELECT pg_catalog.count(*) FROM paid) AS fencerow_count_1`
	)
	for name, test := range map[string]struct {
		sql, sent string // sent is "" where the count has no place
		hides     bool
	}{
		"independent":        {`WITH paid AS (` + write + `) INSERT INTO plain_rows (id) VALUES (1)`, `WITH paid AS (` + write + ` RETURNING 1) INSERT INTO plain_rows (id) VALUES (1) RETURNING ` + column, true},
		"dependent":          {`WITH paid AS (` + returns + `) INSERT INTO plain_rows (id) SELECT id FROM paid`, `WITH paid AS (` + returns + `) INSERT INTO plain_rows (id) SELECT id FROM paid RETURNING ` + column, true},
		"returning":          {`WITH paid AS (` + returns + `) INSERT INTO plain_rows (id) SELECT id FROM paid RETURNING id -- why`, `WITH paid AS (` + returns + `) INSERT INTO plain_rows (id) SELECT id FROM paid RETURNING id, ` + column + ` -- why`, false},
		"a query":            {`WITH paid AS (` + returns + `) SELECT id FROM paid WHERE id > 0;`, `WITH paid AS (` + returns + `) SELECT id, ` + column + ` FROM paid WHERE id > 0;`, false},
		"a query's total":    {`WITH paid AS (` + returns + `) SELECT count(*) FROM paid`, `WITH paid AS (` + returns + `) SELECT count(*), ` + column + ` FROM paid`, false},
		"a query of nothing": {`WITH paid AS (` + write + `) SELECT 1`, `WITH paid AS (` + write + ` RETURNING 1) SELECT 1, ` + column, false},
		"DISTINCT":           {`WITH paid AS (` + returns + `) SELECT DISTINCT ON (id) id FROM paid ORDER BY 1`, `WITH paid AS (` + returns + `) SELECT DISTINCT ON (id) id, ` + column + ` FROM paid ORDER BY 1`, false},
		"GROUP BY":           {`WITH paid AS (` + returns + `) SELECT id FROM paid GROUP BY id`, `WITH paid AS (` + returns + `) SELECT id, ` + column + ` FROM paid GROUP BY id`, false},
		"another update":     {`WITH paid AS (` + write + `) UPDATE plain_rows SET value = 'x' WHERE id = 1`, `WITH paid AS (` + write + ` RETURNING 1) UPDATE plain_rows SET value = 'x' WHERE id = 1 RETURNING ` + column, true},
		"a delete":           {`WITH paid AS (` + write + `) DELETE FROM plain_rows`, `WITH paid AS (` + write + ` RETURNING 1) DELETE FROM plain_rows RETURNING ` + column, true},
		"an upsert":          {`WITH paid AS (INSERT INTO protected_rows (id, last_token) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE protected_rows.last_token <= $1) SELECT 1 AS one`, `WITH paid AS (INSERT INTO protected_rows (id, last_token) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE protected_rows.last_token <= $1 RETURNING 1) SELECT 1 AS one, ` + column, false},
		"UNION":              {`WITH paid AS (` + returns + `) SELECT id FROM paid UNION SELECT 1`, "", false},
		"VALUES":             {`WITH paid AS (` + write + `) VALUES (1)`, "", false},
		"TABLE":              {`WITH paid AS (` + returns + `) TABLE paid`, "", false},
		"in brackets":        {`WITH paid AS (` + returns + `) (SELECT id FROM paid)`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := attestPolicy(t, Lease).Plan(test.sql)
			require.NoError(t, plan.Refusal())
			require.Len(t, plan.Parts(), 1)
			require.False(t, plan.Parts()[0].IsMain)
			require.False(t, plan.Direct())
			if test.sent == "" {
				require.Equal(t, test.sql, plan.Attested())
				require.Equal(t, Counts{}, plan.Counts())
				return
			}
			require.Equal(t, test.sent, plan.Attested())
			require.Equal(t, Counts{Columns: []int{0}, HidesRows: test.hides}, plan.Counts())
			require.NotEmpty(t, plan.Looks()[0].Highest)
		})
	}
}

// A count has an item of WITH run before the statement's own write has ended, which may
// decide which of two writes to one row wins: then there is none.
func TestCountsOfWritesThatMayMeet(t *testing.T) {
	const item = `WITH w AS (DELETE FROM protected_rows WHERE last_token < $1) `
	p := attestPolicy(t, Strict)
	for sql, isCounted := range map[string]bool{
		item + `UPDATE protected_rows SET value = 'x', last_token = $1 WHERE last_token < $1`:                          false,
		item + `UPDATE ONLY public.protected_rows r SET value = 'x', last_token = $1 WHERE id = 1 AND last_token < $1`: false,
		item + `UPDATE metrics SET v = 1, last_token = $1 WHERE last_token < $1`:                                       true,
		item + `UPDATE plain_rows SET value = 'x'`:                                                                     true,
		item + `SELECT 1`: true,
	} {
		plan := p.Plan(sql)
		require.NoError(t, plan.Refusal())
		require.Equal(t, isCounted, len(plan.Counts().Columns) > 0, sql)
	}
}
