package driver_test

import (
	"bytes"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"expvar"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

func TestLogTo(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.Protect("jobs", rewrite.Lease),
		driver.WithLevel(driver.Report, "jobs"), driver.WithReporter(driver.LogTo(logger)))
	require.NoError(t, err)
	defer db.Close()
	ctx := tokenctx.With(t.Context(), 4)
	for name, test := range map[string]struct {
		sql  string
		want []string
	}{
		"refused":  {`UPDATE orders SET status = 'secret'`, []string{"level=ERROR", `msg="fencerow: refused"`, "table=orders", "rule=FR101", "location=", "report_test.go:"}},
		"reported": {`UPDATE jobs SET status = 'secret'`, []string{"level=WARN", `msg="fencerow: reported"`, "table=jobs", "rule=FR101", "location=", "report_test.go:"}},
		"stale": {
			`UPDATE orders SET status = 'secret', last_token = 4 WHERE id = 1 AND last_token < 4`,
			[]string{"level=WARN", `msg="fencerow: stale"`, "table=orders", "carries token 5", "report_test.go:"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out.Reset()
			_, _ = db.ExecContext(ctx, test.sql)
			require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
			for _, want := range test.want {
				require.Contains(t, out.String(), want)
			}
			require.NotContains(t, out.String(), "secret")
		})
	}
}

func TestHooks(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	var seen []string
	hooks := func(name string) driver.Option {
		return driver.WithHooks(driver.Hooks{
			Before: func(_ context.Context, op driver.Operation) {
				seen = append(seen, fmt.Sprint(name, " before ", op.Kind, " ", op.SQL, " ", op.Guarded))
			},
			After: func(_ context.Context, op driver.Operation, err error) {
				seen = append(seen, fmt.Sprint(name, " after ", op.Kind, " ", err != nil))
			},
		})
	}
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), hooks("a"), hooks("b"), driver.WithHooks(driver.Hooks{}))
	require.NoError(t, err)
	defer db.Close()
	require.Empty(t, seen, "what the driver asks for itself has no hooks")
	ctx := tokenctx.With(t.Context(), 4)
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	const remove = `DELETE FROM orders WHERE id = 1 AND last_token < $1`
	_, err = tx.ExecContext(ctx, remove, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale)
	_, err = tx.Exec(`DELETE FROM orders`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.NoError(t, tx.Commit())
	require.Equal(t, []string{
		"a before begin  false", "b before begin  false", "b after begin false", "a after begin false",
		"a before statement " + remove + " true", "b before statement " + remove + " true", "b after statement true", "a after statement true",
		"a before commit  false", "b before commit  false", "b after commit false", "a after commit false",
	}, seen)

	seen = nil
	tx, err = db.BeginTx(ctx, nil)
	require.NoError(t, err)
	var one int
	require.NoError(t, tx.QueryRow(`SELECT 1`).Scan(&one))
	require.NoError(t, tx.Rollback())
	require.Contains(t, seen, "a before statement SELECT 1 false")
	require.Contains(t, seen, "b after rollback false")
}

func TestStats(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.Protect("jobs", rewrite.Strict), driver.WithLevel(driver.Report, "jobs"))
	require.NoError(t, err)
	defer db.Close()
	for _, token := range []tokenctx.Token{4, 5} {
		_, err = db.ExecContext(tokenctx.With(t.Context(), token), `UPDATE orders SET status = 'x', last_token = $1 WHERE id = 1 AND last_token < $1`, tokenctx.Arg)
		require.True(t, driver.NotApplied(err))
	}
	for _, sql := range []string{`DELETE FROM orders`, `DELETE FROM orders`, `DELETE FROM jobs`, `SELECT 1`, `SELECT 1`} {
		_, _ = db.Exec(sql)
	}
	want := driver.Stats{Checked: 7, CacheHits: 3, Refused: map[rewrite.Rule]uint64{"FR111": 2}, Reported: map[rewrite.Rule]uint64{"FR111": 1}, Stale: 1, Replay: 1,
		Detours: map[driver.Detour]uint64{driver.DetourReportedTable: 7}}
	stats, ok := driver.StatsOf(db)
	require.True(t, ok)
	require.Equal(t, want, stats)
	db.SetMaxIdleConns(-1) // closes the connection
	stats, _ = driver.StatsOf(db)
	require.Equal(t, want, stats, "what a closed connection has counted stays")

	var text map[string]any
	require.NoError(t, json.Unmarshal([]byte(expvar.Func(func() any { return stats }).String()), &text))
	require.EqualValues(t, 7, text["Checked"])

	_, ok = driver.StatsOf(openPlain(t, dsn))
	require.False(t, ok)
}

// The caller's line is the first one outside of the packages that are passed
// over.
func TestCallerSkip(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	for want, skip := range map[string][]string{
		"report_test.go:":     nil,
		"testing/testing.go:": {"github.com/fencerow/fencerow/driver_test"},
		"/report_test.go:":    {"github.com/fencerow/fencerow/driver_tes"},
	} {
		db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithCallerSkip(skip...))
		require.NoError(t, err)
		_, err = db.Exec(`DELETE FROM orders`)
		var v *rewrite.Violation
		require.ErrorAs(t, err, &v)
		require.Contains(t, v.Location, want)
		require.NoError(t, db.Close())
	}
}

// A wrapper of the driver stands between it and database/sql: the line is that of whoever
// called database/sql, and of the function that sql.Conn.Raw is given.
func TestCallerBehindAWrapper(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(wrapping{connector})
	defer db.Close()
	_, ok := driver.StatsOf(db)
	require.False(t, ok, "counts that nobody sees look like none")
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	tx, err := conn.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	const text = `DELETE FROM orders`
	for name, send := range map[string]func() error{
		"Exec":    func() error { _, err := tx.Exec(text); return err },
		"Query":   func() error { rows, err := tx.Query(text); require.Nil(t, rows); return err },
		"Prepare": func() error { _, err := tx.Prepare(text); return err },
		"Raw": func() error {
			return conn.Raw(func(c any) error {
				_, err := c.(sqldriver.ExecerContext).ExecContext(t.Context(), text, nil)
				return err
			})
		},
	} {
		var v *rewrite.Violation
		require.ErrorAs(t, send(), &v, name)
		if name == "Raw" {
			continue // the wrapper is called by the function itself
		}
		require.Contains(t, v.Location, "/report_test.go:", name)
	}
	require.NoError(t, tx.Rollback())
}
