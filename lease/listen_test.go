package lease_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/rewrite"
)

// listening counts the sessions that listen.
const listening = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN fencerow_lease' AND state = 'idle'`

// sent records the statements of a handle, once they are answered.
type sent struct {
	mu    sync.Mutex
	takes map[string]int // by resource
	other map[string]int
}

type sentKey struct{}

func (s *sent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, sentKey{}, data)
}

func (s *sent) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	data := ctx.Value(sentKey{}).(pgx.TraceQueryStartData)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(data.SQL, "fencing.take(") {
		s.other[data.SQL]++
		return
	}
	resource := slices.IndexFunc(data.Args, func(arg any) bool { _, ok := arg.(string); return ok }) // after pgx's options
	s.takes[data.Args[resource].(string)]++
}

func (s *sent) taken(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takes[resource]
}

func (s *sent) count(sql string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.other[sql]
}

// openers open a handle that records what is sent to the server.
var openers = map[string]func(t *testing.T, dsn string) (*sql.DB, *sent){
	"pgx": func(t *testing.T, dsn string) (*sql.DB, *sent) {
		config, s := traced(t, dsn)
		return closed(t, stdlib.OpenDB(*config)), s
	},
	"fencerow": func(t *testing.T, dsn string) (*sql.DB, *sent) {
		config, s := traced(t, dsn)
		connector, err := driver.NewConnector(*config)
		require.NoError(t, err)
		return closed(t, sql.OpenDB(connector)), s
	},
}

func traced(t *testing.T, dsn string) (*pgx.ConnConfig, *sent) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	s := &sent{takes: make(map[string]int), other: make(map[string]int)}
	config.Tracer = s
	return config, s
}

func closed(t *testing.T, db *sql.DB) *sql.DB {
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// hourly has a waiter look no more than once in half an hour by itself.
func hourly() lease.Option { return lease.WithPoll(time.Hour, time.Hour) }

// held is a lease of another, which doesn't end by itself.
func held(t *testing.T, dsn, resource string) *lease.Lease {
	t.Helper()
	return take(t, open(t, dsn), resource, 24*time.Hour, lease.WithoutRenewal())
}

// takeLater takes in the background.
func takeLater(t *testing.T, db *sql.DB, resource string, opts ...lease.Option) <-chan *lease.Lease {
	t.Helper()
	got := make(chan *lease.Lease, 1)
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	t.Cleanup(cancel)
	go func() {
		l, err := lease.Take(ctx, db, resource, 24*time.Hour, append(opts, lease.WithoutRenewal())...)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	return got
}

// eventually waits for the number that a query counts.
func eventually(t *testing.T, db *sql.DB, want int, query string) {
	t.Helper()
	fencetest.EventuallyEqual(t, want, func() int { return get[int](t, db, query) }, query, fencetest.Activity(t, db))
}

// A release wakes who waits for that resource, one at a time, and nobody else.
func TestTakeHearsOfReleases(t *testing.T) {
	for name, openSent := range openers {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			watch := open(t, dsn)
			db, sent := openSent(t, dsn)
			r, s := held(t, dsn, "r"), held(t, dsn, "it's")
			looked := func(resource string, times int) {
				t.Helper()
				fencetest.Eventually(t, func() bool { return sent.taken(resource) == times })
			}
			got := []<-chan *lease.Lease{takeLater(t, db, "r", hourly())}
			eventually(t, watch, 1, listening)
			looked("r", 2) // once more as the hub listens
			for i := range 2 {
				got = append(got, takeLater(t, db, "r", hourly()))
				looked("r", 4+2*i)
			}
			gotS := takeLater(t, db, "it's", hourly())
			looked("it's", 2)

			require.NoError(t, s.Release(t.Context()))
			last := <-gotS
			require.NotNil(t, last)
			require.NoError(t, last.Release(t.Context()))

			token := r.Token()
			require.NoError(t, r.Release(t.Context()))
			for range got {
				select {
				case last = <-got[0]:
				case last = <-got[1]:
				case last = <-got[2]:
				}
				require.NotNil(t, last)
				require.Greater(t, last.Token(), token)
				token = last.Token()
				require.NoError(t, last.Release(t.Context()))
			}
			require.Equal(t, 9, sent.taken("r"), "one look for each release of r, and none for others")

			// the last has left: the connection is in the pool again, and hears nothing
			eventually(t, watch, 0, listening)
			fencetest.Eventually(t, func() bool { return db.Stats().InUse == 0 })
			db.SetMaxOpenConns(1)
			require.Equal(t, 0, get[int](t, db, "SELECT count(*) FROM pg_listening_channels()"))
			require.Equal(t, 1, sent.count("LISTEN fencerow_lease"))
			require.Equal(t, 1, sent.count("UNLISTEN fencerow_lease"))
		})
	}
}

// opaque hides what pgx's connection can do.
type opaque struct{ sqldriver.Connector }

func (o opaque) Connect(ctx context.Context) (sqldriver.Conn, error) {
	inner, err := o.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	std := inner.(*stdlib.Conn)
	return struct {
		sqldriver.Conn
		sqldriver.QueryerContext
		sqldriver.ExecerContext
		sqldriver.NamedValueChecker
	}{std, std, std, std}, nil
}

// Where nobody can or should listen, LISTEN is never sent, and Take polls.
func TestTakeOnlyPolls(t *testing.T) {
	t.Parallel()
	pool := func(n int) func(*testing.T, *pgx.ConnConfig) *sql.DB {
		return func(_ *testing.T, config *pgx.ConnConfig) *sql.DB {
			db := stdlib.OpenDB(*config)
			db.SetMaxOpenConns(n)
			return db
		}
	}
	for name, opened := range map[string]struct {
		open func(*testing.T, *pgx.ConnConfig) *sql.DB
		opts []lease.Option
	}{
		"a pool of 1": {open: pool(1)},
		"a pool of 3": {open: pool(3)},
		"without":     {open: pool(0), opts: []lease.Option{lease.WithoutListen()}},
		"another driver": {open: func(_ *testing.T, config *pgx.ConnConfig) *sql.DB {
			return sql.OpenDB(opaque{stdlib.GetConnector(*config)})
		}},
		"fencerow over another driver": {open: func(t *testing.T, config *pgx.ConnConfig) *sql.DB {
			connector, err := driver.Wrap(opaque{stdlib.GetConnector(*config)}, driver.Protect("orders", rewrite.Lease))
			require.NoError(t, err)
			return sql.OpenDB(connector)
		}},
		"a pooler": {open: func(t *testing.T, config *pgx.ConnConfig) *sql.DB {
			config.DialFunc = pooler(t, config)
			return stdlib.OpenDB(*config)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			config, sent := traced(t, dsn)
			db := closed(t, opened.open(t, config))
			first := held(t, dsn, "r")
			got := takeLater(t, db, "r", append(opened.opts, lease.WithPoll(time.Millisecond, tick))...)
			fencetest.Eventually(t, func() bool { return sent.taken("r") > 20 })
			require.NoError(t, first.Release(t.Context()))
			require.NotNil(t, <-got)
			require.Zero(t, sent.count("LISTEN fencerow_lease"))
			if name == "a pooler" {
				require.NotZero(t, sent.count("SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()"), "or it has been told by something else")
			}
		})
	}
}

// With all connections but one in use none is taken to listen; when there is
// one again, it is.
func TestTakeListensWhenThereIsAConnection(t *testing.T) {
	dsn := localpg.Database(t, installed)
	watch := open(t, dsn)
	db, sent := openers["pgx"](t, dsn)
	db.SetMaxOpenConns(4)
	first := held(t, dsn, "r")
	var work []*sql.Conn
	for range 3 {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		work = append(work, conn)
	}
	got := takeLater(t, db, "r", lease.WithPoll(tick, tick))
	fencetest.Eventually(t, func() bool { return sent.taken("r") > 20 })
	require.Zero(t, sent.count("LISTEN fencerow_lease"))
	for _, conn := range work {
		require.NoError(t, conn.Close())
	}
	eventually(t, watch, 1, listening)
	require.NoError(t, first.Release(t.Context()))
	require.NotNil(t, <-got)
}

// A pool under the handle, of whose size the handle knows nothing, has no
// connection for it either.
func TestTakeOverAPoolOfOne(t *testing.T) {
	t.Parallel()
	dsn := localpg.Database(t, installed)
	config, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	traced, sent := traced(t, dsn)
	config.ConnConfig, config.MaxConns = traced, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	first := held(t, dsn, "r")
	got := takeLater(t, db, "r", lease.WithPoll(time.Millisecond, tick))
	fencetest.Eventually(t, func() bool {
		return sent.count("SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()") > 0 && sent.taken("r") > 20
	})
	require.NoError(t, first.Release(t.Context()))
	require.NotNil(t, <-got)
	require.Zero(t, sent.count("LISTEN fencerow_lease"))
}

// The connection that listens is cut: who waits polls, and hears again later.
func TestTakeSurvivesACutConnection(t *testing.T) {
	t.Parallel()
	for name, poll := range map[string]lease.Option{"polls": lease.WithPoll(tick, tick), "hears again": hourly()} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			watch, db := open(t, dsn), open(t, dsn)
			first := held(t, dsn, "r")
			got := takeLater(t, db, "r", poll)
			eventually(t, watch, 1, listening)
			exec(t, watch, strings.Replace(listening, "count(*)", "pg_terminate_backend(pid, 10000)", 1))
			if name == "polls" {
				exec(t, watch, "UPDATE fencing.lease SET holder = NULL, expires_at = '-infinity'") // tells nobody
			} else {
				require.NoError(t, first.Release(t.Context()))
			}
			require.NotNil(t, <-got)
		})
	}
}
