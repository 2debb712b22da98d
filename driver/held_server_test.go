package driver_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// readBefore begins a transaction at a level, and has it take its snapshot.
func readBefore(level sql.IsolationLevel) func(ctx context.Context, conn *sql.Conn) (execer, error) {
	return func(ctx context.Context, conn *sql.Conn) (execer, error) {
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: level})
		if err == nil {
			_, err = tx.ExecContext(ctx, `SELECT count(*) FROM orders`)
		}
		return tx, err
	}
}

// What one connection of a handle calls may change the catalog; another one that is
// held meanwhile goes by the change.
func TestHeldConnections(t *testing.T) {
	const schema = `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 'new', 9);
		CREATE FUNCTION make_view() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('CREATE VIEW all_orders AS SELECT * FROM %I', (SELECT tablename FROM pg_tables WHERE tablename LIKE 'ord%')); END $$;
		CREATE FUNCTION make_more() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('CREATE VIEW more_orders AS SELECT * FROM %I', (SELECT tablename FROM pg_tables WHERE tablename LIKE 'ord%')); END $$`
	const write = `UPDATE all_orders SET status = 'paid'`
	for name, begin := range map[string]func(ctx context.Context, conn *sql.Conn) (execer, error){
		"connection":  func(_ context.Context, conn *sql.Conn) (execer, error) { return conn, nil },
		"transaction": func(ctx context.Context, conn *sql.Conn) (execer, error) { return conn.BeginTx(ctx, nil) },
		"transaction that has read": func(ctx context.Context, conn *sql.Conn) (execer, error) {
			tx, err := conn.BeginTx(ctx, nil)
			if err == nil {
				_, err = tx.ExecContext(ctx, `SELECT count(*) FROM orders`)
			}
			return tx, err
		},
		"repeatable read": readBefore(sql.LevelRepeatableRead),
		"serializable":    readBefore(sql.LevelSerializable),
		"read committed":  readBefore(sql.LevelReadCommitted),
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t)
			run(t, dsn, schema)
			db, err := driver.Open(dsn, driver.Protect("public.orders", rewrite.Lease), driver.WithGuardedFunctions("make_view", "make_more"))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			ctx := tokenctx.With(t.Context(), 10)
			maker, err := db.Conn(ctx)
			require.NoError(t, err)
			defer func() { _ = maker.Close() }()
			held, err := db.Conn(ctx)
			require.NoError(t, err)
			defer func() { _ = held.Close() }()
			writer, err := begin(ctx, held)
			require.NoError(t, err)
			if tx, ok := writer.(*sql.Tx); ok {
				defer func() { _ = tx.Rollback() }()
			}
			_, err = maker.ExecContext(ctx, `SELECT make_view()`)
			require.NoError(t, err)
			_, err = writer.ExecContext(ctx, write)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			_, err = maker.ExecContext(ctx, `SELECT make_more()`)
			require.NoError(t, err)
			_, err = writer.ExecContext(ctx, `UPDATE more_orders SET status = 'paid'`)
			require.ErrorIs(t, err, rewrite.ErrRefused, "a second change")
			_, err = writer.ExecContext(ctx, `SELECT count(*) FROM orders`)
			require.NoError(t, err)
		})
	}
}

// Neither a transaction of one snapshot nor another connection sees a view that the
// one has made over a view of the other: the transaction has to end.
func TestHeldConnectionsMakeOverEachOther(t *testing.T) {
	const schema = `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 'new', 9);
		CREATE FUNCTION make_view() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('CREATE VIEW all_orders AS SELECT * FROM %I', (SELECT tablename FROM pg_tables WHERE tablename LIKE 'ord%')); END $$;
		CREATE FUNCTION make_over(v text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('CREATE VIEW over_orders AS SELECT * FROM %I', v); END $$`
	const write = `UPDATE over_orders SET status = 'paid'`
	for name, test := range map[string]struct {
		level sql.IsolationLevel
		looks bool // a third connection looks before the transaction makes its view
		first bool // the transaction makes something before the other connection does
	}{
		"repeatable read":           {level: sql.LevelRepeatableRead},
		"after another's look":      {level: sql.LevelRepeatableRead, looks: true},
		"serializable":              {level: sql.LevelSerializable, looks: true},
		"after a change of its own": {level: sql.LevelRepeatableRead, looks: true, first: true},
		"read committed":            {level: sql.LevelReadCommitted, looks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t)
			run(t, dsn, schema)
			db, err := driver.Open(dsn, driver.Protect("public.orders", rewrite.Lease), driver.WithGuardedFunctions("make_view", "make_over"))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			maker, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer func() { _ = maker.Close() }()
			held, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer func() { _ = held.Close() }()
			tx, err := held.BeginTx(t.Context(), &sql.TxOptions{Isolation: test.level})
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			_, err = tx.ExecContext(t.Context(), `SELECT count(*) FROM orders`)
			require.NoError(t, err)
			if test.first {
				for _, sql := range []string{`SAVEPOINT s`, `SELECT make_over('orders')`, `ROLLBACK TO s`} {
					_, err = tx.ExecContext(t.Context(), sql)
					require.NoError(t, err, sql)
				}
			}
			_, err = maker.ExecContext(t.Context(), `SELECT make_view()`)
			require.NoError(t, err)
			if test.looks {
				require.NoError(t, db.PingContext(t.Context()))
				_, err = db.ExecContext(t.Context(), `SELECT 1`)
				require.NoError(t, err)
			}
			_, err = tx.ExecContext(t.Context(), `SELECT make_over('all_orders')`)
			if err == nil {
				_, err = tx.ExecContext(t.Context(), write)
			}
			require.ErrorIs(t, err, rewrite.ErrRefused)
		})
	}
}
