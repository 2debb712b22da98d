package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/ngrok/sqlmw"
	"github.com/stretchr/testify/require"

	fencerow "github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// rival is a way to a driver that does nothing.
type rival struct {
	name string
	open func(opts ...fencerow.Option) (*sql.DB, error)
}

// wrappers are all of them, raw first. The options are for fencerow.
var wrappers = []rival{
	{"raw", func(...fencerow.Option) (*sql.DB, error) { return sql.OpenDB(noop{}), nil }},
	{"sqlmw", func(...fencerow.Option) (*sql.DB, error) {
		connector, err := sqlmw.Driver(noop{}, sqlmw.NullInterceptor{}).(driver.DriverContext).OpenConnector("")
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}},
	// with the global providers, which are no-ops unless they are set
	{"otelsql", func(...fencerow.Option) (*sql.DB, error) { return otelsql.OpenDB(noop{}), nil }},
	{"fencerow", openFenced},
}

// openFenced has no session of PostgreSQL's to look at. What that adds is a part of
// what is measured over a socket.
func openFenced(opts ...fencerow.Option) (*sql.DB, error) {
	connector, err := fencerow.Wrap(noop{}, append(opts, fencerow.Protect("orders", rewrite.Strict))...)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// opened is a rival's handle for the time of a test.
func opened(tb testing.TB, r rival, opts ...fencerow.Option) *sql.DB {
	tb.Helper()
	db, err := r.open(opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}

// scenario is what is done by all rivals.
type scenario struct {
	op   string
	kind kind
	miss bool // each text is a new one
	size size
}

// scenarios are those that differ: a query costs as an Exec does, so that there
// are fewer of them.
func scenarios() (out []scenario) {
	for _, k := range []kind{unprotected, guarded} {
		for _, s := range []size{small, middle, large} {
			out = append(out, scenario{"exec", k, false, s}, scenario{"exec", k, true, s})
		}
		for _, op := range []string{"query", "prepared"} {
			out = append(out, scenario{op, k, false, small}, scenario{op, k, false, large}, scenario{op, k, true, middle})
		}
	}
	for _, s := range []size{small, middle, large} {
		out = append(out, scenario{"exec", refused, false, s})
	}
	return append(out, scenario{"exec", refused, true, middle}, scenario{"query", refused, false, small})
}

func (c scenario) name() string {
	known := "hit"
	if c.miss {
		known = "miss"
	}
	return c.op + "/" + string(c.kind) + "/" + known + "/" + c.size.name
}

// rivals are those it says something about: what is refused is not sent by
// fencerow, and sent by the others.
func (c scenario) rivals() []rival {
	if c.kind == refused {
		return []rival{wrappers[0], wrappers[len(wrappers)-1]}
	}
	return wrappers
}

func (c scenario) text() string {
	if c.op == "query" {
		return queryText(c.kind, c.size)
	}
	return execText(c.kind, c.size)
}

// cache bounds fencerow's cache: by little for misses, so that it is full soon
// and they cost what they do in the long run.
func (c scenario) cache() fencerow.Option {
	if c.miss {
		return fencerow.WithPlanCache(1 << 20)
	}
	return fencerow.WithPlanCache(16 << 20)
}

// operation does the scenario once on a handle, and returns the error of the
// statement.
func (c scenario) operation(ctx context.Context, tb testing.TB, db *sql.DB) func() error {
	text := c.text()
	next := func() string { return text }
	if c.miss {
		next = newUnseen(text).next
	}
	switch {
	case c.op == "exec":
		return func() error {
			_, err := db.ExecContext(ctx, next(), textArgs...)
			return err
		}
	case c.op == "query":
		return func() error { return queryAll(ctx, db, next()) }
	case c.miss:
		return func() error { return prepareAndExec(ctx, db, next()) }
	}
	stmt, err := db.PrepareContext(ctx, text)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, stmt.Close()) })
	return func() error {
		_, err := stmt.ExecContext(ctx, textArgs...)
		return err
	}
}

func queryAll(ctx context.Context, db *sql.DB, text string) error {
	rows, err := db.QueryContext(ctx, text, textArgs...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func prepareAndExec(ctx context.Context, db *sql.DB, text string) error {
	stmt, err := db.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	if _, err := stmt.ExecContext(ctx, textArgs...); err != nil {
		return err
	}
	return stmt.Close()
}

// BenchmarkInProcess is the cost in the process, against a driver that does
// nothing. Rivals come right after one another.
func BenchmarkInProcess(b *testing.B) {
	for _, c := range scenarios() {
		b.Run(c.name(), func(b *testing.B) {
			for _, r := range c.rivals() {
				b.Run(r.name, func(b *testing.B) { c.bench(b, r) })
			}
		})
	}
}

func (c scenario) bench(b *testing.B, r rival) {
	run := c.operation(tokenctx.With(b.Context(), 7), b, opened(b, r, c.cache()))
	fails := c.kind == refused && r.name == "fencerow"
	b.ReportAllocs()
	for b.Loop() {
		if err := run(); (err != nil) != fails {
			b.Fatal(err)
		}
	}
}

// What is measured is what the name says.
func TestScenarios(t *testing.T) {
	const runs = 50
	for _, c := range scenarios() {
		for _, r := range c.rivals() {
			t.Run(c.name()+"/"+r.name, func(t *testing.T) {
				db := opened(t, r, c.cache())
				run := c.operation(tokenctx.With(t.Context(), 7), t, db)
				for range runs {
					err := run()
					if c.kind != refused || r.name != "fencerow" {
						require.NoError(t, err)
						continue
					}
					var violation *rewrite.Violation
					require.ErrorAs(t, err, &violation)
					require.Equal(t, rewrite.UnguardedUpdate, violation.Rule)
				}
				if r.name == "fencerow" {
					stats, _ := fencerow.StatsOf(db)
					c.checkStats(t, stats, runs)
				}
			})
		}
	}
}

func (c scenario) checkStats(t *testing.T, stats fencerow.Stats, runs uint64) {
	misses := uint64(1)
	if c.miss {
		misses = runs
	}
	require.GreaterOrEqual(t, stats.Checked, runs)
	require.Equal(t, misses, stats.Checked-stats.CacheHits)
	if c.kind == refused {
		require.Equal(t, runs, stats.Refused[rewrite.UnguardedUpdate])
	} else {
		require.Empty(t, stats.Refused)
	}
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Strict})
	require.NoError(t, err)
	plan := policy.Plan(c.text())
	require.Equal(t, c.kind == unprotected, plan.Cleared)
	require.Equal(t, c.kind == guarded, plan.Guarded() && plan.Refusal() == nil)
}
