package lease_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

// A transaction that asked for more than synchronous_commit = on keeps it.
func TestSynchronousCommit(t *testing.T) {
	dsn := localpg.Database(t, installed)
	for set, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		tx, err := session(t, dsn, "SET synchronous_commit = "+set).BeginTx(t.Context(), nil)
		require.NoError(t, err)
		exec(t, tx, "SELECT fencing.next_token()")
		var got string
		require.NoError(t, tx.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&got))
		require.Equal(t, want, got, set)
		require.NoError(t, tx.Rollback())
	}
}

// A lease that was taken or renewed is held after a crash, and the next one's
// token is larger.
func TestLeaseSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	srv := localpg.StartServer(t, localpg.WithSetting("fsync", "on"), localpg.WithSetting("wal_writer_delay", "10s"))
	dsn := srv.DSN("")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	db := session(t, dsn, "SET synchronous_commit = off")
	taken := take(t, db, "taken", long, lease.WithoutRenewal())
	renewed := take(t, db, "renewed", time.Second, lease.WithoutRenewal())
	require.True(t, get[bool](t, db, "SELECT fencing.renew('renewed', $1, '1h')", int64(renewed.Token())))
	require.NoError(t, srv.Kill())
	require.NoError(t, db.Close())
	require.NoError(t, srv.Restart(t.Context()))

	db = open(t, dsn)
	for _, resource := range []string{"taken", "renewed"} {
		_, err := lease.TryTake(t.Context(), db, resource, long)
		require.ErrorIs(t, err, lease.ErrHeld)
	}
	require.True(t, get[bool](t, db, "SELECT expires_at > now() + interval '50 minutes' FROM fencing.lease WHERE resource = 'renewed'"))
	require.True(t, get[bool](t, db, "SELECT fencing.release('taken', $1)", int64(taken.Token())))
	require.Greater(t, take(t, db, "taken", long).Token(), renewed.Token())
}

// Killed while many draw: no token that was returned comes again.
func TestTokensSurviveSIGKILLUnderLoad(t *testing.T) {
	t.Parallel()
	const sessions = 8
	srv := localpg.StartServer(t, localpg.WithSetting("fsync", "on"))
	dsn := srv.DSN("")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	var seen atomic.Int64
	for round := range 3 {
		var drawn atomic.Int64
		enough := make(chan struct{})
		var wg sync.WaitGroup
		floor := seen.Load()
		low := make([]int64, sessions)
		for i := range sessions {
			db := open(t, dsn)
			wg.Go(func() {
				defer db.Close()
				for {
					token, err := lease.NextToken(t.Context(), db)
					if err != nil {
						return // killed
					}
					if low[i] == 0 {
						low[i] = int64(token)
					}
					for old := seen.Load(); old < int64(token) && !seen.CompareAndSwap(old, int64(token)); old = seen.Load() {
					}
					if drawn.Add(1) == 200 {
						close(enough)
					}
				}
			})
		}
		<-enough
		require.NoError(t, srv.Kill())
		wg.Wait()
		for _, token := range low {
			require.True(t, token == 0 || token > floor, "round %d: %d after %d", round, token, floor)
		}
		require.NoError(t, srv.Restart(t.Context()))
	}
	require.Greater(t, int64(next(t, open(t, dsn))), seen.Load())
}

// A standby gives none; promoted, it goes on far above what it may have missed.
func TestStandbyAndPromotion(t *testing.T) {
	t.Parallel()
	srv := localpg.StartServer(t)
	dsn := srv.DSN("")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	db := open(t, dsn)
	require.Equal(t, tokenctx.Token(1), next(t, db))
	require.NoError(t, db.Close())

	// a standby of nobody: it has all the WAL there is, and waits to be promoted
	require.NoError(t, os.WriteFile(filepath.Join(srv.DataDir(), "standby.signal"), nil, 0o644))
	require.NoError(t, srv.Restart(t.Context()))
	db = open(t, dsn)
	_, err := lease.NextToken(t.Context(), db)
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "25006", pg.Code)
	require.ErrorContains(t, err, "connect to the primary")
	_, err = lease.TryTake(t.Context(), db, "r", long)
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "25006", pg.Code)
	require.ErrorContains(t, err, "connect to the primary")
	require.NoError(t, migrations.Up(t.Context(), dsn), "there is nothing to do")

	exec(t, db, "SELECT pg_promote(true, 60)")
	first := next(t, db)
	require.Greater(t, int64(first), int64(time.Since(time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC))/time.Second)<<32)
	require.Equal(t, first+1, next(t, db), "it jumps once")
}
