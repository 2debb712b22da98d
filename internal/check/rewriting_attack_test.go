package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// A token must not take the place of a value that rows hang on: those sources are
// refused.
func TestAttackChoosesRows(t *testing.T) {
	p := rewritingPolicy(t, Lease)
	for _, sql := range []string{
		`INSERT INTO orders (status, last_token) SELECT DISTINCT status, last_token FROM s`,
		`INSERT INTO orders (status, last_token) SELECT DISTINCT ON (status, 2) status, last_token FROM s`,
		`INSERT INTO orders (status, last_token) SELECT DISTINCT ON (status) status, last_token FROM s ORDER BY status, 2 DESC`,
		`INSERT INTO orders (status, last_token) SELECT 'x', max(last_token) FROM s`,
		`INSERT INTO orders (status, last_token) SELECT 'x', coalesce(max(last_token), 0) + 1 FROM s`,
		`INSERT INTO orders (status, last_token) SELECT 'x', (SELECT max(s.last_token)) FROM s`,
		`INSERT INTO orders (status, last_token) SELECT 'x', generate_series(1, 3)`,
		`INSERT INTO orders (status, last_token) VALUES ('x', generate_series(1, 3))`,
		`INSERT INTO orders (status, last_token) SELECT status, last_token FROM s ORDER BY 2 LIMIT 1`,
		`INSERT INTO orders (status, last_token) SELECT status, -prio AS last_token FROM s ORDER BY last_token LIMIT 1`,
		`INSERT INTO orders (status, last_token) SELECT status, -prio AS t FROM s ORDER BY t DESC LIMIT 1`,
		`INSERT INTO orders (n, last_token) SELECT count(*), last_token FROM s GROUP BY 2`,
		`INSERT INTO orders (n, last_token) SELECT count(*), prio AS t FROM s GROUP BY t`,
		`INSERT INTO orders (n, last_token) SELECT count(*), prio AS t FROM s GROUP BY ROLLUP (status, t)`,
		`INSERT INTO orders (id, last_token) VALUES (1, 5), (2, 3) ORDER BY 2 LIMIT 1`,
		`INSERT INTO orders (id, last_token) VALUES (1, 5), (2, 3) ORDER BY column2 LIMIT 1`,
	} {
		require.False(t, p.Plan(sql).Rewritten(), sql)
		_, err := p.Plan(sql).BindAll(tokenctx.With(t.Context(), 8), nil)
		require.ErrorIs(t, err, ErrRefused, sql)
	}
	for _, sql := range []string{
		`INSERT INTO orders (status, last_token) SELECT status, last_token FROM s ORDER BY last_token LIMIT 1`,
		`INSERT INTO orders (status, last_token) SELECT status, last_token FROM s ORDER BY 1 LIMIT 1`,
		`INSERT INTO orders (status, last_token) SELECT DISTINCT status, 0 FROM s`,
		`INSERT INTO orders (status, last_token) SELECT DISTINCT ON (status) status, s.last_token FROM s ORDER BY status`,
		`INSERT INTO orders (status, last_token) SELECT status, nextval('q') FROM s`,
		`INSERT INTO orders (status, last_token) SELECT status, last_token FROM s GROUP BY status, last_token`,
		`INSERT INTO orders (status, last_token) SELECT DISTINCT status, $1::bigint FROM s`,
	} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
		require.True(t, p.Plan(sql).Rewritten(), sql)
	}
}

// VALUES with clauses of its own is a query, whose placeholders have to be typed.
func TestAttackValuesWithClauses(t *testing.T) {
	p := rewritingPolicy(t, Lease)
	for _, sql := range []string{
		`INSERT INTO orders (id) VALUES (1), (2) LIMIT 1`,
		`INSERT INTO orders (id) VALUES (1), (2) ORDER BY 1`,
		`INSERT INTO orders (id) VALUES (1), (2) OFFSET 1`,
	} {
		require.Contains(t, p.Plan(sql).Text(), `VALUES (1, $1::bigint), (2, $1::bigint)`, sql)
	}
}

// What is added doesn't run into the word behind it, which the server refuses and
// the parser reads as it is meant.
func TestAttackWordsBehind(t *testing.T) {
	p := rewritingPolicy(t, Lease)
	for _, sql := range []string{
		`UPDATE orders SET status='x'WHERE id=1`,
		`UPDATE orders SET n=(n+1)WHERE id=(1)RETURNING id`,
		`UPDATE orders SET n=(n+1)FROM s WHERE s.id=(1)`,
		`DELETE FROM orders WHERE id=(1)RETURNING id`,
		`INSERT INTO orders (id) VALUES (1)ON CONFLICT(id)DO UPDATE SET status='x'RETURNING id`,
		`INSERT INTO orders (status) SELECT 'x'FROM s`,
		`INSERT INTO orders (status) SELECT 'x'WHERE true`,
		`INSERT INTO orders (last_token) SELECT-7`,
	} {
		plan := p.Plan(sql)
		require.NoError(t, plan.Refusal(), sql)
		require.True(t, plan.Rewritten(), sql)
		for _, word := range []string{"WHERE", "RETURNING", "FROM", "NULL", "last_token", "bigint", "$1"} {
			for _, part := range strings.Split(plan.Attested(), word)[1:] {
				require.False(t, part != "" && part[0] >= 'A' && part[0] <= 'Z', "%s: %s", word, plan.Attested())
			}
		}
		if strings.HasPrefix(sql, "DELETE") {
			require.NotEqual(t, plan.Text(), plan.Attested(), "the wall needs the token of a DELETE")
		}
	}
	plan := p.Plan(`DELETE FROM orders WHERE last_token <= ($1)RETURNING id`)
	require.Contains(t, plan.Attested(), "IS NOT NULL RETURNING id")
}

// Behind a star nothing has a certain place: the token stands before it.
func TestAttackStars(t *testing.T) {
	p := rewritingPolicy(t, Lease)
	for sql, want := range map[string]string{
		`INSERT INTO orders (id, status) SELECT * FROM unnest($1::bigint[], $2::text[])`:                                      `INSERT INTO orders (last_token, id, status) SELECT $3::bigint, * FROM unnest($1::bigint[], $2::text[])`,
		`INSERT INTO orders (id, status) SELECT*FROM s`:                                                                       `INSERT INTO orders (last_token, id, status) SELECT $1::bigint, *FROM s`,
		`INSERT INTO items (order_id, n) SELECT ALL s.* FROM s ORDER BY s.id LIMIT 1`:                                         `INSERT INTO items ("Fence", order_id, n) SELECT ALL $1::bigint, s.* FROM s ORDER BY s.id LIMIT 1`,
		`INSERT INTO orders (id, status) SELECT r.id, (r.x).* FROM r ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status`: `INSERT INTO orders (last_token, id, status) SELECT $1::bigint, r.id, (r.x).* FROM r ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`,
	} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
		require.Equal(t, want, p.Plan(sql).Text())
	}
	for _, sql := range []string{
		`INSERT INTO orders (id, status) SELECT DISTINCT * FROM s`,
		`INSERT INTO orders (id, status) SELECT * FROM s ORDER BY 1 LIMIT 1`,
		`INSERT INTO orders (id, status) SELECT * FROM s GROUP BY 1, 2`,
		`INSERT INTO orders (id, status) SELECT * FROM s GROUP BY GROUPING SETS ((1, 2), (1))`,
		`INSERT INTO orders (id, status) SELECT * FROM s UNION SELECT 1, 'x'`,
	} {
		require.Error(t, p.Plan(sql).Refusal(), sql)
	}
}

// Whoever writes too many rows at once for a text to be rewritten hears of that.
func TestAttackLongTexts(t *testing.T) {
	plan := rewritingPolicy(t, Lease).Plan(`INSERT INTO orders (id, status) VALUES (1, '` + strings.Repeat("x", maxRewritten) + `')`)
	require.ErrorContains(t, plan.Refusal(), "write fewer rows at once")
}
