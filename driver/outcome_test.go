package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openOutcome opens a handle on a table whose ten rows carry 5 up to the fifth,
// and 9.
func openOutcome(t *testing.T, opts ...driver.Option) *sql.DB {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0);
		CREATE TABLE notes (id bigint); INSERT INTO notes VALUES (6);
		INSERT INTO orders SELECT i, 'new', CASE WHEN i <= 5 THEN 5 ELSE 9 END FROM generate_series(1, 10) i`)
	db, err := driver.Open(dsn, append(opts, driver.Protect("orders", rewrite.Lease))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestPartialCheck(t *testing.T) {
	ctx := tokenctx.With(t.Context(), 7)
	for name, test := range map[string]struct {
		sql            string
		applied, stale int64 // no error where none is stale
	}{
		"all rows":         {`UPDATE orders SET status = 'x', last_token = $1 WHERE last_token <= $1`, 5, 5},
		"a range":          {`UPDATE orders SET status = 'x', last_token = $1 WHERE id >= 5 AND last_token <= $1`, 1, 5},
		"a list":           {`UPDATE orders SET status = 'x', last_token = $1 WHERE id IN (1, 2, 6) AND last_token <= $1`, 2, 1},
		"none stale":       {`UPDATE orders SET status = 'x', last_token = $1 WHERE id < 4 AND last_token <= $1`, 3, 0},
		"one row":          {`UPDATE orders SET status = 'x', last_token = $1 WHERE id = 4 AND last_token <= $1`, 1, 0},
		"delete":           {`DELETE FROM orders WHERE id IN (5, 6) AND last_token <= $1`, 1, 1},
		"upsert":           {`INSERT INTO orders (id, last_token) VALUES (1, $1), (6, $1), (11, $1) ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE orders.last_token <= $1`, 2, 1},
		"merge":            {`MERGE INTO orders o USING (VALUES (1), (7)) s(id) ON o.id = s.id WHEN MATCHED AND o.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1`, 1, 1},
		"it can't be told": {`UPDATE orders SET last_token = $1 FROM notes WHERE orders.id > notes.id - 2 AND orders.last_token <= $1`, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			db := openOutcome(t, driver.WithPartialCheck(), r.option())
			_, err := db.ExecContext(ctx, test.sql, tokenctx.Arg)
			switch {
			case name == "it can't be told":
				require.ErrorIs(t, err, driver.ErrUndetermined)
				return
			case test.stale == 0:
				require.NoError(t, err)
				require.Empty(t, r.take())
				return
			}
			var partial *driver.PartialError
			require.ErrorAs(t, err, &partial)
			require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: test.applied, Stale: test.stale}, *partial)
			require.False(t, driver.NotApplied(err))
			require.NotErrorIs(t, err, driver.ErrStale)
			require.Equal(t, []string{"stale"}, r.take())
		})
	}
	t.Run("not without the option", func(t *testing.T) {
		_, err := openOutcome(t).ExecContext(ctx, `DELETE FROM orders WHERE last_token <= $1`, tokenctx.Arg)
		require.NoError(t, err)
	})
}

// With RETURNING the error comes with the last row, and the connection is free.
func TestPartialCheckOfRows(t *testing.T) {
	db := openOutcome(t, driver.WithPartialCheck())
	db.SetMaxOpenConns(1)
	rows, err := db.QueryContext(tokenctx.With(t.Context(), 7), `UPDATE orders SET status = 'x', last_token = $1 WHERE last_token <= $1 RETURNING id`, tokenctx.Arg)
	require.NoError(t, err)
	n := 0
	for rows.Next() {
		require.NoError(t, rows.Scan(new(int)))
		n++
	}
	require.Equal(t, 5, n)
	var partial *driver.PartialError
	require.ErrorAs(t, rows.Err(), &partial)
	require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: 5, Stale: 5}, *partial)
	require.NoError(t, db.QueryRow(`SELECT 1`).Scan(&n))
}

func TestUndetermined(t *testing.T) {
	for name, test := range map[string]struct {
		sql  string
		want error
	}{
		"reads another table": {`UPDATE orders SET last_token = $1 FROM notes WHERE orders.status = 'new' AND orders.id = notes.id AND orders.last_token <= $1`, driver.ErrUndetermined},
		"the same with RETURNING": {
			`UPDATE orders SET last_token = $1 FROM notes WHERE orders.status = 'new' AND orders.id = notes.id AND orders.last_token <= $1 RETURNING 1`,
			driver.ErrUndetermined,
		},
		"a list":                     {`UPDATE orders SET last_token = $1 FROM generate_series(6, 10) i WHERE orders.status = 'new' AND orders.id = i AND orders.last_token <= $1`, driver.ErrStale},
		"a volatile condition":       {`UPDATE orders SET last_token = $1 WHERE random() < 2 AND last_token <= $1 AND id > 5`, driver.ErrUndetermined},
		"stale":                      {`UPDATE orders SET last_token = $1 WHERE id = 6 AND last_token <= $1`, driver.ErrStale},
		"no such row":                {`UPDATE orders SET last_token = $1 WHERE id = 11 AND last_token <= $1`, nil},
		"an INSERT compares nothing": {`INSERT INTO orders (id, last_token) VALUES (1, $1) ON CONFLICT DO NOTHING`, nil},
		"no write":                   {`SELECT 1 FROM orders WHERE last_token < $1 AND id > 11`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			db := openOutcome(t)
			arg := any(tokenctx.Arg)
			if name == "no write" {
				arg = 7
			}
			_, err := db.ExecContext(tokenctx.With(t.Context(), 7), test.sql, arg)
			if test.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, test.want)
			require.Equal(t, errors.Is(err, driver.ErrStale), driver.NotApplied(err))
		})
	}
}

// PostgreSQL's triggers find a DELETE's token in the setting, in a transaction
// or without one, prepared or not.
func TestDeleteCarriesItsToken(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE log (id bigint, token text);
		INSERT INTO orders SELECT i FROM generate_series(1, 10) i;
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO log VALUES (OLD.id, current_setting('fencing.token_a$2fb', true)); RETURN OLD; END$$;
		CREATE TRIGGER note BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION note()`)
	db, err := driver.Open(dsn, driver.ProtectTable(rewrite.Table{Name: "orders", Mode: rewrite.Strict, Resource: "a/b"}))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	with := func(token tokenctx.Token) context.Context { return tokenctx.WithResource(t.Context(), "a/b", token) }
	const remove = `DELETE FROM orders WHERE id = $1 AND last_token < $2`
	_, err = db.ExecContext(with(1), remove, 1, tokenctx.Arg)
	require.NoError(t, err)
	require.NoError(t, db.QueryRowContext(with(2), remove+` RETURNING id -- x`, 2, tokenctx.Arg).Scan(new(int)))
	stmt, err := db.Prepare(remove)
	require.NoError(t, err)
	_, err = stmt.ExecContext(with(3), 3, tokenctx.Arg)
	require.NoError(t, err)
	require.NoError(t, stmt.Close())
	tx, err := db.BeginTx(with(4), nil)
	require.NoError(t, err)
	_, err = tx.Exec(remove, 4, tokenctx.Arg)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	tx, err = db.Begin()
	require.NoError(t, err)
	for _, i := range []int{5, 6} {
		_, err = tx.ExecContext(with(tokenctx.Token(i)), remove, i, tokenctx.Arg)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
	var good int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM log WHERE token = id::text`).Scan(&good))
	require.Equal(t, 6, good)
	var left string
	require.NoError(t, db.QueryRow(`SELECT COALESCE(current_setting('fencing.token_a$2fb', true), '')`).Scan(&left))
	require.Empty(t, left, "nothing of it stays in the session")
}

// Whoever ends the rows before the last one learns of those that were left out, too.
func TestPartialCheckOfRowsThatEndEarly(t *testing.T) {
	const write = `UPDATE orders SET status = 'x', last_token = $1 WHERE last_token <= $1 RETURNING id`
	ctx := tokenctx.With(t.Context(), 7)
	db := openOutcome(t, driver.WithPartialCheck())
	db.SetMaxOpenConns(1)
	for name, read := range map[string]func(t *testing.T, db *sql.DB) error{
		"Close at once": func(t *testing.T, db *sql.DB) error {
			rows, err := db.QueryContext(ctx, write, tokenctx.Arg)
			require.NoError(t, err)
			return rows.Close()
		},
		"Close after a row": func(t *testing.T, db *sql.DB) error {
			rows, err := db.QueryContext(ctx, write, tokenctx.Arg)
			require.NoError(t, err)
			require.True(t, rows.Next())
			return rows.Close()
		},
		"Close after a row of a prepared statement": func(t *testing.T, db *sql.DB) error {
			stmt, err := db.PrepareContext(ctx, write)
			require.NoError(t, err)
			defer stmt.Close()
			rows, err := stmt.QueryContext(ctx, tokenctx.Arg)
			require.NoError(t, err)
			require.True(t, rows.Next())
			return rows.Close()
		},
		"QueryRow": func(t *testing.T, db *sql.DB) error {
			return db.QueryRowContext(ctx, write, tokenctx.Arg).Scan(new(int))
		},
		"Close after an error of Scan": func(t *testing.T, db *sql.DB) error {
			rows, err := db.QueryContext(ctx, write, tokenctx.Arg)
			require.NoError(t, err)
			require.True(t, rows.Next())
			require.Error(t, rows.Scan(new(bool), new(bool)))
			return rows.Close()
		},
		"in a transaction": func(t *testing.T, db *sql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback()) }()
			rows, err := tx.Query(write, tokenctx.Arg)
			require.NoError(t, err)
			require.True(t, rows.Next())
			return rows.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var partial *driver.PartialError
			require.ErrorAs(t, read(t, db), &partial)
			require.Equal(t, driver.PartialError{Table: "orders", Token: 7, Applied: 5, Stale: 5}, *partial)
			var n int
			require.NoError(t, db.QueryRow(`SELECT 1`).Scan(&n), "the connection is free")
		})
	}
	t.Run("Commit of a transaction whose rows are open", func(t *testing.T) {
		tx, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		rows, err := tx.Query(strings.Replace(write, "'x'", "'unread'", 1), tokenctx.Arg)
		require.NoError(t, err)
		require.True(t, rows.Next())
		var partial *driver.PartialError
		require.ErrorAs(t, tx.Commit(), &partial)
		require.Error(t, rows.Err())
		var n int
		require.NoError(t, db.QueryRow(`SELECT count(*) FROM orders WHERE status = 'unread'`).Scan(&n))
		require.Zero(t, n, "nothing was committed")
	})
	t.Run("Commit after Close", func(t *testing.T) {
		tx, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		rows, err := tx.Query(write, tokenctx.Arg)
		require.NoError(t, err)
		require.Error(t, rows.Close())
		require.NoError(t, tx.Commit(), "whoever heard of it decides")
	})
	t.Run("a context that ends", func(t *testing.T) {
		ending, cancel := context.WithCancel(ctx)
		rows, err := db.QueryContext(ending, write, tokenctx.Arg)
		require.NoError(t, err)
		require.True(t, rows.Next())
		cancel()
		for rows.Next() {
		}
		err = errors.Join(rows.Err(), rows.Close())
		require.Error(t, err)
	})
	t.Run("none is left out", func(t *testing.T) {
		rows, err := db.QueryContext(tokenctx.With(t.Context(), 1000), write, tokenctx.Arg)
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.NoError(t, rows.Close())
	})
}
