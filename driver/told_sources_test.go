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

// joinedSources are guarded by hand, and take rows 1 to 3 from what stands beside the
// table. Whether a list's or an array's rows are newer can be asked by their keys; of a
// table's rows their number alone is known.
var joinedSources = map[string]struct {
	sql   string
	exact bool
}{
	"VALUES":             {sql: `UPDATE orders SET status = v.s, last_token = $1 FROM (VALUES ($2::bigint, 'x'), (1, 'x'), (2, 'y'), (3, 'z')) v(id, s) WHERE orders.id = v.id AND orders.id < $2 AND orders.last_token <= $1`, exact: true},
	"an array":           {sql: `UPDATE orders SET status = 'x', last_token = $1 FROM unnest(ARRAY[1, 2, 3, $2]::bigint[]) u(id) WHERE orders.id = u.id AND orders.id < $2 AND orders.last_token <= $1`, exact: true},
	"DELETE, VALUES":     {sql: `DELETE FROM orders USING (VALUES ($2::bigint), (1), (2), (3)) v(id) WHERE orders.id = v.id AND orders.id < $2 AND orders.last_token <= $1`, exact: true},
	"a table":            {sql: `UPDATE orders SET status = n.body, last_token = $1 FROM notes n WHERE orders.id = n.id AND n.id < $2 AND orders.last_token <= $1`},
	"a table, no key":    {sql: `UPDATE orders SET status = n.body, last_token = $1 FROM notes n WHERE orders.code = n.body AND n.id < $2 AND orders.last_token <= $1`},
	"a row twice":        {sql: `UPDATE orders SET status = n.body, last_token = $1 FROM notes n, generate_series(1, 2) g WHERE orders.id = n.id AND n.id < $2 AND orders.last_token <= $1`},
	"a join":             {sql: `UPDATE orders SET status = n.body, last_token = $1 FROM notes n LEFT JOIN notes m USING (id) WHERE orders.id = n.id AND n.id < $2 AND orders.last_token <= $1`},
	"an item of WITH":    {sql: `WITH n AS (SELECT id, body FROM notes WHERE id < $2) UPDATE orders SET status = n.body, last_token = $1 FROM n WHERE orders.id = n.id AND orders.last_token <= $1`},
	"several of a queue": {sql: `WITH next AS (SELECT id FROM orders WHERE id < $2 ORDER BY id LIMIT 3 FOR UPDATE SKIP LOCKED) UPDATE orders SET status = 'x', last_token = $1 FROM next WHERE orders.id = next.id AND orders.last_token <= $1`},
	"DELETE, a table":    {sql: `DELETE FROM orders USING notes n WHERE orders.id = n.id AND n.id < $2 AND orders.last_token <= $1`},
	"locked rows":        {sql: `UPDATE orders SET status = 'x', last_token = $1 FROM (SELECT id FROM orders WHERE id < $2 ORDER BY id LIMIT 3 FOR UPDATE SKIP LOCKED) next WHERE orders.id = next.id AND orders.last_token <= $1`},
	"a call in WHERE":    {sql: `UPDATE orders SET status = n.body, last_token = $1 FROM notes n WHERE orders.id = n.id AND n.id < $2 AND random() < 2 AND orders.last_token <= $1`},
}

// An UPDATE or DELETE with something beside its table is told of when it was stale in
// part, by default, and however it is sent.
func TestJoinsAreToldInPart(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease)
	ctx := tokenctx.With(t.Context(), 7)
	for name, test := range joinedSources {
		for _, returning := range []string{"", " RETURNING orders.id"} {
			for way, send := range withinWays {
				t.Run(name+returning+", "+way, func(t *testing.T) {
					_, err := plain.Exec(t.Context(), resetSources)
					require.NoError(t, err)
					_, err = send(ctx, db, test.sql+returning, tokenctx.Arg, 4)
					var partial *driver.PartialError
					if test.exact {
						require.ErrorAs(t, err, &partial)
						require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: 2, Stale: 1}, *partial)
					} else {
						require.ErrorIs(t, err, driver.ErrUndetermined)
					}
					require.False(t, driver.NotApplied(err))
					_, err = plain.Exec(t.Context(), resetSources+`; UPDATE orders SET last_token = 3`)
					require.NoError(t, err)
					_, err = send(ctx, db, test.sql+returning, tokenctx.Arg, 4)
					require.NoError(t, err)
				})
			}
		}
	}
}

// What writes all rows of its source has written everything, wherever newer tokens are.
func TestWholeSourcesAreNotAsked(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease)
	for name, query := range map[string]string{
		"the next of a queue":          `UPDATE orders SET status = 'x', last_token = $1 FROM (SELECT id FROM orders WHERE id = $2 LIMIT 1 FOR UPDATE SKIP LOCKED) next WHERE orders.id = next.id AND orders.last_token <= $1`,
		"the next of a queue, by WITH": `WITH next AS (SELECT id FROM orders WHERE id = $2 LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE orders SET status = 'x', last_token = $1 FROM next WHERE orders.id = next.id AND orders.last_token <= $1`,
		"a key beside a table":         `UPDATE orders SET status = n.body, last_token = $1 FROM notes n WHERE orders.id = $2 AND n.id = orders.id AND orders.last_token <= $1`,
		"a table's rows":               `UPDATE orders SET status = n.body, last_token = $1 FROM notes n WHERE orders.id = n.id AND n.id >= $2 AND orders.last_token <= $1`,
		"deleted by a table":           `DELETE FROM orders USING notes n WHERE orders.id = n.id AND n.id >= $2 AND orders.last_token <= $1`,
	} {
		for way, send := range withinWays {
			_, err := plain.Exec(t.Context(), resetSources)
			require.NoError(t, err)
			_, err = send(tokenctx.With(t.Context(), 7), db, query, tokenctx.Arg, 3)
			require.NoError(t, err, "%s, %s", name, way)
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
