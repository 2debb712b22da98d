package driver_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openRows opens a handle on a table with keys of several kinds, whose rows 1, 3 and 4
// carry token 3, and row 2 token 8.
func openRows(t *testing.T, mode rewrite.Mode, opts ...driver.Option) (db *sql.DB, plain *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, code text CONSTRAINT orders_code_key UNIQUE, tenant_id int DEFAULT 1, deleted_at timestamptz,
			status text DEFAULT 'new', last_token bigint NOT NULL DEFAULT 0, UNIQUE (tenant_id, id));
		CREATE UNIQUE INDEX ON orders (lower(code)); CREATE UNIQUE INDEX ON orders (tenant_id, code) WHERE deleted_at IS NULL;
		CREATE TABLE notes (id bigint PRIMARY KEY, body text)`)
	db, err := driver.Open(dsn, append(opts, driver.Protect("orders", mode))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	plain, err = pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close(context.Background()) })
	resetRows(t, plain)
	return db, plain
}

func resetRows(t *testing.T, plain *pgx.Conn) {
	t.Helper()
	_, err := plain.Exec(t.Context(), `TRUNCATE orders, notes; INSERT INTO notes VALUES (1, 'a'), (2, 'b');
		INSERT INTO orders (id, code, last_token) VALUES (1, 'a', 3), (2, 'b', 8), (3, 'c', 3), (4, 'd', 3)`)
	require.NoError(t, err)
}

// An upsert of several rows that writes fewer is stale in part, by whatever index it met
// a row, and says so before it hands out a row.
func TestUpsertIsToldByItsCount(t *testing.T) {
	const action = ` DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token <= $1`
	for name, test := range map[string]struct {
		sql            string
		args           []any
		applied, stale int64
	}{
		"a column":        {`INSERT INTO orders (id, code, last_token) VALUES (1, 'a', $1), (2, 'b', $1), (3, 'c', $1) ON CONFLICT (id)` + action, nil, 2, 1},
		"an expression":   {`INSERT INTO orders (id, code, last_token) VALUES (1, 'A', $1), (2, 'B', $1), (9, 'i', $1) ON CONFLICT (lower(code))` + action, nil, 2, 1},
		"a partial index": {`INSERT INTO orders (id, tenant_id, code, last_token) VALUES (11, 1, 'a', $1), (12, 1, 'b', $1) ON CONFLICT (tenant_id, code) WHERE deleted_at IS NULL` + action, nil, 1, 1},
		"a constraint":    {`INSERT INTO orders (id, code, last_token) VALUES (11, 'a', $1), (12, 'b', $1) ON CONFLICT ON CONSTRAINT orders_code_key` + action, nil, 1, 1},
		"arrays":          {`INSERT INTO orders (id, code, last_token) SELECT u.id, u.code, $1::bigint FROM unnest($2::bigint[], $3::text[]) AS u(id, code) ON CONFLICT (id)` + action, []any{[]int64{1, 2, 3}, []string{"a", "b", "c"}}, 2, 1},
		"arrays in a list": {
			`INSERT INTO orders (id, code, last_token) SELECT unnest($2::bigint[]), unnest($3::text[]), $1::bigint ON CONFLICT (id)` + action,
			[]any{[]int64{1, 2, 3}, []string{"a", "b", "c"}}, 2, 1,
		},
		"one of a list":       {`INSERT INTO orders (id, code, last_token) VALUES (2, 'b', $1) ON CONFLICT ON CONSTRAINT orders_code_key` + action, nil, 0, 1},
		"one by a call":       {`INSERT INTO orders (id, code, last_token) VALUES (2, lower('B'), $1) ON CONFLICT (code)` + action, nil, 0, 1},
		"one by a query":      {`INSERT INTO orders (id, code, last_token) SELECT 2, 'b', $1::bigint ON CONFLICT (id)` + action, nil, 0, 1},
		"one of an array":     {`INSERT INTO orders (id, code, last_token) SELECT u.id, 'b', $1::bigint FROM unnest($2::bigint[]) AS u(id) ON CONFLICT (id)` + action, []any{[]int64{2}}, 0, 1},
		"all of them written": {`INSERT INTO orders (id, code, last_token) VALUES (1, 'a', $1), (3, 'c', $1), (9, 'i', $1) ON CONFLICT (id)` + action, nil, 3, 0},
	} {
		for _, returning := range []string{"", " RETURNING id"} {
			t.Run(name+returning, func(t *testing.T) {
				db, _ := openRows(t, rewrite.Lease)
				ctx := tokenctx.With(t.Context(), 7)
				args := append([]any{tokenctx.Arg}, test.args...)
				var err error
				if returning == "" {
					_, err = db.ExecContext(ctx, test.sql, args...)
				} else {
					var rows *sql.Rows
					if rows, err = db.QueryContext(ctx, test.sql+returning, args...); err == nil {
						_, err = readAll(rows, nil)
					}
				}
				var partial *driver.PartialError
				switch {
				case test.stale == 0:
					require.NoError(t, err)
				case test.applied == 0:
					require.ErrorIs(t, err, driver.ErrStale)
				default:
					require.ErrorAs(t, err, &partial)
					require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: test.applied, Stale: test.stale}, *partial)
				}
			})
		}
	}
}

// A trigger may leave a row out, so that the count doesn't tell: the rows do.
func TestUpsertUnderATrigger(t *testing.T) {
	const upsert = `INSERT INTO orders (id, code, last_token) VALUES (1, 'a', $1), (3, 'c', $1) ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token <= $1`
	_, plain := openRows(t, rewrite.Lease)
	_, err := plain.Exec(t.Context(), `CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 3 THEN RETURN NULL; END IF; RETURN NEW; END $$;
		CREATE TRIGGER leave BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION leave()`)
	require.NoError(t, err)
	db, err := driver.Open(plain.Config().ConnString(), driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), upsert, tokenctx.Arg)
	require.NoError(t, err, "the trigger left it out, and no newer holder")
	_, err = plain.Exec(t.Context(), `ALTER TABLE orders DISABLE TRIGGER leave; UPDATE orders SET last_token = 9; ALTER TABLE orders ENABLE TRIGGER leave`)
	require.NoError(t, err)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), upsert, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale)
}

// In strict mode a row may carry the very token: that is told apart.
func TestUpsertOfReplayedRows(t *testing.T) {
	db, _ := openRows(t, rewrite.Strict)
	ctx := tokenctx.With(t.Context(), 7)
	const upsert = `INSERT INTO orders (id, code, last_token) VALUES (1, 'a', $1), (2, 'b', $1), (3, 'c', $1) ON CONFLICT (id) DO UPDATE SET status = 'x', last_token = $1 WHERE orders.last_token < $1`
	_, err := db.ExecContext(ctx, `UPDATE orders SET last_token = $1 WHERE id = 1 AND last_token < $1`, tokenctx.Arg)
	require.NoError(t, err)
	var partial *driver.PartialError
	_, err = db.ExecContext(ctx, upsert, tokenctx.Arg)
	require.ErrorAs(t, err, &partial)
	require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: 1, Stale: 1, Replayed: 1}, *partial)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 8), upsert, tokenctx.Arg)
	require.ErrorAs(t, err, &partial)
	require.Equal(t, driver.PartialError{Table: "orders", Token: 8, Applied: 2, Replayed: 1}, *partial)
	require.NotErrorIs(t, err, driver.ErrStale)
}

// What is rewritten tells of the rows that its guard leaves out, which nobody wrote who
// wrote the statement.
func TestRewrittenIsToldInPart(t *testing.T) {
	for name, test := range map[string]struct {
		sql            string
		args           []any
		applied, stale int64
	}{
		"by a condition":      {`UPDATE orders SET status = 'x' WHERE status = $1`, []any{"new"}, 3, 1},
		"by a list":           {`UPDATE orders SET status = 'x' WHERE id IN ($1, $2)`, []any{1, 2}, 1, 1},
		"by an array":         {`UPDATE orders SET status = 'x' WHERE id = ANY($1)`, []any{[]int64{1, 2, 77}}, 1, 1},
		"all":                 {`UPDATE orders SET status = 'x'`, nil, 3, 1},
		"a DELETE":            {`DELETE FROM orders WHERE id < 3`, nil, 1, 1},
		"an upsert":           {`INSERT INTO orders (id, code) VALUES (1, 'a'), (2, 'b') ON CONFLICT (id) DO UPDATE SET status = 'x'`, nil, 1, 1},
		"all of them written": {`UPDATE orders SET status = 'x' WHERE id IN (1, 3, 77)`, nil, 2, 0},
		"one":                 {`UPDATE orders SET status = 'x' WHERE id = 1`, nil, 1, 0},
		"changed by WHERE":    {`UPDATE orders SET status = 'x' WHERE status = 'new' AND id <> 2`, nil, 3, 0},
	} {
		for _, returning := range []string{"", " RETURNING id"} {
			t.Run(name+returning, func(t *testing.T) {
				db, _ := openRows(t, rewrite.Lease, driver.WithRewrite())
				ctx := tokenctx.With(t.Context(), 7)
				var err error
				n := int64(0)
				if returning == "" {
					var result sql.Result
					if result, err = db.ExecContext(ctx, test.sql, test.args...); err == nil {
						n, err = result.RowsAffected()
					}
				} else {
					var rows *sql.Rows
					if rows, err = db.QueryContext(ctx, test.sql+returning, test.args...); err == nil {
						var count int
						count, err = readAll(rows, nil)
						require.NoError(t, err, "the error comes before the first row")
						n = int64(count)
					}
				}
				if test.stale == 0 {
					require.NoError(t, err)
					require.Equal(t, test.applied, n)
					return
				}
				var partial *driver.PartialError
				require.ErrorAs(t, err, &partial)
				require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: test.applied, Stale: test.stale}, *partial)
			})
		}
	}
}

// A row that the newer holder has changed, so that the WHERE doesn't mean it any more, is
// found by any of its keys.
func TestStaleByAnyKey(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease)
	_, err := plain.Exec(t.Context(), `UPDATE orders SET status = 'done' WHERE id = 2`)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		where string
		args  []any
	}{
		"the primary key":       {`id = $2`, []any{2}},
		"a list":                {`id IN ($2, $3)`, []any{2, 77}},
		"another key":           {`code = $2`, []any{"b"}},
		"an array":              {`id = ANY($2)`, []any{[]int64{2}}},
		"an array, cast":        {`id = ANY($2::bigint[])`, []any{[]int64{2, 77}}},
		"a row":                 {`(tenant_id, id) = (1, $2)`, []any{2}},
		"a list of rows":        {`(tenant_id, id) IN ((1, $2), (1, 77))`, []any{2}},
		"alternatives":          {`(id = $2 OR id = $3)`, []any{2, 77}},
		"mixed alternatives":    {`(id = $2 AND tenant_id = 1 OR code = 'none' AND id = 4)`, []any{2}},
		"between":               {`id BETWEEN $2 AND $2`, []any{2}},
		"arithmetic":            {`id = $2::int + 0`, []any{2}},
		"is not distinct":       {`id IS NOT DISTINCT FROM $2`, []any{2}},
		"a cast column":         {`id::text = $2`, []any{"2"}},
		"turned round":          {`$2 = id`, []any{2}},
		"a call of constants":   {`code = lower($2)`, []any{"B"}},
		"two columns of a key":  {`tenant_id = 1 AND id = $2`, []any{2}},
		"qualified":             {`orders.id = $2`, []any{2}},
		"a key and a subselect": {`id = $2 AND EXISTS (SELECT FROM notes)`, []any{2}},
	} {
		for verb, query := range map[string]string{
			"UPDATE":      `UPDATE orders SET status = 'x', last_token = $1 WHERE {} AND status = 'new' AND orders.last_token <= $1`,
			"RETURNING":   `UPDATE orders SET status = 'x', last_token = $1 WHERE {} AND status = 'new' AND orders.last_token <= $1 RETURNING orders.id`,
			"DELETE":      `DELETE FROM orders WHERE {} AND status = 'new' AND orders.last_token <= $1`,
			"FROM":        `UPDATE orders SET status = 'x', last_token = $1 FROM (SELECT 1 AS one FROM notes) n WHERE {} AND status = 'new' AND orders.last_token <= $1`,
			"USING":       `DELETE FROM orders USING (SELECT 1 AS one FROM notes) n WHERE {} AND status = 'new' AND orders.last_token <= $1`,
			"WITH":        `WITH n AS (SELECT FROM notes) UPDATE orders SET status = 'x', last_token = $1 WHERE {} AND status = 'new' AND orders.last_token <= $1`,
			"within WITH": `WITH n AS (UPDATE orders SET status = 'x', last_token = $1 WHERE {} AND status = 'new' AND orders.last_token <= $1) SELECT 1`,
		} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				text := strings.Replace(query, "{}", test.where, 1)
				_, err := db.ExecContext(tokenctx.With(t.Context(), 7), text, append([]any{tokenctx.Arg}, test.args...)...)
				require.ErrorIs(t, err, driver.ErrStale)
				_, err = db.ExecContext(tokenctx.With(t.Context(), 10), text, append([]any{tokenctx.Arg}, test.args...)...)
				require.NoError(t, err, "the present holder meets a row of an earlier one")
			})
		}
	}
}

// What isn't held to constants pins no key.
func TestNoKeyIsPinned(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease)
	_, err := plain.Exec(t.Context(), `UPDATE orders SET status = 'done' WHERE id = 2`)
	require.NoError(t, err)
	for _, where := range []string{`id NOT IN (1)`, `id > 1`, `id <> ALL('{1}')`, `(id = 2 OR status = 'none')`, `NOT id = 1`, `id = tenant_id + 1`, `tenant_id = 1`, `code LIKE 'b'`, `id NOT BETWEEN 3 AND 9`} {
		_, err := db.ExecContext(tokenctx.With(t.Context(), 7), `UPDATE orders SET status = 'x', last_token = $1 WHERE `+where+` AND status = 'gone' AND last_token <= $1`, tokenctx.Arg)
		require.ErrorIs(t, err, driver.ErrUndetermined, where)
		_, err = db.ExecContext(tokenctx.With(t.Context(), 10), `UPDATE orders SET status = 'x', last_token = $1 WHERE `+where+` AND status = 'gone' AND last_token <= $1`, tokenctx.Arg)
		require.NoError(t, err, where)
	}
}

// A row that was moved to another partition is found by what it keeps.
func TestStaleInAnotherPartition(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint, state text, last_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, state)) PARTITION BY LIST (state);
		CREATE TABLE orders_run PARTITION OF orders FOR VALUES IN ('new', 'running'); CREATE TABLE orders_done PARTITION OF orders FOR VALUES IN ('done');
		INSERT INTO orders VALUES (5, 'done', 8)`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	const write = `UPDATE orders SET state = 'new', last_token = $1 WHERE id = $2 AND state = 'running' AND last_token <= $1`
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), write, tokenctx.Arg, 5)
	require.ErrorIs(t, err, driver.ErrStale)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 8), write, tokenctx.Arg, 5)
	require.NoError(t, err)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), write, tokenctx.Arg, 6)
	require.NoError(t, err, "no such row")
}
