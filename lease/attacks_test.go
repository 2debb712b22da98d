package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
)

// A COMMIT that waits for a standby is not ended, also where the taker's role
// can't see in pg_stat_activity what other roles' sessions wait for: "never one
// whose COMMIT waits for a standby" (docs/tokens.md).
func TestTakeSparesACommitThatWaitsForAStandby(t *testing.T) {
	t.Parallel()
	srv, as := leasing(t)
	exec(t, open(t, srv.DSN("")), "GRANT pg_signal_backend TO app")
	exec(t, open(t, srv.DSN("")), "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	// A COMMIT waits once the checkpointer has read the setting, and nothing tells when it
	// has after a reload. After a start it has before its first checkpoint.
	require.NoError(t, srv.Restart(t.Context()))
	admin := open(t, srv.DSN(""))
	exec(t, admin, "CHECKPOINT")
	writer := paused(t, as("writer"))
	exec(t, writer, "UPDATE fencing.lease SET holder = holder WHERE resource = 'r'")
	committed := make(chan error, 1)
	go func() { committed <- writer.Commit() }()
	eventually(t, admin, 1, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

	takeInVain(t, open(t, as("app")), "pg_read_all_stats", lease.WithEndBlockers(20*time.Millisecond))
	var ended error
	select {
	case ended = <-committed:
		ended = errors.Join(errors.New("the COMMIT was ended"), ended)
	default:
	}
	exec(t, admin, "ALTER SYSTEM RESET synchronous_standby_names")
	exec(t, admin, "SELECT pg_reload_conf()")
	require.NoError(t, ended)
	require.NoError(t, <-committed)
}

// What the taker's error says where a prepared transaction holds it up, which
// has no session to end.
func TestTakeHeldUpByAPreparedTransaction(t *testing.T) {
	t.Parallel()
	srv, as := leasing(t, localpg.WithSetting("max_prepared_transactions", "5"))
	admin := open(t, srv.DSN(""))
	conn, err := admin.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	for _, sql := range []string{"BEGIN", "SELECT pg_advisory_xact_lock_shared(hashtextextended('r', 1717923427))", "CREATE TABLE x ()",
		"PREPARE TRANSACTION 'p'"} {
		_, err := conn.ExecContext(t.Context(), sql)
		require.NoError(t, err)
	}
	t.Log(takeInVain(t, open(t, as("postgres")), "prepared", lease.WithEndBlockers(20*time.Millisecond)))
	_, err = conn.ExecContext(t.Context(), "ROLLBACK PREPARED 'p'")
	require.NoError(t, err)
}

// A writer's open transaction holds a taker with a lock_timeout up: the error
// must not say that another is taking the lease.
func TestTryTakeBehindAWriterWithALockTimeout(t *testing.T) {
	dsn := localpg.Database(t, installed)
	db := session(t, dsn, "SET lock_timeout = '20ms'")
	exec(t, db, "SELECT fencing.release('r', token) FROM fencing.take('r', '1 h', 'nobody any more')")
	tx, err := open(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	exec(t, tx, "SELECT pg_advisory_xact_lock_shared(hashtextextended('r', 1717923427))")
	_, err = lease.TryTake(t.Context(), db, "r", long)
	t.Log(err)
	require.ErrorContains(t, err, "open transaction")
	t.Log(takeInVain(t, db, "open transaction"))
}

// A taker without a lock_timeout: the error when ctx ends says nothing of what
// it waited for.
func TestTakeBehindAWriterSaysWhatToDo(t *testing.T) {
	dsn := localpg.Database(t, installed)
	db := open(t, dsn)
	exec(t, db, "SELECT fencing.release('r', token) FROM fencing.take('r', '1 h', 'nobody any more')")
	tx, err := open(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	exec(t, tx, "SELECT pg_advisory_xact_lock_shared(hashtextextended('r', 1717923427))")
	t.Log(takeInVain(t, db, "WithEndBlockers"))
	db2 := session(t, dsn, "SET statement_timeout = '100ms'")
	_, err = lease.Take(t.Context(), db2, "r", long)
	t.Log(err)
	require.ErrorContains(t, err, "statement_timeout")
}

// The pool is made smaller while the hub listens: the renewals of leases that
// are held over it must not starve.
func TestPoolMadeSmallerWhileListening(t *testing.T) {
	t.Parallel()
	dsn := localpg.Database(t, installed)
	db, _ := openers["pgx"](t, dsn)
	other := held(t, dsn, "r")
	mine := take(t, db, "mine", long, lease.WithRenewEvery(500*time.Millisecond))
	got := takeLater(t, db, "r")
	watch := open(t, dsn)
	eventually(t, watch, 1, listening)
	db.SetMaxOpenConns(1)
	eventually(t, watch, 0, listening)
	renewed := get[time.Time](t, watch, "SELECT expires_at FROM fencing.lease WHERE resource = 'mine'")
	fencetest.Eventually(t, func() bool {
		return get[time.Time](t, watch, "SELECT expires_at FROM fencing.lease WHERE resource = 'mine'").After(renewed)
	})
	require.NoError(t, mine.Err())
	require.NoError(t, other.Release(t.Context()))
	l := <-got
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, mine.Release(t.Context()))
}

// The handle is closed while somebody waits.
func TestHandleClosedWhileWaiting(t *testing.T) {
	dsn := localpg.Database(t, installed)
	db, _ := openers["pgx"](t, dsn)
	held(t, dsn, "r")
	failed := make(chan error, 1)
	go func() {
		_, err := lease.Take(t.Context(), db, "r", long)
		failed <- err
	}()
	watch := open(t, dsn)
	eventually(t, watch, 1, listening)
	require.NoError(t, db.Close())
	err := fencetest.Receive(t, failed, "still waiting")
	t.Log(err)
	require.ErrorContains(t, err, "closed")
	eventually(t, watch, 0, listening)
}

// Many who take one lease in one process, while a paused writer of another
// holds the take-over up, must leave the pool a connection for renewals.
func TestTakersLeaveAConnectionForRenewals(t *testing.T) {
	dsn := localpg.Database(t, installed)
	db := open(t, dsn)
	db.SetMaxOpenConns(5)
	exec(t, db, "SELECT fencing.release('r', token) FROM fencing.take('r', '1 h', 'nobody any more')")
	mine := take(t, db, "mine", long, lease.WithRenewEvery(500*time.Millisecond))
	tx, err := open(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	exec(t, tx, "SELECT pg_advisory_xact_lock_shared(hashtextextended('r', 1717923427))")
	taking, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []<-chan *lease.Lease
	for range 6 {
		ended := make(chan *lease.Lease, 1)
		got = append(got, ended)
		go func() {
			l, _ := lease.Take(taking, db, "r", long)
			ended <- l
		}()
	}
	watch := open(t, dsn)
	eventually(t, watch, 3, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%fencing.take%' AND wait_event_type = 'Lock'")
	renewed := get[time.Time](t, watch, "SELECT expires_at FROM fencing.lease WHERE resource = 'mine'")
	fencetest.Eventually(t, func() bool {
		return get[time.Time](t, watch, "SELECT expires_at FROM fencing.lease WHERE resource = 'mine'").After(renewed.Add(time.Second))
	})
	held := mine.Err()
	cancel()
	require.NoError(t, tx.Rollback())
	for _, ended := range got {
		if l := <-ended; l != nil {
			require.NoError(t, l.Release(t.Context()))
		}
	}
	require.NoError(t, held)
	require.NoError(t, mine.Release(t.Context()))
}

// Of 200,000 names of leases four pairs have one hashtext. Who takes the one
// waits for no writer of the other, and ends none.
func TestLeasesOfOneHash(t *testing.T) {
	dsn := localpg.Database(t, installed)
	db := open(t, dsn)
	exec(t, db, "CREATE TABLE t (id int PRIMARY KEY, tenant text NOT NULL)")
	exec(t, db, "SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.seal('t', by_column => 'tenant')")
	mine := take(t, db, "tenant-60489", long)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.Exec("INSERT INTO t VALUES (1, 'tenant-60489', $1)", int64(mine.Token()))
	require.NoError(t, err)
	exec(t, db, "SELECT fencing.release('tenant-120827', token) FROM fencing.take('tenant-120827', '1 h', 'nobody any more')")
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	other, err := lease.Take(ctx, db, "tenant-120827", long, lease.WithEndBlockers(20*time.Millisecond))
	require.NoError(t, err)
	require.NoError(t, mine.Err())
	require.NoError(t, tx.Commit())
	require.NoError(t, other.Release(t.Context()))
	require.NoError(t, mine.Release(t.Context()))
}
