package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	fencerow "github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

func TestMain(m *testing.M) { localpg.Main(m) }

const (
	blockTime = 20 * time.Millisecond
	warmTime  = 50 * time.Millisecond
	holder    = 7
)

// socketOp is a statement that both handles are given. Each goroutine has a row
// of its own, so that none waits for another's lock.
type socketOp struct {
	sql      string
	args     func(row int) []any
	query    bool
	prepared bool
}

var socketOps = map[string]socketOp{
	"exec":     {sql: `UPDATE notes SET body = $1 WHERE id = $2`, args: bodyAndRow},
	"query":    {sql: `SELECT id, body FROM notes WHERE id = $1`, args: onlyRow, query: true},
	"prepared": {sql: `SELECT id, body FROM notes WHERE id = $1`, args: onlyRow, query: true, prepared: true},
	"guarded": {sql: `UPDATE orders SET body = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`,
		args: func(row int) []any { return []any{"paid", int64(holder), int64(row)} }},
}

func bodyAndRow(row int) []any { return []any{"paid", int64(row)} }
func onlyRow(row int) []any    { return []any{int64(row)} }

// side is one of the two handles, with what it has done.
type side struct {
	db   *sql.DB
	op   socketOp
	stmt *sql.Stmt // of a prepared one

	latencies [][]time.Duration // by goroutine
	count     int
	took      time.Duration
}

// BenchmarkSocket does a statement by plain pgx and by fencerow, in short blocks by
// turns, so that what else the machine does falls on both. An iteration is a block
// of each; x-plain is the median of their ratios.
func BenchmarkSocket(b *testing.B) {
	dsn := socketDatabase(b)
	for _, name := range socketNames() {
		b.Run(strings.TrimPrefix(name.bench, "Socket/"), func(b *testing.B) {
			plain, fenced := bothSides(b, dsn, socketOps[name.op], name.goroutines)
			var ratios []float64
			for i := 0; b.Loop(); i++ {
				ratio, err := pair(b.Context(), plain, fenced, blockTime, i%2 == 1)
				require.NoError(b, err)
				ratios = append(ratios, ratio)
			}
			b.ReportMetric(median(ratios), "x-plain")
			b.ReportMetric(0, "ns/op") // that of two blocks
			plain.report(b, "plain")
			fenced.report(b, "fencerow")
		})
	}
}

// socketDatabase has a table that is protected and one like it that isn't.
func socketDatabase(tb testing.TB) string {
	tb.Helper()
	return localpg.Database(tb, localpg.Template{Name: "bench", Setup: func(ctx context.Context, dsn string) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		for _, table := range []string{"notes", "orders"} {
			_, err := conn.Exec(ctx, fmt.Sprintf(`CREATE TABLE %[1]s (id bigint PRIMARY KEY, body text NOT NULL, last_token bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
				INSERT INTO %[1]s SELECT i, 'new' FROM generate_series(1, 1000) i`, table))
			if err != nil {
				return err
			}
		}
		if err := migrations.Up(ctx, dsn); err != nil {
			return err
		}
		return migrations.Register(ctx, dsn, migrations.Table{Name: "orders", Mode: migrations.Lease})
	}})
}

// bothSides opens both handles, with a connection for each goroutine that has
// done the statement before.
func bothSides(tb testing.TB, dsn string, op socketOp, goroutines int) (plain, fenced *side) {
	tb.Helper()
	open := func(db *sql.DB, err error) *side {
		require.NoError(tb, err)
		db.SetMaxOpenConns(goroutines)
		db.SetMaxIdleConns(goroutines)
		tb.Cleanup(func() { require.NoError(tb, db.Close()) })
		s := &side{db: db, op: op, latencies: make([][]time.Duration, goroutines)}
		require.NoError(tb, s.connect(tb.Context(), goroutines))
		if op.prepared {
			s.stmt, err = db.PrepareContext(tb.Context(), op.sql)
			require.NoError(tb, err)
			tb.Cleanup(func() { require.NoError(tb, s.stmt.Close()) })
		}
		_, err = s.block(tb.Context(), warmTime)
		require.NoError(tb, err)
		s.forget()
		return s
	}
	return open(sql.Open("pgx", dsn)), open(fencerow.Open(dsn))
}

// connect fills the pool.
func (s *side) connect(ctx context.Context, n int) error {
	conns := make([]*sql.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = s.db.Conn(ctx); err != nil {
			return err
		}
	}
	for i, conn := range conns {
		ctx := tokenctx.With(ctx, holder)
		if err := s.op.do(ctx, conn, nil, s.op.args(i+1)); err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
	return nil
}

// pair runs a block of each, and returns the ratio of fencerow's throughput to
// plain's.
func pair(ctx context.Context, plain, fenced *side, length time.Duration, turned bool) (float64, error) {
	first, second := plain, fenced
	if turned {
		first, second = fenced, plain
	}
	a, err := first.block(ctx, length)
	if err != nil {
		return 0, err
	}
	b, err := second.block(ctx, length)
	if turned {
		a, b = b, a
	}
	return b / a, err
}

// block has all goroutines do the statement for a time, and returns how many were
// done in a second.
func (s *side) block(ctx context.Context, length time.Duration) (float64, error) {
	ctx = tokenctx.With(ctx, holder)
	var group sync.WaitGroup
	errs, counts := make([]error, len(s.latencies)), make([]int, len(s.latencies))
	began := time.Now()
	for i := range s.latencies {
		group.Go(func() { counts[i], errs[i] = s.loop(ctx, i, began, length) })
	}
	group.Wait()
	took, done := time.Since(began), 0
	for _, n := range counts {
		done += n
	}
	s.count, s.took = s.count+done, s.took+took
	return float64(done) / took.Seconds(), errors.Join(errs...)
}

func (s *side) loop(ctx context.Context, i int, began time.Time, length time.Duration) (n int, err error) {
	args := s.op.args(i + 1)
	for last := time.Now(); last.Sub(began) < length; n++ {
		if err := s.op.do(ctx, s.db, s.stmt, args); err != nil {
			return n, err
		}
		now := time.Now()
		s.latencies[i] = append(s.latencies[i], now.Sub(last))
		last = now
	}
	return n, nil
}

// executor is a handle or a connection.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

var errNoRow = errors.New("the statement did not meet its row")

func (o socketOp) do(ctx context.Context, on executor, stmt *sql.Stmt, args []any) error {
	if !o.query {
		result, err := on.ExecContext(ctx, o.sql, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return errors.Join(errNoRow, err)
		}
		return nil
	}
	var rows *sql.Rows
	var err error
	if stmt != nil {
		rows, err = stmt.QueryContext(ctx, args...)
	} else {
		rows, err = on.QueryContext(ctx, o.sql, args...)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	var id int64
	var body string
	if !rows.Next() {
		return errors.Join(errNoRow, rows.Err())
	}
	if err := rows.Scan(&id, &body); err != nil {
		return err
	}
	return rows.Close()
}

// forget begins to count anew.
func (s *side) forget() {
	s.count, s.took = 0, 0
	for i := range s.latencies {
		s.latencies[i] = s.latencies[i][:0]
	}
}

func (s *side) report(b *testing.B, name string) {
	all := slices.Sorted(slices.Values(slices.Concat(s.latencies...)))
	b.ReportMetric(float64(s.count)/s.took.Seconds(), name+"-op/s")
	b.ReportMetric(float64(percentile(all, 50)), name+"-p50-ns")
	b.ReportMetric(float64(percentile(all, 99)), name+"-p99-ns")
}

// percentile returns the smallest of the sorted values that p per cent of them don't exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// Both sides do the same, each by connections of its own, and fencerow's guarded
// write is seen as one.
func TestSocket(t *testing.T) {
	dsn := socketDatabase(t)
	for name, op := range socketOps {
		plain, fenced := bothSides(t, dsn, op, 4)
		for turned := range 2 {
			ratio, err := pair(t.Context(), plain, fenced, 10*time.Millisecond, turned == 1)
			require.NoError(t, err, name)
			require.Positive(t, ratio)
		}
		for _, s := range []*side{plain, fenced} {
			require.Equal(t, 4, s.db.Stats().OpenConnections, name)
			require.Zero(t, s.db.Stats().MaxIdleClosed, name)
			require.Len(t, slices.Concat(s.latencies...), s.count)
		}
		_, ok := fencerow.StatsOf(plain.db)
		require.False(t, ok)
		stats, _ := fencerow.StatsOf(fenced.db)
		require.GreaterOrEqual(t, stats.Checked, uint64(fenced.count), name)
		_, err := fenced.db.ExecContext(t.Context(), op.sql, op.args(1)...)
		if name == "guarded" {
			require.Error(t, err, "there is no token")
		} else {
			require.NoError(t, err)
		}
	}
}

func TestPercentile(t *testing.T) {
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(i+1))
	}
	require.EqualValues(t, 100, percentile(values, 50))
	require.EqualValues(t, 198, percentile(values, 99))
	require.EqualValues(t, 1, percentile(values[:1], 99))
}
