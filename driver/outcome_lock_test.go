package driver_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openQueue opens a handle on a registered queue, whose table takes the tokens of a
// resource, or the default token if that is "".
func openQueue(t *testing.T, resource string, elsewhere bool) (db *sql.DB, plain *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE jobs (id bigint PRIMARY KEY, state text); INSERT INTO jobs VALUES (1, 'done'), (2, 'done')`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "jobs", Mode: migrations.Lease, Resource: resource}))
	if elsewhere {
		run(t, dsn, `UPDATE fencing.registry SET issued_by = NULL`)
	}
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	plain, err = pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close(context.Background()) })
	return db, plain
}

// pops are polls of a queue, whose rows don't tell why there are none.
var pops = []string{
	`UPDATE jobs SET state = 'running', last_token = $1 WHERE id IN (SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) AND last_token <= $1`,
	`WITH next AS MATERIALIZED (SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) UPDATE jobs SET state = 'running', last_token = $1 FROM next WHERE jobs.id = next.id AND jobs.last_token <= $1 RETURNING jobs.id`,
	`UPDATE jobs SET state = 'running', last_token = $1 WHERE state = 'new' AND last_token <= $1`,
}

// An empty queue is one to the holder of its lease, and a lost lease to whom it was taken
// from, whether or not the new holder has written anything.
func TestEmptyQueueUnderALease(t *testing.T) {
	for name, resource := range map[string]string{"the table's": "queue", "the context's": ""} {
		t.Run(name, func(t *testing.T) {
			db, plain := openQueue(t, resource, false)
			held, err := lease.Take(t.Context(), db, "queue", time.Hour, lease.WithoutRenewal())
			require.NoError(t, err)
			defer func() { _ = held.Release(context.Background()) }()
			ctx := held.Context(t.Context())
			outside := tokenctx.WithResource(tokenctx.With(t.Context(), held.Token()), "queue", held.Token())
			_, err = plain.Exec(t.Context(), `UPDATE jobs SET last_token = $1 WHERE id = 1`, int64(held.Token())+1)
			require.NoError(t, err, "another lease's row")
			for _, pop := range pops {
				_, err = db.ExecContext(ctx, pop, tokenctx.Arg)
				require.NoError(t, err, pop)
			}
			_, err = plain.Exec(t.Context(), `UPDATE fencing.lease SET expires_at = '-infinity'; SELECT fencing.take('queue', '1 h', 'other')`)
			require.NoError(t, err)
			for _, pop := range append(pops, `UPDATE jobs SET state = 'x', last_token = $1 WHERE id = 77 AND last_token <= $1`) {
				_, err = db.ExecContext(outside, pop, tokenctx.Arg)
				var stale *driver.StaleError
				require.ErrorAs(t, err, &stale, pop)
				require.True(t, stale.Sealed)
			}
			_, err = db.ExecContext(ctx, pops[0], tokenctx.Arg)
			require.Error(t, err)
			require.ErrorIs(t, context.Cause(ctx), lease.ErrLost)
		})
	}
}

// Where the tokens come from elsewhere, no newer token in the whole table shows that no
// newer holder was in the way.
func TestEmptyQueueWithoutALease(t *testing.T) {
	db, plain := openQueue(t, "queue", true)
	_, err := plain.Exec(t.Context(), `SELECT fencing.take('queue', '1 h', 'has nothing to do with it')`)
	require.NoError(t, err)
	ctx := tokenctx.WithResource(t.Context(), "queue", 1)
	_, err = plain.Exec(t.Context(), `UPDATE fencing.lease SET token = 99`)
	require.NoError(t, err)
	for _, pop := range pops {
		_, err = db.ExecContext(ctx, pop, tokenctx.Arg)
		require.NoError(t, err, pop)
	}
	_, err = plain.Exec(t.Context(), `UPDATE jobs SET last_token = 2 WHERE id = 1`)
	require.NoError(t, err)
	for _, pop := range pops {
		_, err = db.ExecContext(ctx, pop, tokenctx.Arg)
		require.ErrorIs(t, err, driver.ErrUndetermined, pop)
		require.False(t, driver.NotApplied(err))
	}
}

// A role that may not read the leases goes by the rows.
func TestEmptyQueueOfARoleWithoutRights(t *testing.T) {
	_, plain := openQueue(t, "queue", false)
	role := "poller_" + strings.ToLower(plain.Config().Database)
	_, err := plain.Exec(t.Context(), `CREATE ROLE `+role+` LOGIN; GRANT USAGE ON SCHEMA fencing TO `+role+`; GRANT SELECT ON fencing.registry, fencing.generation TO `+role+`; GRANT SELECT, UPDATE ON jobs TO `+role)
	require.NoError(t, err)
	defer func() {
		_, err := plain.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		require.NoError(t, err)
	}()
	config := plain.Config().Copy()
	config.User = role
	connector, err := driver.NewConnector(*config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx := tokenctx.WithResource(t.Context(), "queue", 1)
	for _, pop := range pops {
		_, err = db.ExecContext(ctx, pop, tokenctx.Arg)
		require.NoError(t, err, pop)
	}
}

// onText is a tracer that runs something before a text is sent.
type onText struct {
	text string
	run  func()
}

func (o *onText) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if run := o.run; run != nil && strings.HasPrefix(data.SQL, o.text) {
		o.run = nil
		run()
	}
	return ctx
}

func (*onText) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// openTraced opens a handle on the tables of openWithin whose connection runs something
// before a second look, or before what text begins.
func openTraced(t *testing.T, text string, opts ...driver.Option) (db *sql.DB, plain *pgx.Conn, tracer *onText) {
	t.Helper()
	_, plain = openWithin(t)
	_, err := plain.Exec(t.Context(), resetWithin)
	require.NoError(t, err)
	tracer = &onText{text: text}
	config := plain.Config().Copy()
	config.Tracer = tracer
	connector, err := driver.NewConnector(*config, append(opts, driver.Protect("orders", rewrite.Lease), driver.Protect("payments", rewrite.Lease))...)
	require.NoError(t, err)
	db = sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db, plain, tracer
}

const lookText = `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY`

// What a newer holder writes after a write was committed doesn't make that one stale.
func TestLaterHoldersAreNotToldOf(t *testing.T) {
	for name, test := range map[string]struct {
		query, before string
		want          error
	}{
		"counted":            {`WITH paid AS ({W}) INSERT INTO outbox VALUES ('paid')`, lookText, nil},
		"counted, dependent": {`WITH paid AS ({R}) INSERT INTO outbox SELECT 'paid' FROM paid`, lookText, nil},
		"held":               {`WITH paid AS ({R}) SELECT id FROM paid UNION ALL SELECT 5`, `SAVEPOINT`, nil},
		"explained":          {`EXPLAIN ANALYZE {W}`, `SAVEPOINT`, nil},
		// the write is committed, and its count is lost with the rows
		"no row tells": {`WITH paid AS ({R}) INSERT INTO outbox SELECT 'paid' FROM paid WHERE id = 99`, lookText, driver.ErrUndetermined},
	} {
		t.Run(name, func(t *testing.T) {
			db, plain, tracer := openTraced(t, test.before)
			done := make(chan error, 1)
			tracer.run = func() {
				go func() {
					_, err := plain.Exec(context.Background(), `UPDATE orders SET last_token = 9 WHERE id = 1`)
					done <- err
				}()
				if test.before == lookText { // nothing holds the row
					require.NoError(t, <-done)
					done <- nil
				}
			}
			query := strings.NewReplacer("{W}", withinW, "{R}", withinR).Replace(test.query)
			_, err := db.ExecContext(tokenctx.With(t.Context(), 7), query, tokenctx.Arg, 1)
			if test.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, test.want)
			}
			require.NotErrorIs(t, err, driver.ErrStale)
			if tracer.run == nil {
				require.NoError(t, <-done)
			}
		})
	}
}

// A look that fails is told with its cause, and never as a bad connection, after which
// database/sql would send the statement again.
func TestFailedLookIsTold(t *testing.T) {
	db, plain, tracer := openTraced(t, lookText)
	var pid int
	require.NoError(t, db.QueryRow(`SELECT pg_backend_pid()`).Scan(&pid))
	tracer.run = func() {
		_, err := plain.Exec(context.Background(), `SELECT pg_terminate_backend($1, 60000)`, pid)
		require.NoError(t, err)
	}
	_, err := db.ExecContext(tokenctx.With(t.Context(), 7), withinW, tokenctx.Arg, 2)
	require.ErrorIs(t, err, driver.ErrUndetermined)
	require.ErrorContains(t, err, "connection")
	require.NotErrorIs(t, err, sqldriver.ErrBadConn)
	var status string
	require.NoError(t, plain.QueryRow(t.Context(), `SELECT status FROM orders WHERE id = 2`).Scan(&status))
	require.Equal(t, "new", status)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), withinW, tokenctx.Arg, 2)
	require.ErrorIs(t, err, driver.ErrStale, "the handle has another connection")
}
