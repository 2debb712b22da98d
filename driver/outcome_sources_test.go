package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// sentBoth sends a statement as it is and with RETURNING, on fresh rows each, and
// returns the errors.
func sentBoth(t *testing.T, reset func(), db *sql.DB, query string, args ...any) (errs []error) {
	t.Helper()
	ctx := tokenctx.With(t.Context(), 7)
	reset()
	_, err := db.ExecContext(ctx, query, args...)
	errs = append(errs, err)
	reset()
	rows, err := db.QueryContext(ctx, query+` RETURNING orders.id`, args...)
	if err == nil {
		_, err = readAll(rows, nil)
		require.NoError(t, err, "the error comes before the first row")
	}
	return append(errs, err)
}

// What is rewritten tells of the rows that its guard leaves out, whatever the rows are
// taken from.
func TestRewrittenFromOthersIsToldInPart(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease, driver.WithRewrite())
	for name, test := range map[string]struct {
		sql            string
		args           []any
		applied, stale int64
		err            error
	}{
		"a list":                    {sql: `UPDATE orders SET status = v.s FROM (VALUES ($1::bigint, 'x'), ($2, 'y')) v(id, s) WHERE orders.id = v.id`, args: []any{1, 2}, applied: 1, stale: 1},
		"a list, a row twice":       {sql: `UPDATE orders SET status = v.s FROM (VALUES ($1::bigint, 'x'), (1, 'z'), ($2, 'y'), (2, 'y')) v(id, s) WHERE orders.id = v.id`, args: []any{1, 2}, applied: 1, stale: 1},
		"a list, none stale":        {sql: `UPDATE orders SET status = v.s FROM (VALUES ($1::bigint, 'x'), (3, 'z'), (3, 'z'), (77, 'y')) v(id, s) WHERE orders.id = v.id`, args: []any{1}},
		"a list in WITH":            {sql: `WITH v (id, s) AS (VALUES ($1::bigint, 'x'), ($2, 'y')) UPDATE orders SET status = v.s FROM v WHERE orders.id = v.id`, args: []any{1, 2}, applied: 1, stale: 1},
		"an array":                  {sql: `UPDATE orders SET status = 'x' FROM unnest($1::bigint[]) AS u(id) WHERE orders.id = u.id`, args: []any{[]int64{1, 2, 77}}, applied: 1, stale: 1},
		"an array's items":          {sql: `UPDATE orders SET status = 'x' FROM (SELECT unnest($1::bigint[]) AS id) u WHERE orders.id = u.id`, args: []any{[]int64{1, 2}}, applied: 1, stale: 1},
		"a list and its conditions": {sql: `UPDATE orders SET status = v.s FROM (VALUES ($1::bigint, 'x'), ($2, 'y')) v(id, s) WHERE orders.id = v.id AND orders.status <> v.s`, args: []any{1, 2}, applied: 1, stale: 1},
		"DELETE of a list":          {sql: `DELETE FROM orders USING (VALUES ($1::bigint), ($2)) v(id) WHERE orders.id = v.id`, args: []any{1, 2}, applied: 1, stale: 1},
		"a table":                   {sql: `UPDATE orders SET status = notes.body FROM notes WHERE orders.id = notes.id`, err: driver.ErrUndetermined},
		"a table, one key":          {sql: `UPDATE orders SET status = 'x' FROM notes WHERE notes.id = $1 AND orders.id >= notes.id`, args: []any{1}, err: driver.ErrUndetermined},
		"a table, none stale":       {sql: `UPDATE orders SET status = 'x' FROM notes WHERE orders.id = notes.id + 2`},
		"two tables":                {sql: `UPDATE orders SET status = 'x' FROM notes a JOIN notes b ON a.id = b.id WHERE orders.id IN (a.id, b.id)`, err: driver.ErrUndetermined},
		"a sub-select":              {sql: `UPDATE orders SET status = 'x' WHERE id IN (SELECT id FROM notes)`, err: driver.ErrUndetermined},
		"a sub-select, none stale":  {sql: `UPDATE orders SET status = 'x' WHERE id IN (SELECT id + 2 FROM notes)`},
		"the first by a sub-select": {sql: `UPDATE orders SET status = 'x' WHERE id = (SELECT min(id) FROM notes)`},
		"the next of a queue":       {sql: `UPDATE orders SET status = 'x' WHERE id IN (SELECT id FROM orders WHERE status = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)`},
		"several of a queue":        {sql: `UPDATE orders SET status = 'x' WHERE id IN (SELECT id FROM orders WHERE status = 'new' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED)`, err: driver.ErrUndetermined},
		"DELETE by a sub-select":    {sql: `DELETE FROM orders WHERE EXISTS (SELECT FROM notes WHERE notes.id = orders.id)`, err: driver.ErrUndetermined},
		"a query in WITH":           {sql: `WITH n AS (SELECT id FROM notes) UPDATE orders SET status = 'x' FROM n WHERE orders.id = n.id`, err: driver.ErrUndetermined},
	} {
		for i, err := range sentBoth(t, func() { resetRows(t, plain) }, db, test.sql, test.args...) {
			var partial *driver.PartialError
			switch {
			case test.err != nil:
				require.ErrorIs(t, err, test.err, "%s %d", name, i)
				require.False(t, driver.NotApplied(err), "%s %d", name, i)
			case test.stale == 0:
				require.NoError(t, err, "%s %d", name, i)
			default:
				require.ErrorAs(t, err, &partial, "%s %d", name, i)
				require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: test.applied, Stale: test.stale}, *partial, name)
			}
		}
	}
	_, err := plain.Exec(t.Context(), `UPDATE orders SET last_token = 3`)
	require.NoError(t, err)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), `UPDATE orders SET status = 'x' WHERE id IN (SELECT id FROM orders LIMIT 2)`)
	require.NoError(t, err, "no row carries a newer token")
}

// A rewritten write of several rows in WITH is told in part as well.
func TestRewrittenWithinIsToldInPart(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease, driver.WithRewrite())
	for name, query := range map[string]string{
		"independent":       `WITH w AS (UPDATE orders SET status = 'x' WHERE id < 3) INSERT INTO notes VALUES (9, 'x')`,
		"dependent":         `WITH w AS (UPDATE orders SET status = 'x' WHERE id < 3 RETURNING id) INSERT INTO notes SELECT id + 100 FROM w`,
		"a query":           `WITH w AS (UPDATE orders SET status = 'x' WHERE id < 3 RETURNING id) SELECT id FROM w`,
		"DELETE":            `WITH w AS (DELETE FROM orders WHERE id < 3 RETURNING id) INSERT INTO notes SELECT id + 100 FROM w`,
		"a list":            `WITH w AS (UPDATE orders SET status = 'x' FROM (VALUES (1), (2)) v(id) WHERE orders.id = v.id RETURNING orders.id) SELECT id FROM w`,
		"a WITH of its own": `WITH w AS (WITH v(id) AS (VALUES (1), (2)) UPDATE orders SET status = 'x' FROM v WHERE orders.id = v.id RETURNING orders.id) SELECT id FROM w`,
		"UNION":             `WITH w AS (UPDATE orders SET status = 'x' WHERE id < 3 RETURNING id) SELECT id FROM w UNION ALL SELECT 5`,
	} {
		for way, send := range waysToRead {
			resetRows(t, plain)
			err := send(tokenctx.With(t.Context(), 7), db, query)
			var partial *driver.PartialError
			require.False(t, driver.NotApplied(err), "%s, %s", name, way)
			switch name {
			case "UNION": // nothing counts its rows
				require.ErrorIs(t, err, driver.ErrStale, "%s, %s", name, way)
			default:
				require.ErrorAs(t, err, &partial, "%s, %s", name, way)
				require.Equal(t, [2]int64{1, 1}, [2]int64{partial.Applied, partial.Stale}, "%s, %s", name, way)
			}
			resetRows(t, plain)
			require.NoError(t, send(tokenctx.With(t.Context(), 8), db, query), "%s, %s", name, way)
		}
	}
}

// waysToRead send a statement in the ways of database/sql, and read all that comes back.
var waysToRead = map[string]func(ctx context.Context, db *sql.DB, query string) error{
	"Exec": func(ctx context.Context, db *sql.DB, query string) error {
		_, err := db.ExecContext(ctx, query)
		return err
	},
	"Query": func(ctx context.Context, db *sql.DB, query string) error {
		rows, err := db.QueryContext(ctx, query)
		_, err = readAll(rows, err)
		return err
	},
	"QueryRow": func(ctx context.Context, db *sql.DB, query string) error {
		var id any
		if err := db.QueryRowContext(ctx, query).Scan(&id); !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return nil
	},
	"Prepare": func(ctx context.Context, db *sql.DB, query string) error {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		defer stmt.Close()
		rows, err := stmt.QueryContext(ctx)
		_, err = readAll(rows, err)
		return err
	},
}

// So is a rewritten upsert of rows that are read from a table, which are counted.
func TestRewrittenUpsertFromATableIsTold(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease, driver.WithRewrite())
	const query = `INSERT INTO orders (id, status) SELECT id, 'x' FROM notes ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status`
	for way, send := range waysToRead {
		resetRows(t, plain)
		require.ErrorAs(t, send(tokenctx.With(t.Context(), 7), db, query), new(*driver.PartialError), way)
	}
}

// A MERGE of several rows is an upsert of them. One that leaves out rows of its source by
// itself asks the rows if it has written fewer; which rows it does nothing for can't be
// asked where several of its actions choose.
func TestMergeIsToldInPart(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease)
	const (
		list   = `MERGE INTO orders USING (VALUES (1), (2), (9)) v(id) ON orders.id = v.id `
		update = `WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1 `
		insert = `WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (v.id, $1)`
	)
	for name, test := range map[string]struct {
		sql            string
		args           []any
		applied, stale int64
		err            error
	}{
		"an upsert":             {sql: list + update + insert, applied: 2, stale: 1},
		"an upsert of an array": {sql: `MERGE INTO orders USING unnest($2::bigint[]) AS v(id) ON orders.id = v.id ` + update + insert, args: []any{[]int64{1, 2}}, applied: 1, stale: 1},
		"an update":             {sql: list + update, applied: 1, stale: 1},
		"an update, none stale": {sql: `MERGE INTO orders USING (VALUES (1), (3), (77)) v(id) ON orders.id = v.id ` + update},
		"a deletion":            {sql: list + `WHEN MATCHED AND orders.last_token <= $1 THEN DELETE`, applied: 1, stale: 1},
		"by a condition":        {sql: list + `WHEN MATCHED AND orders.status = 'new' AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1 ` + insert, applied: 2, stale: 1},
		"by another condition":  {sql: list + `WHEN MATCHED AND orders.code = 'a' AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1 ` + insert},
		"nothing for some":      {sql: list + `WHEN MATCHED AND orders.code = 'b' THEN DO NOTHING ` + update + insert, err: driver.ErrUndetermined},
		"all of them":           {sql: `MERGE INTO orders USING (VALUES (1), (3), (9)) v(id) ON orders.id = v.id ` + update + insert},
		"one, stale":            {sql: `MERGE INTO orders USING (VALUES (2)) v(id) ON orders.id = v.id ` + update + insert, err: driver.ErrStale},
	} {
		resetRows(t, plain)
		_, err := db.ExecContext(tokenctx.With(t.Context(), 7), test.sql, append([]any{tokenctx.Arg}, test.args...)...)
		var partial *driver.PartialError
		switch {
		case test.err != nil:
			require.ErrorIs(t, err, test.err, name)
		case test.stale == 0:
			require.NoError(t, err, name)
		default:
			require.ErrorAs(t, err, &partial, name)
			require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: test.applied, Stale: test.stale}, *partial, name)
		}
	}
}
