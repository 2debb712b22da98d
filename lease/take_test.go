package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
)

// Two want one lease: the second gets it when the first releases it.
func TestTakeWaits(t *testing.T) {
	dsn := localpg.Database(t, installed)
	first := take(t, open(t, dsn), "r", long)
	db := open(t, dsn)
	got := make(chan *lease.Lease)
	go func() {
		l, err := lease.Take(t.Context(), db, "r", long, lease.WithPoll(time.Millisecond, tick))
		require.NoError(t, err)
		got <- l
	}()
	fencetest.Eventually(t, func() bool {
		return get[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query LIKE '%fencing.take(%'") == 2
	}, "it has been told that another has it")
	select {
	case <-got:
		require.Fail(t, "two have it")
	default:
	}
	require.NoError(t, first.Release(t.Context()))
	second := <-got
	require.Greater(t, second.Token(), first.Token())
	require.NoError(t, second.Release(t.Context()))
}

func TestTakeGivesUp(t *testing.T) {
	t.Parallel()
	db := open(t, localpg.Database(t, installed))
	take(t, db, "r", long, lease.WithHolder("first"))
	shutdown := errors.New("shutdown")
	const patience = 2 * time.Second // enough for one answer of a busy server, which says who has the lease
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, patience)
		},
		"cause": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, patience, shutdown)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := end(t.Context())
			defer cancel()
			_, err := lease.Take(ctx, db, "r", long, lease.WithPoll(time.Millisecond, tick))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, name == "cause", errors.Is(err, shutdown))
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorContains(t, err, `held by "first"`)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range []func(context.Context, *sql.DB, string, time.Duration, ...lease.Option) (*lease.Lease, error){lease.Take, lease.TryTake} {
		_, err := call(ctx, db, "free", long)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, `take lease "free"`)
	}
}

// Many want one lease, and some of them die with it: there is one holder at a
// time by what the holders can know, and each has a larger token than the last.
func TestManyContenders(t *testing.T) {
	t.Parallel()
	const contenders, rounds = 24, 4
	dsn := localpg.Database(t, installed)
	var (
		mu     sync.Mutex
		tokens []int64 // in the order of the holders
		inside atomic.Int32
		wg     sync.WaitGroup
	)
	errs := make([]error, contenders)
	for i := range contenders {
		db := open(t, dsn)
		wg.Go(func() {
			for round := range rounds {
				opts := []lease.Option{lease.WithPoll(time.Millisecond, 20*time.Millisecond)}
				dies := (i+round)%12 == 0
				if dies {
					opts = append(opts, lease.WithoutRenewal())
				}
				l, err := lease.Take(t.Context(), db, "r", map[bool]time.Duration{true: 50 * time.Millisecond, false: long}[dies], opts...)
				if errors.Is(err, lease.ErrLost) {
					continue // the machine was slow
				}
				if err != nil {
					errs[i] = err
					return
				}
				mu.Lock()
				tokens = append(tokens, int64(l.Token()))
				mu.Unlock()
				if dies {
					<-l.Done()
					continue
				}
				if inside.Add(1) != 1 {
					errs[i] = errors.New("two are inside")
				}
				inside.Add(-1)
				errs[i] = errors.Join(errs[i], l.Release(t.Context()))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Greater(t, len(tokens), contenders*rounds/2)
	require.IsIncreasing(t, tokens)
}

// In sessions whose transactions are SERIALIZABLE by default the loser of a race
// is told what it is told elsewhere.
func TestSerializableSessions(t *testing.T) {
	t.Parallel()
	dsn := localpg.Database(t, installed)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		db := session(t, dsn, "SET default_transaction_isolation = serializable")
		wg.Go(func() {
			for range 5 {
				errs[i] = errors.Join(errs[i], lease.Run(t.Context(), db, "r", long, func(context.Context) error { return nil },
					lease.WithPoll(time.Millisecond, tick), lease.WithoutRenewal()))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

// A grant whose answer took longer than the lease lasts is given back.
func TestTakeTooSlow(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	require.NoError(t, take(t, db, "r", long).Release(t.Context()))
	unlock := lockRow(t, db, "r")
	failed := make(chan error, 1)
	go func() {
		_, err := lease.TryTake(t.Context(), db, "r", 50*time.Millisecond)
		failed <- err
	}()
	fencetest.Eventually(t, func() bool {
		return get[bool](t, db, "SELECT coalesce(bool_or(clock_timestamp() - query_start > '60ms'), false) "+waiting, "take")
	})
	unlock()
	err := <-failed
	require.ErrorIs(t, err, lease.ErrLost)
	require.ErrorContains(t, err, "the answer took longer than the lease's 50ms: choose a longer time to live")
}

func TestTakeBounds(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	for _, tt := range []struct {
		db       *sql.DB
		resource string
		ttl      time.Duration
		opt      lease.Option
		words    string
	}{
		{nil, "r", long, nil, "no database"},
		{db, "", long, nil, "the resource's name has 0 characters: choose 1 to 255"},
		{db, strings.Repeat("é", 256), long, nil, "has 256 characters"},
		{db, "a\x00b", long, nil, "must be UTF-8 without a zero byte"},
		{db, "a\xffb", long, nil, "must be UTF-8 without a zero byte"},
		{db, "r", 0, nil, "a time to live of 0s: choose 1ms to 24h0m0s"},
		{db, "r", -time.Second, nil, "choose 1ms to 24h0m0s"},
		{db, "r", 24*time.Hour + time.Microsecond, nil, "choose 1ms to 24h0m0s"},
		{db, "r", long, lease.WithHolder(""), "the holder's name has 0 characters"},
		{db, "r", long, lease.WithRenewEvery(0), "renewal every 0s: choose more than 0"},
		{db, "r", long, lease.WithRenewEvery(long), "less than the time to live of 1m0s"},
		{db, "r", long, lease.WithPoll(0, 1), "choose more than 0"},
		{db, "r", long, lease.WithPoll(2, 1), "the longest no shorter than the shortest"},
	} {
		t.Run(tt.words, func(t *testing.T) {
			var opts []lease.Option
			if tt.opt != nil {
				opts = append(opts, tt.opt)
			}
			for _, call := range []func(context.Context, *sql.DB, string, time.Duration, ...lease.Option) (*lease.Lease, error){lease.Take, lease.TryTake} {
				_, err := call(t.Context(), tt.db, tt.resource, tt.ttl, opts...)
				require.ErrorContains(t, err, tt.words)
				require.ErrorContains(t, err, fmt.Sprintf("take lease %q: ", tt.resource))
			}
		})
	}
	for _, l := range []*lease.Lease{
		take(t, db, strings.Repeat("é", 255), 24*time.Hour, lease.WithHolder(strings.Repeat("é", 255))),
		take(t, db, `it's "r"`, 24*time.Hour),
	} {
		require.NoError(t, l.Release(t.Context()))
	}
}

func TestTakeErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup string // in the session that takes
		from  []localpg.Template
		state string
		words string
	}{
		{"not installed", "SELECT", nil, "3F000", "schema fencing is not installed in this database: run migrations.Up"},
		{"an older version", "CREATE SCHEMA fencing", nil, "42883", "which makes fencing.take"},
		{"no right on the function", "GRANT USAGE ON SCHEMA fencing TO pg_monitor; SET ROLE pg_monitor", []localpg.Template{installed},
			"42501", "EXECUTE ON FUNCTION fencing.take"},
		{"read-only", "SET default_transaction_read_only = on", []localpg.Template{installed}, "25006", "connect to the primary"},
		{"used up", "SELECT fencing.next_token(); SELECT setval('fencing.write_epoch', 9223372036854775807)", []localpg.Template{installed}, "2200H", "NO MAXVALUE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := session(t, localpg.Database(t, tt.from...), tt.setup)
			_, err := lease.Take(t.Context(), db, "r", long)
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg)
			require.Equal(t, tt.state, pg.Code)
			require.ErrorContains(t, err, `take lease "r"`)
			require.ErrorContains(t, err, tt.words)
		})
	}
}
