package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const rawSchema = `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE staging (id bigint);
	INSERT INTO orders VALUES (1, 5)`

func TestRaw(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, rawSchema)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	raw := func(fn func(c *driver.Conn) error) error {
		return conn.Raw(func(driverConn any) error { return fn(driverConn.(*driver.Conn)) })
	}
	rows := func() pgx.CopyFromSource { return pgx.CopyFromRows([][]any{{int64(1)}, {int64(2)}}) }

	require.NoError(t, raw(func(c *driver.Conn) error {
		n, err := c.CopyFrom(t.Context(), pgx.Identifier{"staging"}, []string{"id"}, rows())
		require.EqualValues(t, 2, n)
		return err
	}))
	for _, table := range []pgx.Identifier{{"orders"}, {"public", "orders"}} {
		require.ErrorIs(t, raw(func(c *driver.Conn) error {
			_, err := c.CopyFrom(t.Context(), table, []string{"id"}, rows())
			return err
		}), rewrite.ErrRefused)
	}
	var pid int64
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	require.NoError(t, raw(func(c *driver.Conn) error {
		require.EqualValues(t, pid, c.PID())
		return nil
	}))
	_, err = conn.ExecContext(t.Context(), `LISTEN news`)
	require.NoError(t, err)
	run(t, dsn, `NOTIFY news, 'hello'`)
	require.NoError(t, raw(func(c *driver.Conn) error {
		n, err := c.WaitForNotification(t.Context())
		require.Equal(t, "hello", n.Payload)
		return err
	}))
}

// Connections from a pool are checked like others, and what is known of their
// session stays with them.
func TestPool(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, rawSchema, `CREATE SCHEMA app; CREATE TABLE app.jobs (id int, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE jobs (id int)`)
	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	connector, err := driver.NewPoolConnector(pool, driver.Protect("orders", rewrite.Strict), driver.Protect("app.jobs", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxIdleConns(0)
	_, err = db.Exec(`UPDATE orders SET id = 2`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.True(t, driver.NotApplied(err))
	const guarded = `UPDATE orders SET id = 1, last_token = $1 WHERE id = 1 AND last_token < $1`
	_, err = db.ExecContext(tokenctx.With(t.Context(), 4), guarded, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale)
	require.True(t, driver.NotApplied(err))
	_, err = db.ExecContext(tokenctx.With(t.Context(), 6), guarded, tokenctx.Arg)
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE jobs SET id = 1`)
	require.NoError(t, err, "the path is known")
	_, err = db.Exec(`SET search_path = app`)
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE jobs SET id = 1`)
	require.ErrorIs(t, err, rewrite.ErrRefused, "the pool's connection remembers that its path has changed")
	// another connector looks at its own tables over the same connection
	run(t, dsn, `CREATE TABLE fuzzy (id int, last_token float8 NOT NULL DEFAULT 0)`)
	second, err := driver.NewPoolConnector(pool, driver.Protect("fuzzy", rewrite.Lease))
	require.NoError(t, err)
	other := sql.OpenDB(second)
	defer other.Close()
	other.SetMaxIdleConns(0)
	require.ErrorContains(t, other.Ping(), "must be bigint")

	require.False(t, driver.NotApplied(errors.New("connection reset")))
	require.False(t, driver.NotApplied(nil))
}

// pgx's own options run as with pgx.
func TestPgxOptions(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, rawSchema)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	failure := errors.New("not now")
	connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Strict),
		driver.WithPgx(stdlib.OptionBeforeConnect(func(context.Context, *pgx.ConnConfig) error { return failure })))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	require.ErrorIs(t, db.Ping(), failure)
	_, err = driver.Open(dsn, driver.WithPgx(stdlib.OptionResetSession(nil)))
	require.ErrorContains(t, err, "an option of NewConnector")

	wrapped, err := driver.Wrap(stdlib.GetConnector(*config), driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	handle := sql.OpenDB(wrapped)
	defer handle.Close()
	require.ErrorContains(t, handle.Ping(), "use NewConnector")
}
