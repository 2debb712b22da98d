package driver_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/tokenctx"
)

// countSent counts the updates that reach the table, whatever becomes of them:
// a sequence is not rolled back, and the trigger runs before rows are locked.
const countSent = `CREATE SEQUENCE sent;
	CREATE FUNCTION count_sent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('sent'); RETURN NULL; END $$;
	CREATE TRIGGER sent BEFORE UPDATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION count_sent()`

// slowProbe makes the row newer, and the operator === slow. A guard is cheaper
// than the operator, so only the probe, which has none, waits for it.
const (
	slowProbe = `UPDATE orders SET last_token = 8;
		CREATE FUNCTION slow(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN true; END $$;
		CREATE OPERATOR === (FUNCTION = slow, LEFTARG = int, RIGHTARG = int)`
	slowWrite = faultWrite + ` AND n === 0`
)

// newCounted is newFaulty with the updates counted.
func newCounted(t *testing.T, setup ...string) faulty {
	f := newFaulty(t, driver.WithProbeTimeout(time.Minute))
	for _, sql := range append(setup, countSent) {
		f.exec(t, sql)
	}
	return f
}

// sent returns how many updates have reached the table.
func (f faulty) sent(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, f.admin.QueryRow(t.Context(), `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM sent`).Scan(&n))
	return n
}

func (f faulty) kill(t *testing.T) {
	t.Helper()
	f.exec(t, `SELECT pg_terminate_backend($1, 5000)`, f.pid)
}

// awaitBackend waits until the handle's backend is in a state.
func (f faulty) awaitBackend(t *testing.T, condition string) {
	t.Helper()
	fencetest.Eventually(t, func() bool {
		var met bool
		require.NoError(t, f.admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND `+condition+`)`, f.pid).Scan(&met))
		return met
	})
}

// awaitGone waits until the handle's backend has ended.
func (f faulty) awaitGone(t *testing.T) {
	t.Helper()
	fencetest.Eventually(t, func() bool {
		var there bool
		require.NoError(t, f.admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, f.pid).Scan(&there))
		return !there
	})
}

// requireRecovered sends a write that the handle must send once.
func (f faulty) requireRecovered(t *testing.T) {
	t.Helper()
	before, sent := f.count(t), f.sent(t)
	_, err := f.db.ExecContext(tokenctx.With(t.Context(), 9), faultWrite, tokenctx.Arg)
	require.NoError(t, err)
	require.Equal(t, before+1, f.count(t))
	require.Equal(t, sent+1, f.sent(t))
}

// A connection that ends between a write and Commit takes the write along, and
// Commit says so; nothing sends the write again.
func TestConnectionKilledBeforeCommit(t *testing.T) {
	for name, send := range map[string]func(context.Context, *sql.Tx) error{
		"Exec": func(ctx context.Context, tx *sql.Tx) error {
			return onlyError(tx.ExecContext(ctx, faultWrite, tokenctx.Arg))
		},
		"RETURNING": func(ctx context.Context, tx *sql.Tx) error {
			return drain(tx.QueryContext(ctx, faultWrite+` RETURNING id`, tokenctx.Arg))
		},
		"Stmt": func(ctx context.Context, tx *sql.Tx) error {
			stmt, err := tx.PrepareContext(ctx, faultWrite)
			if err != nil {
				return err
			}
			return onlyError(stmt.ExecContext(ctx, tokenctx.Arg))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newCounted(t)
			tx, err := f.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, send(tokenctx.With(t.Context(), 7), tx))
			f.kill(t)
			err = tx.Commit()
			require.Error(t, err)
			require.False(t, driver.NotApplied(err))
			require.Zero(t, f.count(t))
			require.Equal(t, 1, f.sent(t))
			f.requireRecovered(t)
		})
	}
}

// A connection that ends during a probe leaves the write's own answer, no row
// changed, or an error on which database/sql doesn't send the write again.
func TestConnectionKilledDuringProbe(t *testing.T) {
	type send func(ctx context.Context, tx *sql.Tx, db *sql.DB) (sql.Result, error)
	for name, test := range map[string]struct {
		tx   bool
		send send
	}{
		"DB": {false, func(ctx context.Context, _ *sql.Tx, db *sql.DB) (sql.Result, error) {
			return db.ExecContext(ctx, slowWrite, tokenctx.Arg)
		}},
		"Tx": {true, func(ctx context.Context, tx *sql.Tx, _ *sql.DB) (sql.Result, error) {
			return tx.ExecContext(ctx, slowWrite, tokenctx.Arg)
		}},
		"DB.Stmt": {false, prepareAndExec},
		"DB RETURNING": {false, func(ctx context.Context, _ *sql.Tx, db *sql.DB) (sql.Result, error) {
			return sqldriver.RowsAffected(0), drain(db.QueryContext(ctx, slowWrite+` RETURNING id`, tokenctx.Arg))
		}},
		"Tx RETURNING": {true, func(ctx context.Context, tx *sql.Tx, _ *sql.DB) (sql.Result, error) {
			return sqldriver.RowsAffected(0), drain(tx.QueryContext(ctx, slowWrite+` RETURNING id`, tokenctx.Arg))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newCounted(t, slowProbe)
			var tx *sql.Tx
			if test.tx {
				var err error
				tx, err = f.db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
			}
			var result sql.Result
			done := make(chan error, 1)
			go func() {
				var err error
				result, err = test.send(tokenctx.With(t.Context(), 7), tx, f.db)
				done <- err
			}()
			f.awaitBackend(t, `wait_event = 'PgSleep'`)
			f.kill(t)
			if err := answer(t, done); err == nil {
				n, err := result.RowsAffected()
				require.NoError(t, err)
				require.Zero(t, n)
			} else {
				require.NotErrorIs(t, err, sqldriver.ErrBadConn)
				require.False(t, driver.NotApplied(err))
			}
			require.Equal(t, 1, f.sent(t))
			if test.tx {
				require.Error(t, tx.Commit())
			}
			require.Zero(t, f.count(t))
			f.requireRecovered(t)
		})
	}
}

// answer takes an answer that a write sent again would keep waiting for.
func answer(t *testing.T, done chan error) error {
	t.Helper()
	return fencetest.Receive(t, done, "no answer: the write was sent again")
}

func prepareAndExec(ctx context.Context, _ *sql.Tx, db *sql.DB) (sql.Result, error) {
	stmt, err := db.PrepareContext(ctx, slowWrite)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	return stmt.ExecContext(ctx, tokenctx.Arg)
}

// A context that has ended sends nothing.
func TestContextCancelledBefore(t *testing.T) {
	f := newCounted(t)
	ctx, cancel := context.WithCancel(tokenctx.With(t.Context(), 7))
	stmt, err := f.db.PrepareContext(ctx, faultWrite)
	require.NoError(t, err)
	defer stmt.Close()
	cancel()
	require.ErrorIs(t, onlyError(f.db.ExecContext(ctx, faultWrite, tokenctx.Arg)), context.Canceled)
	require.ErrorIs(t, drain(f.db.QueryContext(ctx, faultWrite+` RETURNING id`, tokenctx.Arg)), context.Canceled)
	require.ErrorIs(t, onlyError(stmt.ExecContext(ctx, tokenctx.Arg)), context.Canceled)
	_, err = f.db.PrepareContext(ctx, faultWrite)
	require.ErrorIs(t, err, context.Canceled)
	_, err = f.db.BeginTx(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, f.sent(t))
	f.requireRecovered(t)
}

// A write that is cancelled while it waits for a row is not applied, and its
// transaction is over.
func TestContextCancelledWhileWaiting(t *testing.T) {
	for name, send := range map[string]func(context.Context, *sql.Tx) error{
		"Exec": func(ctx context.Context, tx *sql.Tx) error {
			return onlyError(tx.ExecContext(ctx, faultWrite, tokenctx.Arg))
		},
		"Query": func(ctx context.Context, tx *sql.Tx) error {
			return drain(tx.QueryContext(ctx, faultWrite+` RETURNING id`, tokenctx.Arg))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newCounted(t)
			f.exec(t, `BEGIN; SELECT FROM orders FOR UPDATE`)
			tx, err := f.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(tokenctx.With(t.Context(), 7))
			done := make(chan error, 1)
			go func() { done <- send(ctx, tx) }()
			f.awaitLockWait(t, true)
			cancel()
			err = <-done
			require.ErrorIs(t, err, context.Canceled)
			require.False(t, driver.NotApplied(err))
			require.Error(t, tx.Commit())
			f.awaitLockWait(t, false)
			f.exec(t, `COMMIT`)
			require.Zero(t, f.count(t))
			require.Equal(t, 1, f.sent(t))
			f.requireRecovered(t)
		})
	}
}

// A write whose rows are no longer read is applied to all rows or to none, and
// isn't sent again.
func TestContextCancelledWhileReading(t *testing.T) {
	f := newCounted(t, `INSERT INTO orders SELECT generate_series(2, 10000)`)
	ctx, cancel := context.WithCancel(tokenctx.With(t.Context(), 7))
	// more than the buffers between here and the server hold
	rows, err := f.db.QueryContext(ctx, `UPDATE orders SET n = n + 1, last_token = $1 WHERE last_token <= $1 RETURNING repeat('x', 2000)`, tokenctx.Arg)
	require.NoError(t, err)
	require.True(t, rows.Next())
	cancel()
	for rows.Next() {
	}
	require.ErrorIs(t, rows.Err(), context.Canceled)
	require.False(t, driver.NotApplied(rows.Err()))
	require.NoError(t, rows.Close())
	f.awaitGone(t)
	var counts int
	require.NoError(t, f.admin.QueryRow(t.Context(), `SELECT count(DISTINCT n) FROM orders`).Scan(&counts))
	require.Equal(t, 1, counts)
	require.LessOrEqual(t, f.count(t), 1)
	require.Equal(t, 1, f.sent(t))
	f.requireRecovered(t)
}

// A transaction whose context ends before Commit is rolled back.
func TestContextCancelledBeforeCommit(t *testing.T) {
	f := newCounted(t)
	ctx, cancel := context.WithCancel(tokenctx.With(t.Context(), 7))
	tx, err := f.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(ctx, faultWrite, tokenctx.Arg)
	require.NoError(t, err)
	cancel()
	err = tx.Commit()
	require.Error(t, err) // context.Canceled, or sql.ErrTxDone after the rollback
	require.False(t, driver.NotApplied(err))
	f.requireRecovered(t)
	require.Equal(t, 1, f.count(t), "the write after it")
	require.Equal(t, 2, f.sent(t))
}
