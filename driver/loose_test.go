package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openRegistered opens a handle whose table orders is at a level, and jobs at
// another.
func openRegistered(t *testing.T, orders, jobs migrations.Level, opts ...driver.Option) (*sql.DB, string) {
	t.Helper()
	dsn := localpg.Database(t, levelTemplate)
	for name, level := range map[string]migrations.Level{"orders": orders, "jobs": jobs} {
		require.NoError(t, migrations.SetLevel(t.Context(), dsn, name, level))
	}
	db, err := driver.Open(dsn, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, dsn
}

// levelTemplate is a database with levelSchema, the tables of which are registered.
var levelTemplate = fencetest.InstalledWith("level", func(ctx context.Context, dsn string) error {
	if err := fencetest.Exec(ctx, dsn, levelSchema); err != nil {
		return err
	}
	for _, name := range []string{"orders", "jobs"} {
		if err := migrations.Register(ctx, dsn, migrations.Table{Name: name, Mode: migrations.Strict}); err != nil {
			return err
		}
	}
	return nil
})

// enforceOrders enforces orders, and makes the handle learn of it.
func enforceOrders(t *testing.T, db *sql.DB, dsn string) {
	t.Helper()
	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Enforce))
	held, err := db.Conn(t.Context()) // the idle connection, if there is one
	require.NoError(t, err)
	fresh, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = fresh.ExecContext(t.Context(), `UPDATE orders SET status = 'x'`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.NoError(t, fresh.Close())
	require.NoError(t, held.Close())
}

// What a session was left with while a table wasn't enforced doesn't open it
// afterwards, whatever it is called.
func TestWhatWasLeftBehind(t *testing.T) {
	leftovers := map[string][2]string{
		"view":           {`CREATE TEMP VIEW v AS SELECT * FROM orders`, `UPDATE v SET status = 'SNEAKED'`},
		"after a write":  {`UPDATE orders SET status = 'y'; CREATE TEMP VIEW v AS SELECT * FROM orders`, `UPDATE v SET status = 'SNEAKED'`},
		"function":       {`CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE sql AS $$UPDATE orders SET status = 'SNEAKED'$$`, `SELECT pg_temp.f()`},
		"atomic":         {`CREATE FUNCTION pg_temp.f() RETURNS void BEGIN ATOMIC UPDATE orders SET status = 'SNEAKED'; END`, `SELECT pg_temp.f()`},
		"table and rule": {`CREATE TEMP TABLE tt (i int); CREATE RULE r AS ON INSERT TO tt DO ALSO UPDATE public.orders SET status = 'SNEAKED'`, `INSERT INTO tt VALUES (1)`},
		"prepared":       {`PREPARE p AS UPDATE orders SET status = 'SNEAKED'`, `EXECUTE p`},
	}
	for name, sql := range leftovers {
		for _, before := range []migrations.Level{migrations.Report, migrations.Off} {
			for _, other := range []migrations.Level{migrations.Enforce, migrations.Off} {
				t.Run(fmt.Sprint(name, "/", before, "/", other), func(t *testing.T) {
					db, dsn := openRegistered(t, before, other)
					held, err := db.Conn(t.Context())
					require.NoError(t, err)
					returned, err := db.Conn(t.Context())
					require.NoError(t, err)
					if _, err = held.ExecContext(t.Context(), sql[0]); other == migrations.Enforce && err != nil {
						require.ErrorIs(t, err, rewrite.ErrRefused, "hidden code may write the enforced one")
						require.NoError(t, held.Close())
						require.NoError(t, returned.Close())
						return
					}
					require.NoError(t, err)
					_, err = returned.ExecContext(t.Context(), sql[0])
					require.NoError(t, err)
					require.NoError(t, returned.Close())
					enforceOrders(t, db, dsn)

					_, err = held.ExecContext(t.Context(), sql[1])
					require.ErrorIs(t, err, rewrite.ErrRefused)
					require.NoError(t, held.Close())
					_, err = db.ExecContext(t.Context(), sql[1])
					require.Error(t, err, "there is no such thing in a new session")
					var status string
					require.NoError(t, db.QueryRow(`SELECT status FROM orders`).Scan(&status))
					require.NotEqual(t, "SNEAKED", status)
				})
			}
		}
	}
}

// A pool's connection from before is replaced, too.
func TestPoolFollowsLevels(t *testing.T) {
	_, dsn := openRegistered(t, migrations.Report, migrations.Off)
	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	connector, err := driver.NewPoolConnector(pool)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxIdleConns(0)
	var before, after int
	require.NoError(t, db.QueryRow(`SELECT pg_backend_pid()`).Scan(&before))
	_, err = db.Exec(`CREATE TEMP VIEW v AS SELECT * FROM orders`)
	require.NoError(t, err)
	enforceOrders(t, db, dsn)
	_, err = db.Exec(`UPDATE v SET status = 'x'`)
	require.Error(t, err, "the view is gone with its session, or refused while another session has it")
	require.NoError(t, db.QueryRow(`SELECT pg_backend_pid() FROM orders`).Scan(&after))
	require.NotEqual(t, before, after)
}

// A handle's reporter may use the handle while a connection is being made.
func TestReporterUsesTheHandle(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int); CREATE TABLE events (kind text)`)
	var db *sql.DB
	calls := 0
	report := func(ctx context.Context, e driver.Event) {
		if calls++; db != nil {
			_, err := db.ExecContext(ctx, `INSERT INTO events VALUES ($1)`, string(e.Kind))
			require.NoError(t, err)
		}
	}
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithLevel(driver.Report, "orders"), driver.WithReporter(report))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxIdleConns(0)
	_, err = db.Exec(`UPDATE orders SET id = 1`)
	require.NoError(t, err)
	require.Equal(t, 2, calls, "the unfit table once, then the write")
}

// A transaction stays bound to its tokens until it ends, and no longer.
func TestTransactionsOnOneConnection(t *testing.T) {
	db := openTx(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	with := func(token tokenctx.Token) context.Context { return tokenctx.With(t.Context(), token) }
	outer, err := conn.BeginTx(with(7), nil)
	require.NoError(t, err)
	for _, ctx := range []context.Context{with(9), t.Context()} {
		_, err = conn.BeginTx(ctx, nil)
		require.ErrorContains(t, err, "a transaction under a token is open")
	}
	_, err = outer.Exec(writeOrder, tokenctx.Arg)
	require.NoError(t, err)
	_, err = outer.Exec(`COMMIT`)
	require.NoError(t, err)
	_, err = outer.Exec(writeOrder, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrNoToken, "SQL has ended it")
	require.NoError(t, outer.Commit(), "a warning only, as with pgx")
	next, err := conn.BeginTx(with(9), nil)
	require.NoError(t, err)
	require.NoError(t, next.Rollback())
	var left string
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT current_setting('fencing.token', true)`).Scan(&left))
	require.Empty(t, left)
}

// A probe has a timeout of its own, whatever the role or the session has set, and
// keeps the caller's deadline.
func TestProbeKeepsItsTimeout(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema, `CREATE FUNCTION asked(bigint) RETURNS bool LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'timeout %', current_setting('statement_timeout'); END$$;
		CREATE OPERATOR !! (FUNCTION = asked, RIGHTARG = bigint)`)
	var seen []string
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool {
		seen = append(seen, err.Message)
		return true
	}
	connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Strict), driver.WithProbeTimeout(3*time.Second))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	// the guard rejects the row before the operator is asked
	const stale = `UPDATE orders SET last_token = $1 WHERE last_token < $1 AND !! id`
	deadline, cancel := context.WithDeadline(tokenctx.With(t.Context(), 3), time.Now().Add(time.Hour))
	defer cancel()
	for _, set := range []string{`RESET statement_timeout`, `SET statement_timeout = 1500`, `SET statement_timeout = 60000`} {
		_, err = db.Exec(set)
		require.NoError(t, err)
		_, err = db.ExecContext(deadline, stale, tokenctx.Arg)
		require.ErrorIs(t, err, driver.ErrUndetermined)
	}
	require.Equal(t, []string{"timeout 3s", "timeout 3s", "timeout 3s"}, seen)
	seen = nil
	near, cancelNear := context.WithTimeout(tokenctx.With(t.Context(), 3), 2*time.Second)
	defer cancelNear()
	_, err = db.ExecContext(near, stale, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrUndetermined)
	require.Len(t, seen, 1)
	require.NotEqual(t, "timeout 3s", seen[0])
}

// A probe that takes too long costs neither the session nor what it holds.
func TestSlowProbeKeepsTheSession(t *testing.T) {
	f := newFaulty(t, driver.WithProbeTimeout(20*time.Millisecond))
	f.exec(t, `CREATE FUNCTION slowly(int, int) RETURNS bool LANGUAGE sql AS 'SELECT pg_sleep(0.05) IS NOT NULL';
		CREATE OPERATOR === (FUNCTION = slowly, LEFTARG = int, RIGHTARG = int)`)
	conn, err := f.db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), `SELECT pg_advisory_lock(1)`)
	require.NoError(t, err)
	_, err = conn.ExecContext(tokenctx.With(t.Context(), 7), faultWrite+` AND n === 0`, tokenctx.Arg)
	require.NoError(t, err, "the reason can't be told")
	var held bool
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT pg_advisory_unlock(1)`).Scan(&held))
	require.True(t, held)
	var timeout string
	require.NoError(t, conn.QueryRowContext(t.Context(), `SHOW statement_timeout`).Scan(&timeout))
	require.Equal(t, "0", timeout)
}
