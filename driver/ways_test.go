package driver_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// The context's token is 7, and so is the row's: without the check a write
// takes a newer token, or no guard.
const (
	waysToken    = 7
	waysSchema   = `CREATE TABLE orders (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0)`
	waysRow      = `INSERT INTO orders VALUES (1, 0, 7) ON CONFLICT (id) DO UPDATE SET n = 0, last_token = 7`
	waysWrite    = `UPDATE orders SET n = 99 WHERE id = 1`
	waysGuarded  = `UPDATE orders SET n = $1, last_token = $2 WHERE id = $3 AND last_token < $2`
	waysPrepare  = `PREPARE way AS ` + waysWrite
	waysHidden   = `WITH a AS (SELECT '\', $q$'), b AS (UPDATE orders SET n = 99 WHERE id = 1 RETURNING 1) SELECT 1 --$q$) SELECT 1`
	waysSettings = `UPDATE pg_settings SET setting = 'off' WHERE name = 'standard_conforming_strings'`
)

// way is a statement that would get around a check of its text and arguments.
type way struct {
	sql       string
	args      func() []any
	rule      rewrite.Rule
	guarded   bool     // a token is needed to get as far as the arguments
	shifts    bool     // has one more argument than the text has placeholders, which no prepared statement takes
	parameter string   // of the session
	lead      []string // what has to come before
	follow    []string // what writes then
	harmless  string   // why pgx alone writes nothing
}

// rewriting is a query rewriter.
type rewriting func(ctx context.Context, conn *pgx.Conn) string

func (r rewriting) RewriteQuery(ctx context.Context, conn *pgx.Conn, _ string, _ []any) (string, []any, error) {
	return r(ctx, conn), nil, nil
}

// shown is a driver.Valuer with a value for each call.
type shown struct{ values []int64 }

func (s *shown) Value() (sqldriver.Value, error) {
	v := s.values[0]
	if len(s.values) > 1 {
		s.values = s.values[1:]
	}
	return v, nil
}

func arguments(args ...any) func() []any { return func() []any { return args } }

func ways() map[string]way {
	all := map[string]way{
		// the placeholder is there for prepared statements: database/sql counts
		"query rewriter makes a write of a read": {sql: `SELECT $1::text`, rule: rewrite.UnguardedUpdate,
			args: arguments(rewriting(func(context.Context, *pgx.Conn) string { return waysWrite }))},
		"query rewriter writes over the connection": {sql: `SELECT $1::text`, rule: rewrite.QueryRewriter,
			args: arguments(rewriting(func(ctx context.Context, conn *pgx.Conn) string {
				_, _ = conn.Exec(ctx, waysWrite)
				return `SELECT 1`
			}))},
		"valuer gives a newer token": {sql: waysGuarded, rule: rewrite.OtherToken, guarded: true,
			args: func() []any { return []any{99, &shown{[]int64{9}}, 1} }},
		"a fraction of a token": {sql: waysGuarded, rule: rewrite.TokenArgument, guarded: true, args: arguments(99, 7.5, 1),
			harmless: "the server takes it for no bigint"},
		"a newer token as a float": {sql: waysGuarded, rule: rewrite.TokenArgument, guarded: true, args: arguments(99, 9.0, 1)},
		"a token as a float": {sql: waysGuarded, rule: rewrite.TokenArgument, guarded: true, args: arguments(99, 7.0, 1),
			harmless: "it is the token"},
		"PREPARE": {sql: waysPrepare, rule: rewrite.UnguardedUpdate, follow: []string{`EXECUTE way`}},
		"PREPARE with a guard": {sql: `PREPARE way(bigint) AS UPDATE orders SET n = 99, last_token = $1 WHERE id = 1 AND last_token < $1`, rule: rewrite.SQLPrepare,
			follow: []string{`EXECUTE way(9)`}},
		"EXECUTE":        {sql: `EXECUTE way`, rule: rewrite.SQLPrepare, lead: []string{waysPrepare}},
		"DEALLOCATE":     {sql: `DEALLOCATE "` + preparedName(`SELECT 1`) + `"`, rule: rewrite.SQLPrepare, harmless: "PREPARE comes after it"},
		"strings by SET": {sql: `SET standard_conforming_strings = off`, rule: rewrite.SessionSetting, follow: []string{waysHidden}},
		"strings by SET LOCAL": {sql: `SET LOCAL standard_conforming_strings TO 'off'`, rule: rewrite.SessionSetting, follow: []string{waysHidden},
			harmless: "it works in transactions only"},
		"strings by set_config": {sql: `SELECT set_config('standard_conforming_strings', 'off', false)`, rule: rewrite.SessionSetting,
			follow: []string{waysHidden}},
		"strings by pg_settings":  {sql: waysSettings, rule: rewrite.SystemSchema, follow: []string{waysHidden}},
		"strings from the DSN":    {sql: waysHidden, rule: rewrite.SessionState, parameter: "standard_conforming_strings=off"},
		"NUL byte hides the rest": {sql: "SELECT 1 \x00; " + waysWrite, rule: rewrite.BadText, harmless: "the server takes no such message"},
		"temporary view": {sql: `CREATE TEMP VIEW orders AS SELECT * FROM other`, rule: rewrite.ProtectedDDL,
			harmless: "the table's own row stays as it is"},
		"temporary table": {sql: `CREATE TEMP TABLE orders (LIKE other)`, rule: rewrite.ProtectedDDL,
			harmless: "the table's own row stays as it is"},
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		// whoever counts the mode as $1 finds the context's token at $2
		all[fmt.Sprintf("exec mode %q shifts the token", mode)] = way{sql: waysGuarded, rule: rewrite.OtherToken, guarded: true, shifts: true,
			args: arguments(mode, waysToken, waysToken+2, 1)}
	}
	all["a fraction of a token in the text"] = way{sql: waysGuarded, rule: rewrite.TokenArgument, guarded: true, shifts: true,
		args: arguments(pgx.QueryExecModeSimpleProtocol, 99, 7.5, 1), harmless: "the server takes it for no bigint"}
	return all
}

// through are the entries that a way can take.
func (w way) through() []entry {
	var all []entry
	for _, e := range entries() {
		if !w.shifts || !e.prepared {
			all = append(all, e)
		}
	}
	return all
}

func (w way) arguments() []any {
	if w.args == nil {
		return nil
	}
	return w.args()
}

// expected is the rule that refuses the way at an entry.
func (w way) expected(e entry) rewrite.Rule {
	if w.guarded && e.bare {
		return rewrite.NoToken
	}
	return w.rule
}

// single is a handle with one connection.
type single struct {
	*sql.DB
	pid  int
	open int
}

func openSingle(t *testing.T, db *sql.DB, err error) single {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	s := single{DB: db}
	require.NoError(t, db.QueryRow(`SELECT pg_backend_pid()`).Scan(&s.pid))
	s.open = db.Stats().OpenConnections
	return s
}

// requireUsable asks for the connection that the handle began with.
func (s single) requireUsable(t *testing.T, on sender) {
	t.Helper()
	var pid int
	require.NoError(t, on.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	require.Equal(t, s.pid, pid)
}

func (s single) requireIdle(t *testing.T) {
	t.Helper()
	require.Equal(t, s.open, s.Stats().OpenConnections)
	require.Zero(t, s.Stats().InUse)
}

// requireRefused asks for a violation that database/sql passes on.
func requireRefused(t *testing.T, err error, rule rewrite.Rule) {
	t.Helper()
	var v *rewrite.Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, rule, v.Rule, err.Error())
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.True(t, driver.NotApplied(err))
	require.NotErrorIs(t, err, sqldriver.ErrBadConn)
	require.NotErrorIs(t, err, sqldriver.ErrSkip)
}

// witness looks at the row over a connection of its own.
type witness struct{ *pgx.Conn }

func newWitness(t *testing.T, dsn string) witness {
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return witness{conn}
}

func (w witness) row(t *testing.T) (n, token int) {
	t.Helper()
	require.NoError(t, w.QueryRow(t.Context(), `SELECT n, last_token FROM public.orders WHERE id = 1`).Scan(&n, &token))
	return n, token
}

func (w witness) requireRow(t *testing.T, n, token int) {
	t.Helper()
	gotN, gotToken := w.row(t)
	require.Equal(t, [2]int{n, token}, [2]int{gotN, gotToken})
}

func waysDatabase(t *testing.T) string {
	dsn := localpg.Database(t)
	run(t, dsn, waysSchema, `CREATE TABLE other (LIKE orders INCLUDING ALL)`, `INSERT INTO other VALUES (1, 0, 0)`, waysRow)
	return dsn
}

// No way around the check writes the row, at no entry of database/sql, and what
// is refused costs neither the connection nor the transaction.
func TestWaysAroundTheCheck(t *testing.T) {
	ctx := tokenctx.With(t.Context(), waysToken)
	dsn := waysDatabase(t)
	plain := newWitness(t, dsn)
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			handle, err := driver.Open(withParameter(dsn, w.parameter), driver.Protect("orders", rewrite.Strict))
			db := openSingle(t, handle, err)
			for _, e := range w.through() {
				t.Run(e.name, func(t *testing.T) {
					_, err := plain.Exec(t.Context(), waysRow)
					require.NoError(t, err)
					err = e.send(ctx, db.DB, func(on sender) {
						db.requireUsable(t, on)
						for _, sql := range w.follow {
							_, _ = on.ExecContext(ctx, sql)
						}
						db.requireUsable(t, on)
					}, w.sql, w.arguments())
					requireRefused(t, err, w.expected(e))
					require.NoError(t, db.Ping())
					db.requireUsable(t, db)
					db.requireIdle(t)
					plain.requireRow(t, 0, waysToken)
				})
			}
		})
	}
}

// The same ways write through pgx alone, so that they are ways.
func TestWaysWorkAgainstPgx(t *testing.T) {
	dsn := waysDatabase(t)
	plain := newWitness(t, dsn)
	for name, w := range ways() {
		if w.harmless != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, e := range w.through() {
				t.Run(e.name, func(t *testing.T) {
					_, err := plain.Exec(t.Context(), waysRow)
					require.NoError(t, err)
					handle, err := sql.Open("pgx", withParameter(dsn, w.parameter))
					db := openSingle(t, handle, err)
					for _, sql := range w.lead {
						_, err := db.Exec(sql)
						require.NoError(t, err, sql)
					}
					require.NoError(t, e.send(t.Context(), db.DB, func(on sender) {
						for _, sql := range w.follow {
							_, err := on.ExecContext(t.Context(), sql)
							require.NoError(t, err, sql)
						}
					}, w.sql, w.arguments()))
					n, _ := plain.row(t)
					require.NotZero(t, n)
				})
			}
		})
	}
}
