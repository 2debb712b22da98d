package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/tokenctx"
)

const (
	long    = time.Minute // a lease that doesn't end during a test
	waitFor = fencetest.Patience
	tick    = 5 * time.Millisecond // between two looks of who waits

	// A renewal is given up after this time: it is enough for one that has to connect.
	renewEvery = 300 * time.Millisecond
)

// take takes a free lease, released with the test.
func take(t testing.TB, db *sql.DB, resource string, ttl time.Duration, opts ...lease.Option) *lease.Lease {
	t.Helper()
	l, err := lease.TryTake(t.Context(), db, resource, ttl, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

// get is the one value of a query.
func get[T any](t testing.TB, db *sql.DB, query string, args ...any) T {
	t.Helper()
	var v T
	require.NoError(t, db.QueryRowContext(t.Context(), query, args...).Scan(&v), query)
	return v
}

// ended waits for a lease to end.
func ended(t testing.TB, l *lease.Lease) error {
	t.Helper()
	fencetest.Receive(t, l.Done(), "the lease goes on")
	return l.Err()
}

// lockRow has everybody else wait for the row of a lease until it is called.
func lockRow(t testing.TB, db *sql.DB, resource string) (unlock func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	var token int64
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT token FROM fencing.lease WHERE resource = $1 FOR UPDATE", resource).Scan(&token))
	return func() { require.NoError(t, tx.Rollback()) }
}

// waiting is a session that waits for a lock in a call of the function.
const waiting = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%fencing.' || $1 || '(%'`

func TestTakeRenewRelease(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	l := take(t, db, "nightly", long, lease.WithHolder("first"), lease.WithRenewEvery(renewEvery))
	require.Equal(t, "nightly", l.Resource())
	require.Equal(t, "first", l.Holder())
	require.True(t, l.Token().Valid())
	require.NoError(t, l.Err())

	before := get[time.Time](t, db, "SELECT expires_at FROM fencing.lease")
	fencetest.Eventually(t, func() bool { return get[time.Time](t, db, "SELECT expires_at FROM fencing.lease").After(before) })

	for range 2 { // the same name doesn't help
		_, err := lease.TryTake(t.Context(), db, "nightly", long, lease.WithHolder("first"))
		require.ErrorIs(t, err, lease.ErrHeld)
		var held *lease.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "first", held.Holder)
		require.InDelta(t, long, held.Remaining, float64(30*time.Second))
		require.ErrorContains(t, err, `lease "nightly" is held by "first" for another `)
	}
	other := take(t, db, "hourly", long)
	require.Regexp(t, `^.+/[0-9]+/[A-Z0-9]{8}$`, other.Holder())

	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, l.Release(t.Context()), "again")
	require.ErrorIs(t, ended(t, l), lease.ErrReleased)
	next := take(t, db, "nightly", long)
	require.Greater(t, next.Token(), l.Token())
	require.NoError(t, l.Release(t.Context()), "and still")
	require.NoError(t, next.Err())
	require.Equal(t, next.Holder(), get[string](t, db, "SELECT holder FROM fencing.lease WHERE resource = 'nightly'"))
}

// Without renewal a lease ends here no later than in the database.
func TestExpiry(t *testing.T) {
	t.Parallel()
	db := open(t, localpg.Database(t, installed))
	l := take(t, db, "r", time.Second, lease.WithoutRenewal())
	ctx := l.Context(t.Context())
	err := ended(t, l)
	require.ErrorIs(t, err, lease.ErrLost)
	require.NotErrorIs(t, err, lease.ErrReleased)
	require.ErrorContains(t, err, `the 1s of "r" are over`)
	<-ctx.Done()
	require.Equal(t, err, context.Cause(ctx))
	require.ErrorIs(t, context.Cause(l.Context(t.Context())), lease.ErrLost, "one made afterwards has ended")

	next, err := lease.Take(t.Context(), db, "r", long, lease.WithPoll(tick, tick))
	require.NoError(t, err)
	require.Greater(t, next.Token(), l.Token())
	require.ErrorIs(t, l.Release(t.Context()), lease.ErrLost)
	require.ErrorIs(t, l.Release(t.Context()), lease.ErrLost, "again")
	require.NoError(t, next.Release(t.Context()), "the old holder's release didn't touch it")
}

// A holder whose renewals don't come through is out before another gets in.
func TestRenewalBlocked(t *testing.T) {
	t.Parallel()
	db := open(t, localpg.Database(t, installed))
	l := take(t, db, "r", 2*time.Second)
	unlock := lockRow(t, db, "r")
	err := ended(t, l)
	require.ErrorIs(t, err, lease.ErrLost)
	require.ErrorContains(t, err, `"r" was not renewed within 2s`)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	unlock()
	next, err := lease.Take(t.Context(), db, "r", long)
	require.NoError(t, err)
	require.Greater(t, next.Token(), l.Token())
	require.NoError(t, next.Release(t.Context()))
}

// A renewal whose connection breaks is tried again, and the lease goes on.
func TestRenewalLost(t *testing.T) {
	t.Parallel()
	db := open(t, localpg.Database(t, installed))
	l := take(t, db, "r", long, lease.WithRenewEvery(renewEvery))
	exec(t, db, "UPDATE fencing.lease SET expires_at = '2100-01-01'")
	unlock := lockRow(t, db, "r")
	fencetest.Eventually(t, func() bool {
		return get[int](t, db, "SELECT count(pg_terminate_backend(pid)) "+waiting, "renew") > 0
	})
	unlock()
	fencetest.Eventually(t, func() bool {
		return get[bool](t, db, "SELECT expires_at < '2100-01-01' FROM fencing.lease")
	})
	require.NoError(t, l.Err())
	require.NoError(t, l.Release(t.Context()))
}

func TestRenewalRefused(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	l := take(t, db, "r", long, lease.WithRenewEvery(renewEvery))
	ctx := l.Context(t.Context())
	exec(t, db, "UPDATE fencing.lease SET token = fencing.next_token()")
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), lease.ErrLost)
	require.ErrorContains(t, context.Cause(ctx), `the database refused to renew "r"`)
	require.ErrorIs(t, l.Release(t.Context()), lease.ErrLost)

	// nobody has asked the database before the release
	l = take(t, db, "s", long)
	exec(t, db, "UPDATE fencing.lease SET token = fencing.next_token()")
	require.ErrorIs(t, l.Release(t.Context()), lease.ErrLost)
}

// A release whose answer was lost may be called again, and isn't taken for a
// loss if it was the one that released.
func TestReleaseAgain(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	l := take(t, db, "r", long, lease.WithoutRenewal())
	unlock := lockRow(t, db, "r")
	released := make(chan error, 1)
	go func() { released <- l.Release(t.Context()) }()
	fencetest.Eventually(t, func() bool {
		return get[int](t, db, "SELECT count(pg_terminate_backend(pid)) "+waiting, "release") > 0
	})
	require.ErrorContains(t, <-released, `release lease "r"`)
	require.ErrorIs(t, l.Err(), lease.ErrReleased)
	unlock()
	require.True(t, get[bool](t, db, "SELECT fencing.release('r', $1)", int64(l.Token())))
	require.NoError(t, l.Release(t.Context()))

	l = take(t, db, "s", long)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Release(ctx), context.Canceled)
	require.NoError(t, l.Release(t.Context()))
}

// The lease's contexts, of which there may be many, end with it or before.
func TestContexts(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	l := take(t, db, "billing", long)
	outer, cancel := context.WithCancelCause(tokenctx.With(t.Context(), 4711))
	one, another := l.Context(outer), l.Context(t.Context())
	for _, ctx := range []context.Context{one, another} {
		token, ok := tokenctx.From(ctx)
		require.True(t, ok)
		require.Equal(t, l.Token(), token)
		token, ok = tokenctx.FromResource(ctx, "billing")
		require.True(t, ok)
		require.Equal(t, l.Token(), token)
	}
	mine := errors.New("enough")
	cancel(mine)
	require.Equal(t, mine, context.Cause(one))
	require.NoError(t, another.Err())
	require.NoError(t, l.Err())

	tokenctx.ReportStale(another, "", l.Token()+1)
	tokenctx.ReportStale(another, "orders", l.Token())
	require.NoError(t, another.Err(), "not this lease's")
	tokenctx.ReportStale(one, "billing", l.Token())
	require.ErrorIs(t, context.Cause(another), lease.ErrLost)
	require.ErrorContains(t, context.Cause(another), `a write under token `+l.Token().String()+` of "billing" was stale`)
	require.ErrorIs(t, l.Release(t.Context()), lease.ErrLost)
	require.NotErrorIs(t, l.Err(), lease.ErrReleased)
	take(t, db, "billing", long) // released all the same
}

// A lease whose row was deleted says so, whoever finds out first.
func TestDeletedLease(t *testing.T) {
	t.Parallel()
	db := open(t, localpg.Database(t, installed))
	renewed, released := take(t, db, "renewed", long, lease.WithRenewEvery(tick)), take(t, db, "released", long)
	_, err := db.ExecContext(t.Context(), `DELETE FROM fencing.lease`)
	require.NoError(t, err)
	err = ended(t, renewed)
	require.ErrorIs(t, err, lease.ErrLost)
	require.ErrorContains(t, err, `the row of "renewed" was deleted from fencing.lease`)
	err = released.Release(t.Context())
	require.ErrorIs(t, err, lease.ErrLost)
	require.ErrorContains(t, err, `the row of "released" was deleted from fencing.lease`)
}
