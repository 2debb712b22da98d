package driver_test

import (
	"database/sql"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// sourceAction is what an upsert does where the row is there.
const sourceAction = ` ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token <= $1`

// countedSources are upserts of the rows that a table gives, whose number comes along with
// the statement. Rows 1 to 3 are there, and row 2 carries a newer token.
var countedSources = map[string]string{
	"a table":            `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2` + sourceAction,
	"in an order":        `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 ORDER BY n.id` + sourceAction,
	"the first ones":     `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 ORDER BY n.id LIMIT 3` + sourceAction,
	"the table itself":   `INSERT INTO orders (id, code, last_token) SELECT o.id, o.code, $1::bigint FROM orders o WHERE o.id < $2` + sourceAction,
	"a join":             `INSERT INTO orders (id, code, last_token) SELECT n.id, o.code, $1::bigint FROM notes n LEFT JOIN orders o USING (id) WHERE n.id < $2` + sourceAction,
	"groups":             `INSERT INTO orders (id, code, last_token) SELECT n.id, max(n.body), $1::bigint FROM notes n WHERE n.id < $2 GROUP BY n.id` + sourceAction,
	"distinct rows":      `INSERT INTO orders (id, code, last_token) SELECT DISTINCT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2` + sourceAction,
	"a union":            `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 UNION SELECT 3, 'c', $1::bigint` + sourceAction,
	"a series":           `INSERT INTO orders (id, code, last_token) SELECT g, 'n' || g, $1::bigint FROM generate_series(1, $2 - 1) g` + sourceAction,
	"an item of WITH":    `WITH n AS (SELECT id, body FROM notes WHERE id < $2) INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM n` + sourceAction,
	"moved rows":         `WITH n AS (DELETE FROM notes WHERE id < $2 RETURNING id, body) INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM n` + sourceAction,
	"calls in its list":  `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body || random(), $1::bigint FROM notes n WHERE n.id < $2` + sourceAction,
	"an expression":      `INSERT INTO orders (id, code, last_token) SELECT n.id + 10, upper(n.body), $1::bigint FROM notes n WHERE n.id < $2 ON CONFLICT (lower(code)) DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token <= $1`,
	"its own token":      `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`,
	"a correlated query": `INSERT INTO orders (id, code, last_token) SELECT n.id, (SELECT m.body FROM notes m WHERE m.id = n.id), $1::bigint FROM notes n WHERE n.id < $2` + sourceAction,
}

// uncountedSources have as many rows as PostgreSQL finds at the time, or the statement has
// no place for a count.
var uncountedSources = map[string]string{
	"locked rows":           `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 FOR UPDATE SKIP LOCKED` + sourceAction,
	"a call in WHERE":       `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 AND random() < 2` + sourceAction,
	"within WITH":           `WITH w AS (INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2` + sourceAction + ` RETURNING id) SELECT id FROM w`,
	"a MERGE":               `MERGE INTO orders USING (SELECT id, body FROM notes WHERE id < $2) n ON orders.id = n.id WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1`,
	"a MERGE that inserts":  `MERGE INTO orders USING (SELECT id, body FROM notes WHERE id < $2) n ON orders.id = n.id WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1 WHEN NOT MATCHED THEN INSERT (id, code, last_token) VALUES (n.id, n.body, $1)`,
	"a MERGE by no key":     `MERGE INTO orders USING (VALUES (1)) n(tenant) ON orders.tenant_id = n.tenant AND orders.id < $2 WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1`,
	"a condition of values": `INSERT INTO orders (id, code, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token <= $1 AND orders.status = 'new'`,
}

const resetSources = `TRUNCATE orders, notes; INSERT INTO notes VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO orders (id, code, last_token) VALUES (1, 'a', 3), (2, 'b', 8), (3, 'c', 3), (4, 'd', 3)`

// An upsert of the rows that a table gives is told of when it was stale in part, by its
// count, whoever has guarded it and however it is sent.
func TestUpsertsFromTablesAreToldByTheirCount(t *testing.T) {
	_, plain := openRows(t, rewrite.Lease)
	dsn := plain.Config().ConnString()
	handles := make(map[string]*sql.DB)
	for name, opts := range map[string][]driver.Option{"": nil, ", partial check": {driver.WithPartialCheck()}, ", rewriting": {driver.WithRewrite()}} {
		db, err := driver.Open(dsn, append(opts, driver.Protect("orders", rewrite.Lease))...)
		require.NoError(t, err)
		defer db.Close()
		handles[name] = db
	}
	ctx := tokenctx.With(t.Context(), 7)
	ways := slices.Sorted(maps.Keys(withinWays))
	for i, name := range slices.Sorted(maps.Keys(countedSources)) {
		for handle, db := range handles {
			for j, returning := range []string{"", " RETURNING orders.id"} {
				way := ways[(i+j)%len(ways)]
				t.Run(name+returning+", "+way+handle, func(t *testing.T) {
					query := countedSources[name] + returning
					reset := func(also string) {
						_, err := plain.Exec(t.Context(), resetSources+also)
						require.NoError(t, err)
					}
					reset(``)
					_, err := withinWays[way](ctx, db, query, tokenctx.Arg, 4)
					var partial *driver.PartialError
					require.ErrorAs(t, err, &partial)
					require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: 2, Stale: 1}, *partial)
					reset(`; UPDATE orders SET last_token = 8`)
					_, err = withinWays[way](ctx, db, query, tokenctx.Arg, 4)
					require.Error(t, err, "none was written, and newer tokens are about")
					reset(`; UPDATE orders SET last_token = 3`)
					n, err := withinWays[way](ctx, db, query, tokenctx.Arg, 4)
					require.NoError(t, err)
					if n >= 0 && returning != "" {
						require.Equal(t, 3, n)
					}
				})
			}
		}
	}
}

// Where no count comes along, whoever has no lease is told that nothing can tell, and
// plain pgx shows that the statements pass by themselves.
func TestUncountedSourcesAreNotSilent(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease)
	ctx := tokenctx.With(t.Context(), 7)
	for name, query := range uncountedSources {
		t.Run(name, func(t *testing.T) {
			_, err := plain.Exec(t.Context(), resetSources)
			require.NoError(t, err)
			_, err = plain.Exec(t.Context(), query, int64(7), int64(4))
			require.NoError(t, err)
			for way, send := range withinWays {
				_, err := plain.Exec(t.Context(), resetSources)
				require.NoError(t, err)
				_, err = send(ctx, db, query, tokenctx.Arg, 4)
				require.ErrorIs(t, err, driver.ErrUndetermined, way)
				_, err = plain.Exec(t.Context(), resetSources+`; UPDATE orders SET last_token = 3`)
				require.NoError(t, err)
				_, err = send(ctx, db, query, tokenctx.Arg, 4)
				require.NoError(t, err, way)
			}
		})
	}
}

// What an upsert's own condition leaves out isn't taken for stale: the rows under its keys
// carry no newer token, wherever else there are some.
func TestUpsertsMayLeaveRowsOut(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease)
	const upsert = `INSERT INTO orders (id, code, last_token) VALUES (1, 'a', $1), (3, 'c', $1), (4, 'd', $1) ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token <= $1 AND orders.code <> 'c'`
	ctx := tokenctx.With(t.Context(), 7)
	_, err := db.ExecContext(ctx, upsert, tokenctx.Arg)
	require.NoError(t, err)
	resetRows(t, plain)
	_, err = plain.Exec(t.Context(), `UPDATE orders SET last_token = 8 WHERE id = 4`)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, upsert, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrUndetermined)
}
