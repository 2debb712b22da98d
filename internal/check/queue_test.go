package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// A query that chooses rows by their token takes the placeholder of the guard, or one of
// its own with tokenctx.Arg.
func TestTokenInASubselect(t *testing.T) {
	p, err := NewPolicy(Table{Name: "jobs", Mode: Lease, Rewrite: true}, Table{Name: "others", Mode: Lease, Resource: "r"})
	require.NoError(t, err)
	p = p.ForPath("postgres", "public")
	const guarded = ` AND last_token <= $1`
	for name, test := range map[string]struct {
		sql  string
		rule Rule
	}{
		"the guard's":          {`UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (SELECT id FROM jobs WHERE state = 'new' AND last_token <= $1 LIMIT 1 FOR UPDATE SKIP LOCKED)` + guarded, ""},
		"with an alias":        {`UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (SELECT j.id FROM jobs j WHERE $1 >= j.last_token)` + guarded, ""},
		"in WITH":              {`WITH next AS MATERIALIZED (SELECT id FROM jobs WHERE last_token <= $1 LIMIT 1) UPDATE jobs SET state = 'x', last_token = $1 FROM next WHERE jobs.id = next.id AND jobs.last_token <= $1`, ""},
		"another column":       {`UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (SELECT id FROM jobs WHERE id <= $1)` + guarded, TokenReuse},
		"another table":        {`UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (SELECT id FROM plain WHERE last_token <= $1)` + guarded, TokenReuse},
		"two tables":           {`UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (SELECT j.id FROM jobs j, plain WHERE last_token <= $1)` + guarded, TokenReuse},
		"an item of that name": {`WITH jobs AS (SELECT 'a' AS last_token, 1 AS id) UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (SELECT id FROM jobs WHERE last_token <= $1)` + guarded, TokenReuse},
		"renamed columns":      {`UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (SELECT a FROM jobs AS j(a, last_token) WHERE last_token <= $1)` + guarded, TokenReuse},
	} {
		t.Run(name, func(t *testing.T) {
			plan := p.Plan(test.sql)
			if test.rule != "" {
				require.Len(t, plan.Violations, 1)
				require.Equal(t, test.rule, plan.Violations[0].Rule)
				return
			}
			require.NoError(t, plan.Refusal())
			bound, err := plan.Bind(7, named(tokenctx.Arg))
			require.NoError(t, err)
			require.Equal(t, named(int64(7)), bound)
		})
	}
	plan := p.Plan(`UPDATE jobs SET state = 'x' WHERE id IN (SELECT id FROM jobs WHERE state = 'new' AND last_token <= $1 LIMIT 1 FOR UPDATE SKIP LOCKED)`)
	require.NoError(t, plan.Refusal())
	require.True(t, plan.Rewritten())
	bound, err := plan.Bind(7, named(tokenctx.Arg))
	require.NoError(t, err)
	require.Equal(t, []any{int64(7), int64(7)}, []any{bound[0].Value, bound[1].Value})
	bound, err = plan.Bind(7, named(5))
	require.NoError(t, err, "it may be another number")
	require.Equal(t, 5, bound[0].Value)
}
