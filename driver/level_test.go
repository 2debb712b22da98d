package driver_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const levelSchema = `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0);
	CREATE TABLE jobs (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0);
	INSERT INTO orders VALUES (1, 'new', 5); INSERT INTO jobs VALUES (1, 'new', 5)`

// recorder keeps the events of a handle.
type recorder struct{ events []driver.Event }

func (r *recorder) option() driver.Option {
	return driver.WithReporter(func(_ context.Context, e driver.Event) { r.events = append(r.events, e) })
}

// take returns the kinds and rules seen since the last time.
func (r *recorder) take() (seen []string) {
	for _, e := range r.events {
		s := string(e.Kind)
		if e.Rule != "" {
			s += " " + string(e.Rule)
		}
		seen = append(seen, s)
	}
	r.events = nil
	return seen
}

func TestReportLevel(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	var r recorder
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.Protect("public.jobs", rewrite.Strict),
		driver.WithLevel(driver.Report, "public.orders"), r.option())
	require.NoError(t, err)
	defer db.Close()
	with := func(token tokenctx.Token) context.Context { return tokenctx.With(t.Context(), token) }
	const guarded = `UPDATE orders SET status = $1, last_token = $2 WHERE id = 1 AND last_token < $2`
	for name, test := range map[string]struct {
		ctx     context.Context
		sql     string
		args    []any
		events  []string
		refused bool
		rows    int64
	}{
		"unguarded":                         {t.Context(), `UPDATE orders SET status = 'x'`, nil, []string{"reported FR101"}, false, 1},
		"unguarded, of an enforced table":   {t.Context(), `UPDATE jobs SET status = 'x'`, nil, []string{"refused FR101"}, true, 0},
		"both in one":                       {t.Context(), `WITH a AS (UPDATE orders SET status = 'x') UPDATE jobs SET status = 'x'`, nil, []string{"refused FR101"}, true, 0},
		"guarded":                           {with(6), guarded, []any{"x", tokenctx.Arg}, nil, false, 1},
		"guarded, without a token":          {t.Context(), guarded, []any{"x", 7}, []string{"reported FR301"}, false, 1},
		"guarded, with another token":       {with(6), guarded, []any{"x", 8}, []string{"reported FR303"}, false, 1},
		"Arg without a token cannot be put": {t.Context(), guarded, []any{"x", tokenctx.Arg}, []string{"refused FR301"}, true, 0},
		"stale":                             {with(4), guarded, []any{"x", tokenctx.Arg}, []string{"stale"}, false, 0},
		"replay":                            {with(5), guarded, []any{"x", tokenctx.Arg}, []string{"replay"}, false, 0},
		"structure":                         {t.Context(), `ALTER TABLE orders ADD IF NOT EXISTS note text`, nil, []string{"reported FR201"}, false, 0},
		"a session's setting":               {t.Context(), `SET LOCAL ROLE NONE`, nil, []string{"refused FR205"}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, dsn, `UPDATE orders SET status = 'new', last_token = 5`)
			result, err := db.ExecContext(test.ctx, test.sql, test.args...)
			require.Equal(t, test.events, r.take())
			if test.refused {
				require.ErrorIs(t, err, rewrite.ErrRefused)
				return
			}
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			require.Equal(t, test.rows, n)
		})
	}
}

// In a transaction under another token a reported table's statement runs under
// its own, as it is.
func TestReportInTransaction(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	var r recorder
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithLevel(driver.Report, "orders"), r.option())
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.BeginTx(tokenctx.With(t.Context(), 8), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	for i, arg := range []any{tokenctx.Arg, 10} {
		token := tokenctx.Token(9 + i)
		_, err = tx.ExecContext(tokenctx.With(t.Context(), token), `UPDATE orders SET last_token = $1 WHERE id = 1 AND last_token < $1`, arg)
		require.NoError(t, err)
		require.Equal(t, []string{"reported FR303"}, r.take())
		var got tokenctx.Token
		require.NoError(t, tx.QueryRow(`SELECT last_token FROM orders`).Scan(&got))
		require.Equal(t, token, got)
	}
}

// Where nothing is enforced nothing is refused.
func TestNothingEnforced(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	var r recorder
	reported, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithLevel(driver.Report, "orders"), r.option())
	require.NoError(t, err)
	defer reported.Close()
	off, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithLevel(driver.Off, "orders"), r.option())
	require.NoError(t, err)
	defer off.Close()
	for sql, event := range map[string]string{
		`SET LOCAL ROLE NONE`: "reported FR205", `RESET ALL`: "reported FR205", `DISCARD ALL`: "reported FR206",
		`DELETE FROM orders WHERE id = 3`:    "reported FR111",
		`CREATE TEMP VIEW v AS TABLE orders`: "reported FR201",
		`SELECT 1`:                           "",
	} {
		_, err := reported.Exec(sql)
		require.NoError(t, err, sql)
		if event == "" {
			require.Empty(t, r.take(), sql)
		} else {
			require.Equal(t, []string{event}, r.take(), sql)
		}
		_, err = off.Exec(sql)
		require.NoError(t, err, sql)
		require.Empty(t, r.take(), sql)
	}
	const guarded = `UPDATE orders SET status = 'y', last_token = $1 WHERE last_token < $1`
	_, err = off.ExecContext(tokenctx.With(t.Context(), 6), guarded, tokenctx.Arg)
	require.NoError(t, err, "a guarded statement's Arg has its place at level off, too")
	_, err = off.Exec(guarded, tokenctx.Arg)
	require.ErrorIs(t, err, rewrite.ErrRefused, "there is nothing to send for it")
	r.take()
	_, err = reported.Exec(`SELEC FROM orders`)
	require.NotErrorIs(t, err, rewrite.ErrRefused, "the server says what is wrong with it")
	require.Equal(t, []string{"reported FR901"}, r.take())
}

// What keeps an enforced table from being opened doesn't keep a reported one.
func TestUnfitTables(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int)`)
	for _, table := range []string{"orders", "missing"} {
		var r recorder
		_, err := driver.Open(dsn, driver.Protect(table, rewrite.Strict))
		require.Error(t, err)
		for level, events := range map[driver.Level]int{driver.Report: 1, driver.Off: 0} {
			db, err := driver.Open(dsn, driver.Protect(table, rewrite.Strict), driver.WithLevel(level, table), r.option())
			require.NoError(t, err)
			require.Len(t, r.take(), events)
			require.NoError(t, db.Close())
		}
	}
}

// A prepared statement is held to what is enforced by now: it is refused, or
// prepared again as a DELETE is sent.
func TestPreparedBeforeEnforced(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, levelSchema, `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE jobs SET status = current_setting('fencing.token', true); RETURN OLD; END$$;
		CREATE TRIGGER note BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION note()`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}))
	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Off))
	db, err := sql.Open("fencerow", dsn)
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	remove, err := conn.PrepareContext(t.Context(), `DELETE FROM orders WHERE id = $1 AND last_token < 7`)
	require.NoError(t, err)
	update, err := conn.PrepareContext(t.Context(), `UPDATE orders SET status = $1`)
	require.NoError(t, err)
	_, err = update.Exec("off")
	require.NoError(t, err)

	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Enforce))
	second, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, second.Close())
	_, err = update.Exec("x")
	require.ErrorIs(t, err, rewrite.ErrRefused)
	_, err = remove.ExecContext(tokenctx.With(t.Context(), 7), 1)
	require.NoError(t, err)
	var status string
	require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT status FROM jobs`).Scan(&status))
	require.Equal(t, "7", status)
}

// A registered table's level is the registry's. A connection that ran what the
// check rests on while nothing was enforced is not used any more afterwards.
func TestRegisteredLevels(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, levelSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}))
	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Report))
	db, err := sql.Open("fencerow", dsn)
	require.NoError(t, err)
	defer db.Close()
	first, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = first.ExecContext(t.Context(), `CREATE TEMP VIEW orders AS SELECT 1 AS id, 'x'::text AS status, 0::bigint AS last_token`)
	require.NoError(t, err)
	_, err = first.ExecContext(t.Context(), `UPDATE public.orders SET status = 'reported'`)
	require.NoError(t, err)

	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Enforce))
	second, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = second.ExecContext(t.Context(), `UPDATE orders SET status = 'x'`)
	require.ErrorIs(t, err, rewrite.ErrRefused)

	_, err = first.ExecContext(tokenctx.With(t.Context(), 7), `UPDATE orders SET status = 'x', last_token = $1 WHERE last_token < $1`, tokenctx.Arg)
	var v *rewrite.Violation
	require.ErrorAs(t, err, &v, "the view stands in the table's place")
	require.Equal(t, rewrite.SessionState, v.Rule)
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	db.SetMaxOpenConns(1)
	for range 2 {
		_, err = db.ExecContext(tokenctx.With(t.Context(), 7), `UPDATE orders SET status = 'guarded', last_token = $1 WHERE last_token <= 6 AND last_token < $1`, tokenctx.Arg)
		require.NoError(t, err)
	}
	var status string
	require.NoError(t, db.QueryRow(`SELECT status FROM public.orders`).Scan(&status))
	require.Equal(t, "guarded", status)
}

func TestLevelOptions(t *testing.T) {
	for want, opts := range map[string][]driver.Option{
		"is not protected by this program": {driver.Protect("orders", rewrite.Strict), driver.WithLevel(driver.Report, "order")},
		"choose driver.Off":                {driver.WithLevel(7, "orders")},
		"malformed table name":             {driver.WithLevel(driver.Off, "a.b.c")},
		"needs a function":                 {driver.WithReporter(nil)},
	} {
		_, err := driver.Open("host=nowhere", opts...)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, "enforce", driver.Enforce.String())
	require.Equal(t, "Level(9)", driver.Level(9).String())
}
