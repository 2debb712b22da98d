package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
)

// leasing is a server with the roles app, which may take leases, and writer,
// and a lease r that is free.
func leasing(t *testing.T, opts ...localpg.Option) (srv *localpg.Server, as func(role string) string) {
	t.Helper()
	srv = localpg.StartServer(t, opts...)
	require.NoError(t, migrations.Up(t.Context(), srv.DSN("")))
	exec(t, open(t, srv.DSN("")), `CREATE ROLE app LOGIN; CREATE ROLE writer LOGIN; GRANT USAGE ON SCHEMA fencing TO app, writer;
		GRANT EXECUTE ON FUNCTION fencing.take, fencing.renew, fencing.release TO app; GRANT SELECT, UPDATE ON fencing.lease TO writer;
		SELECT fencing.release('r', token) FROM fencing.take('r', '1 h', 'nobody any more')`)
	return srv, func(role string) string { return asRole(srv.DSN(""), role) }
}

// paused is a writer whose transaction is open, and keeps the row of a lease as
// a write keeps that of the resource's epoch.
func paused(t *testing.T, dsn string) *sql.Tx {
	t.Helper()
	tx, err := open(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	exec(t, tx, "SELECT FROM fencing.lease WHERE resource = 'r' FOR SHARE")
	return tx
}

func gone(tx *sql.Tx) bool {
	_, err := tx.Exec("SELECT")
	return err != nil
}

// takeInVain takes with more and more time until the error has the words: what Take can
// say of those who hold it up, it learns while it waits. It returns the error.
func takeInVain(t *testing.T, db *sql.DB, words string, opts ...lease.Option) error {
	t.Helper()
	for patience := 500 * time.Millisecond; ; patience *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := lease.Take(ctx, db, "r", long, opts...)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if strings.Contains(err.Error(), words) {
			return err
		}
		require.Less(t, patience, waitFor, err)
	}
}

func TestTakeEndsBlockers(t *testing.T) {
	t.Parallel()
	_, as := leasing(t)
	for name, openDB := range map[string]func(dsn string) (*sql.DB, error){
		"pgx":      func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) },
		"fencerow": func(dsn string) (*sql.DB, error) { return driver.Open(dsn) },
	} {
		t.Run(name, func(t *testing.T) {
			db, err := openDB(as("postgres"))
			require.NoError(t, err)
			defer db.Close()
			writer := paused(t, as("writer"))
			// one that waits itself is not ended, nor is one that has nothing to do with it
			queued, idle := open(t, as("writer")), paused(t, as("writer"))
			require.NoError(t, idle.Rollback())
			idle, err = open(t, as("writer")).BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer idle.Rollback()
			exec(t, idle, "SELECT 1")
			waited := make(chan error, 1)
			go func() {
				_, err := queued.ExecContext(t.Context(), "UPDATE fencing.lease SET holder = holder WHERE resource = 'r'")
				waited <- err
			}()
			fencetest.Eventually(t, func() bool {
				return get[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE fencing.lease SET holder%'") == 1
			})

			// The queued one gets the lock when the writer has gone, and has half of this time to be ready with it.
			l := take(t, db, "r", long, lease.WithEndBlockers(2*time.Second))
			require.True(t, gone(writer))
			require.False(t, gone(idle))
			require.NoError(t, <-waited)
			require.NoError(t, l.Err())
			require.NoError(t, l.Release(t.Context()))
		})
	}
}

// Who is held up by one who is held up by another: both must go.
func TestTakeEndsAChain(t *testing.T) {
	t.Parallel()
	srv, as := leasing(t)
	admin := open(t, srv.DSN(""))
	first := paused(t, as("writer"))
	second, err := open(t, as("writer")).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer second.Rollback()
	locked := make(chan error, 1)
	go func() {
		_, err := second.ExecContext(t.Context(), "UPDATE fencing.lease SET holder = holder WHERE resource = 'r'")
		locked <- err // and then it pauses
	}()
	fencetest.Eventually(t, func() bool {
		return get[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 1
	})
	take(t, admin, "r", long, lease.WithEndBlockers(20*time.Millisecond))
	<-locked // its UPDATE, or the end of its session if that came before the answer
	require.True(t, gone(first))
	require.True(t, gone(second))
}

// What it may not or can't end, it waits for, and says so.
func TestTakeCannotEndBlockers(t *testing.T) {
	t.Parallel()
	srv, as := leasing(t)
	admin := open(t, srv.DSN(""))
	const ending, needsRight = 20 * time.Millisecond, "the role may not end session "
	for _, tt := range []struct {
		name, setup string
		writer      string
		pool        int
		opts        []lease.Option
		words       string // "": it gets through
	}{
		{"not asked to", "SELECT", "writer", 0, nil, "context deadline exceeded"},
		{"no right", "SELECT", "writer", 0, []lease.Option{lease.WithEndBlockers(ending)}, needsRight},
		{"a superuser's", "GRANT pg_signal_backend TO app", "postgres", 0, []lease.Option{lease.WithEndBlockers(ending)}, needsRight},
		{"a pool of one", "SELECT", "writer", 1, []lease.Option{lease.WithEndBlockers(ending)}, "no connection was free: give the pool another"},
		{"the right", "SELECT", "writer", 0, []lease.Option{lease.WithEndBlockers(ending)}, ""},
		{"a pool of two", "SELECT", "writer", 2, []lease.Option{lease.WithEndBlockers(ending)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exec(t, admin, tt.setup)
			db := open(t, as("app"))
			db.SetMaxOpenConns(tt.pool)
			writer := paused(t, as(tt.writer))
			if tt.words == "" {
				ctx, cancel := context.WithTimeout(t.Context(), waitFor)
				defer cancel()
				l, err := lease.Take(ctx, db, "r", long, tt.opts...)
				require.NoError(t, err)
				require.True(t, gone(writer))
				require.NoError(t, l.Release(t.Context()))
				return
			}
			err := takeInVain(t, db, tt.words, tt.opts...)
			require.ErrorContains(t, err, `take lease "r"`)
			require.Equal(t, tt.words == needsRight, strings.Contains(err.Error(), "GRANT pg_signal_backend"))
			require.False(t, gone(writer))
			eventually(t, admin, 0, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") // or it takes it after all
			require.NoError(t, writer.Rollback())
		})
	}
}

// Who has a session idle in a transaction end by itself needs no more.
func TestTakeAfterIdleInTransaction(t *testing.T) {
	t.Parallel()
	srv, as := leasing(t)
	exec(t, open(t, srv.DSN("")), "ALTER ROLE writer SET idle_in_transaction_session_timeout = '100ms'")
	writer := paused(t, as("writer"))
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	l, err := lease.Take(ctx, open(t, as("app")), "r", long)
	require.NoError(t, err)
	require.True(t, gone(writer))
	require.NoError(t, l.Release(t.Context()))
}

// With the option and nobody in the way a lease is as without, also through a
// pooler and for many at once.
func TestTakeWithNobodyToEnd(t *testing.T) {
	dsn := localpg.Database(t, installed)
	config, sent := traced(t, dsn)
	config.DialFunc = pooler(t, config)
	db := closed(t, stdlib.OpenDB(*config))
	opts := []lease.Option{lease.WithEndBlockers(time.Minute), lease.WithPoll(time.Millisecond, tick)}
	errs := make(chan error)
	for range 8 {
		go func() {
			var failed error
			for range 5 {
				failed = errors.Join(failed, lease.Run(t.Context(), db, "r", long, func(context.Context) error { return nil }, opts...))
			}
			errs <- failed
		}()
	}
	for range 8 {
		require.NoError(t, <-errs)
	}
	require.NotZero(t, sent.count("begin isolation level read committed"))

	l := take(t, db, "r", long, opts...)
	_, err := lease.TryTake(t.Context(), db, "r", long, opts...)
	require.ErrorIs(t, err, lease.ErrHeld)
	require.NoError(t, l.Release(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lease.Take(ctx, db, "r", long, opts...)
	require.ErrorIs(t, err, context.Canceled)
	_, err = lease.Take(t.Context(), db, "r", long, lease.WithEndBlockers(0))
	require.ErrorContains(t, err, "end blockers after 0s: choose 1ms or more")
}

// Who isn't answered is told that a lock may be why, and not who had the lease
// before.
func TestHeldUpByAWriter(t *testing.T) {
	dsn := localpg.Database(t, installed)
	db := open(t, dsn)
	tx, err := open(t, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	exec(t, db, "SELECT fencing.take('r', '1 ms', 'other')")
	exec(t, tx, "SELECT FROM fencing.lease WHERE resource = 'r' FOR SHARE")
	err = takeInVain(t, db, "WithEndBlockers")
	require.NotErrorIs(t, err, lease.ErrHeld)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err = lease.Take(ctx, db, "r", long)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotContains(t, err.Error(), "WithEndBlockers", "it was over before")
}
