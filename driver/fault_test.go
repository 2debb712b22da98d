package driver_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const faultWrite = `UPDATE orders SET n = n + 1, last_token = $1 WHERE id = 1 AND last_token <= $1`

// faulty is a handle with one connection, and an administrator beside it.
type faulty struct {
	db    *sql.DB
	admin *pgx.Conn
	pid   int
}

func newFaulty(t *testing.T, opts ...driver.Option) faulty {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 0, 0)`)
	db, err := driver.Open(dsn, append(opts, driver.Protect("orders", rewrite.Lease))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	f := faulty{db: db, admin: admin}
	require.NoError(t, db.QueryRow(`SELECT pg_backend_pid()`).Scan(&f.pid))
	return f
}

func (f faulty) exec(t *testing.T, sql string, args ...any) {
	_, err := f.admin.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

// count returns how often the row was written.
func (f faulty) count(t *testing.T) (n int) {
	require.NoError(t, f.admin.QueryRow(t.Context(), `SELECT n FROM orders WHERE id = 1`).Scan(&n))
	return n
}

// awaitLockWait waits until the handle's backend waits for a lock, or does no
// longer.
func (f faulty) awaitLockWait(t *testing.T, want bool) {
	fencetest.Eventually(t, func() bool {
		var waits bool
		require.NoError(t, f.admin.QueryRow(t.Context(), `SELECT cardinality(pg_blocking_pids($1)) > 0`, f.pid).Scan(&waits))
		return waits == want
	})
}

func (f faulty) send(ctx context.Context) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := f.db.ExecContext(tokenctx.With(ctx, 7), faultWrite, tokenctx.Arg)
		done <- err
	}()
	return done
}

// A connection that was ended while it was idle is replaced; the write is sent
// once.
func TestConnectionKilledBefore(t *testing.T) {
	f := newFaulty(t)
	f.exec(t, `SELECT pg_terminate_backend($1, 5000)`, f.pid)
	err := <-f.send(t.Context())
	if err != nil { // the write met the closed connection, as with pgx alone
		require.False(t, driver.NotApplied(err))
		require.NoError(t, <-f.send(t.Context()))
	}
	require.Equal(t, 1, f.count(t))
}

// A connection that is ended in the middle of a write gives pgx's own error,
// which says nothing of the outcome; the write is not sent again.
func TestConnectionKilledDuring(t *testing.T) {
	f := newFaulty(t)
	f.exec(t, `BEGIN; UPDATE orders SET id = 1`)
	done := f.send(t.Context())
	f.awaitLockWait(t, true)
	f.exec(t, `SELECT pg_terminate_backend($1, 5000)`, f.pid)
	err := <-done
	require.Error(t, err)
	require.False(t, driver.NotApplied(err))
	f.exec(t, `COMMIT`)
	require.Zero(t, f.count(t))
	require.NoError(t, <-f.send(t.Context()), "the pool has another connection")
	require.Equal(t, 1, f.count(t))
}

// A write whose context ends in the middle is over; the handle goes on.
func TestContextCancelledDuring(t *testing.T) {
	f := newFaulty(t)
	f.exec(t, `BEGIN; UPDATE orders SET id = 1`)
	ctx, cancel := context.WithCancel(t.Context())
	done := f.send(ctx)
	f.awaitLockWait(t, true)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	f.awaitLockWait(t, false)
	f.exec(t, `COMMIT`)
	require.NoError(t, <-f.send(t.Context()))
	require.Equal(t, 1, f.count(t))

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, <-f.send(cancelled), context.Canceled)
	require.Equal(t, 1, f.count(t))
}

// A probe that can't be answered in time leaves the outcome open, and says why; inside
// a transaction it takes nothing along.
func TestProbeIsCutShort(t *testing.T) {
	f := newFaulty(t, driver.WithProbeTimeout(200*time.Millisecond))
	// the guard is cheaper than the operator: only the probe, without it, asks
	f.exec(t, `UPDATE orders SET last_token = 8;
		CREATE FUNCTION slow(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN true; END $$;
		CREATE OPERATOR === (FUNCTION = slow, LEFTARG = int, RIGHTARG = int)`)
	const slow = faultWrite + ` AND n === 0`
	requireOpen := func(_ sql.Result, err error) {
		t.Helper()
		require.ErrorIs(t, err, driver.ErrUndetermined)
		var timeout *pgconn.PgError
		require.ErrorAs(t, err, &timeout)
		require.Equal(t, "57014", timeout.Code)
		require.False(t, driver.NotApplied(err))
	}
	ctx := tokenctx.With(t.Context(), 7)
	tx, err := f.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec(`INSERT INTO orders (id) VALUES (2)`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	_, err = tx.Exec(`CREATE TABLE kept (id int)`)
	require.NoError(t, err)
	requireOpen(tx.ExecContext(ctx, slow, tokenctx.Arg))
	var timeout string
	require.NoError(t, tx.QueryRow(`SHOW statement_timeout`).Scan(&timeout))
	require.Equal(t, "0", timeout)
	require.NoError(t, tx.Commit())
	f.exec(t, `SELECT FROM kept`)

	requireOpen(f.db.ExecContext(ctx, slow, tokenctx.Arg))
	_, err = f.db.ExecContext(ctx, faultWrite, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale, "the handle has another connection")
}

// Sixty-four requests with tokens of their own share four connections: no
// token travels on another's statement, and none is sent twice.
func TestTokensStayWithTheirRequests(t *testing.T) {
	f := newFaulty(t)
	f.db.SetMaxOpenConns(4)
	f.exec(t, `CREATE TABLE seen (id bigint PRIMARY KEY, n int DEFAULT 0, last_token bigint NOT NULL DEFAULT 0); INSERT INTO seen (id) SELECT generate_series(1, 64)`)
	connector, err := driver.Open(f.admin.Config().ConnString(), driver.Protect("seen", rewrite.Strict))
	require.NoError(t, err)
	defer connector.Close()
	connector.SetMaxOpenConns(4)
	errs := make(chan error, 64)
	for i := 1; i <= 64; i++ {
		go func() {
			ctx := tokenctx.With(t.Context(), tokenctx.Token(1000+i))
			for range 5 {
				_, err := connector.ExecContext(ctx, `UPDATE seen SET n = n + 1, last_token = $1 WHERE id = $2 AND last_token < $1`, tokenctx.Arg, i)
				if err != nil && !driver.NotApplied(err) {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 64 {
		require.NoError(t, <-errs)
	}
	var wrong int
	require.NoError(t, f.admin.QueryRow(t.Context(), `SELECT count(*) FROM seen WHERE last_token <> 1000 + id OR n <> 1`).Scan(&wrong))
	require.Zero(t, wrong)
}
