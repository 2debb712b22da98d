package driver

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// detourOn asks a handle's connection why a statement doesn't take the short way.
func detourOn(t *testing.T, db *sql.DB, ctx context.Context, query string, asQuery bool, args ...any) (bound []sqldriver.NamedValue, reason Detour) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.Raw(func(dc any) error {
		_, bound, reason = dc.(*Conn).direct(ctx, query, named(args), asQuery)
		return nil
	}))
	return bound, reason
}

func named(args []any) []sqldriver.NamedValue {
	out := make([]sqldriver.NamedValue, len(args))
	for i, a := range args {
		out[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

// detourStatement is a statement, and why it doesn't take the short way, if it doesn't.
type detourStatement struct {
	sql     string
	asQuery bool
	args    []any
	token   tokenctx.Token
	reason  Detour
	bound   []any // on the short way
}

var detourStatements = map[string]detourStatement{
	"unprotected":                    {sql: `UPDATE notes SET a = $1`, args: []any{1}, bound: []any{1}},
	"unprotected, a time":            {sql: `UPDATE notes SET a = $1`, args: []any{time.Time{}}, bound: []any{time.Time{}}},
	"unprotected, a type of its own": {sql: `UPDATE notes SET a = $1`, args: []any{sql.NullInt64{}}, reason: DetourArgument},
	"unprotected, the token":         {sql: `UPDATE notes SET a = $1`, args: []any{tokenctx.Arg}, reason: DetourTokenArgument},
	"a query":                        {sql: `SELECT * FROM notes`, asQuery: true},
	"a query of the table":           {sql: `SELECT * FROM orders`, asQuery: true},
	"the token's stand-in":           {sql: guarded, args: []any{"paid", tokenctx.Arg, 17}, token: 7, bound: []any{"paid", int64(7), 17}},
	"the token itself":               {sql: guarded, args: []any{"paid", int64(7), 17}, token: 7, bound: []any{"paid", int64(7), 17}},
	"as a query":                     {sql: guarded, args: []any{"paid", int64(7), 17}, token: 7, asQuery: true, reason: DetourGuardedQuery},
	"another token":                  {sql: guarded, args: []any{"paid", int64(8), 17}, token: 7, reason: DetourTokenArgument},
	"the token as another type":      {sql: guarded, args: []any{"paid", 7, 17}, token: 7, reason: DetourTokenArgument},
	"the stand-in elsewhere":         {sql: guarded, args: []any{tokenctx.Arg, tokenctx.Arg, 17}, token: 7, reason: DetourTokenArgument},
	"too few arguments":              {sql: guarded, args: []any{"paid"}, token: 7, reason: DetourTokenArgument},
	"no token":                       {sql: guarded, args: []any{"paid", tokenctx.Arg, 17}, reason: DetourNoToken},
	"a token that isn't valid":       {sql: guarded, args: []any{"paid", tokenctx.Arg, 17}, token: -1, reason: DetourNoToken},
	"unguarded":                      {sql: `UPDATE orders SET status = 'paid'`, token: 7, reason: DetourViolation},
	"a literal token":                {sql: `UPDATE orders SET last_token = 7 WHERE last_token < 7`, token: 7, reason: DetourTokenInText},
	"another path":                   {sql: `SET search_path TO app`, reason: DetourSideEffect},
	"another catalog":                {sql: `CREATE TABLE notes (a int)`, reason: DetourSideEffect},
}

func TestDetourOfAStatement(t *testing.T) {
	connector, err := Wrap(&fake{count: 1, quiet: true}, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for name, test := range detourStatements {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if test.token != 0 {
				ctx = tokenctx.With(ctx, test.token)
			}
			before := connector.Stats().Detours
			bound, reason := detourOn(t, db, ctx, test.sql, test.asQuery, test.args...)
			require.Equal(t, test.reason.String(), reason.String())
			if test.reason == gate.OnShortWay {
				require.Equal(t, before, connector.Stats().Detours)
				require.Equal(t, named(test.bound), append([]sqldriver.NamedValue{}, bound...))
			} else {
				require.Equal(t, before[test.reason]+1, connector.Stats().Detours[test.reason])
			}
		})
	}
}

// detourSettings are handles on which no statement takes the short way, or not a
// guarded write.
var detourSettings = map[string]struct {
	opts   []Option
	sql    string
	reason Detour
}{
	"hooks":          {[]Option{WithHooks(Hooks{Before: func(context.Context, Operation) {}})}, `UPDATE notes SET a = 1`, DetourObserver},
	"a report":       {[]Option{Protect("jobs", rewrite.Lease), WithLevel(Report, "jobs")}, `UPDATE notes SET a = 1`, DetourReportedTable},
	"a table is off": {[]Option{Protect("jobs", rewrite.Lease), WithLevel(Off, "jobs")}, `UPDATE notes SET a = 1`, DetourOffTable},
	"rewriting":      {[]Option{WithRewrite()}, `UPDATE orders SET status = 'paid'`, DetourRewritten},
}

func TestDetourBySettings(t *testing.T) {
	for name, test := range detourSettings {
		t.Run(name, func(t *testing.T) {
			connector, err := Wrap(&fake{count: 1, quiet: true}, append(test.opts, Protect("orders", rewrite.Strict))...)
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer func() { require.NoError(t, db.Close()) }()
			_, err = db.ExecContext(tokenctx.With(t.Context(), 7), test.sql)
			require.NoError(t, err)
			require.Equal(t, map[Detour]uint64{test.reason: 1}, connector.Stats().Detours)
		})
	}
}

// detourSituation is something that has happened on a connection to a server, after
// which a statement takes the long way.
type detourSituation struct {
	mode   pgx.QueryExecMode // 0 for pgx's default
	arrive func(t *testing.T, db *sql.DB, c *Conn)
	sql    string // the statement; guarded and with arguments if none is given
	reason Detour
}

var detourSituations = map[string]detourSituation{
	"nothing has happened": {arrive: func(*testing.T, *sql.DB, *Conn) {}},
	"the simple protocol":  {mode: pgx.QueryExecModeSimpleProtocol, arrive: func(*testing.T, *sql.DB, *Conn) {}, reason: DetourSimpleProtocol},
	"a column is unfit": {arrive: func(t *testing.T, _ *sql.DB, c *Conn) {
		tables := slices.Clone(c.connector.current.Load().Tables)
		tables[0].Unfit = "is unfit"
		last := *c.connector.current.Load().Reading()
		last.Begun, last.Ended = last.Begun+100, last.Ended+100
		_, err := c.connector.protect(tables, &last, nil)
		require.NoError(t, err)
	}, reason: DetourUnfitTable},
	"the catalog is changed": {arrive: func(t *testing.T, _ *sql.DB, c *Conn) { sends(t, c, `BEGIN`, `CREATE TABLE made (id int)`) }, sql: `SELECT 1`, reason: DetourCatalogChange},
	"another connection changes the catalog during a transaction": {arrive: func(t *testing.T, db *sql.DB, c *Conn) {
		sends(t, c, `BEGIN`)
		changesElsewhere(t, db)
		sends(t, c, `SELECT 1`) // which looks at it
	}, sql: `SELECT 1`, reason: DetourChangeInTransaction},
	"a cursor may make a view": {arrive: func(t *testing.T, _ *sql.DB, c *Conn) {
		sends(t, c, `BEGIN`, `DECLARE c CURSOR WITH HOLD FOR SELECT make()`, `COMMIT`)
		require.NoError(t, c.ResetSession(t.Context()))
	}, reason: DetourDeferredChange},
	"another connection changes the catalog": {arrive: func(t *testing.T, db *sql.DB, _ *Conn) {
		changesElsewhere(t, db)
	}, reason: DetourUnreadChange},
	"an argument asks": {arrive: func(_ *testing.T, _ *sql.DB, c *Conn) { c.inUse = true }, reason: DetourNested},
	"another encoding": {arrive: func(t *testing.T, _ *sql.DB, c *Conn) {
		_, err := c.std.Conn().Exec(t.Context(), `SET client_encoding = 'LATIN1'`)
		require.NoError(t, err)
	}, reason: DetourSessionSetting},
	"a transaction": {arrive: func(t *testing.T, _ *sql.DB, c *Conn) {
		_, err := c.BeginTx(tokenctx.With(t.Context(), 7), sqldriver.TxOptions{})
		require.NoError(t, err)
	}, reason: DetourTransactionToken},
}

// changesElsewhere changes the catalog on another connection, which is kept from being
// used again: it would look at that.
func changesElsewhere(t *testing.T, db *sql.DB) {
	t.Helper()
	other, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { other.Close() })
	_, err = other.ExecContext(t.Context(), `CREATE TABLE made (id int)`)
	require.NoError(t, err)
}

func sends(t *testing.T, c *Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := c.ExecContext(t.Context(), s, nil)
		require.NoError(t, err, s)
	}
}

func TestDetourOfASituation(t *testing.T) {
	for name, test := range detourSituations {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t)
			fencetest.Run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0)`,
				`CREATE FUNCTION make() RETURNS int LANGUAGE plpgsql AS $$ BEGIN CREATE VIEW made AS SELECT 1; RETURN 1; END $$`)
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			config.DefaultQueryExecMode = cmp.Or(test.mode, config.DefaultQueryExecMode)
			connector, err := NewConnector(*config, Protect("orders", rewrite.Strict), WithGuardedFunctions("make"))
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer db.Close()
			onConn(t, db, func(c *Conn) {
				query, args := guarded, []any{"paid", tokenctx.Arg, 17}
				if test.sql != "" {
					query, args = test.sql, nil
				}
				test.arrive(t, db, c)
				before := c.connector.Stats().Detours[test.reason]
				_, _, reason := c.direct(tokenctx.With(t.Context(), 7), query, named(args), false)
				require.Equal(t, test.reason.String(), reason.String())
				if reason != gate.OnShortWay {
					require.Equal(t, before+1, c.connector.Stats().Detours[reason])
				}
			})
		})
	}
}

// onConn calls use with a connection of a handle, which is closed afterwards.
func onConn(t *testing.T, db *sql.DB, use func(c *Conn)) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.ErrorIs(t, conn.Raw(func(dc any) error {
		use(dc.(*Conn))
		return sqldriver.ErrBadConn // so that it isn't used again
	}), sqldriver.ErrBadConn)
}

// Nothing is enforced while the session runs a statement that the check rests on.
func TestDetourByUncheckedState(t *testing.T) {
	connector, err := Wrap(&fake{count: 1, quiet: true})
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer func() { require.NoError(t, db.Close()) }()
	onConn(t, db, func(c *Conn) {
		sends(t, c, `SET ROLE somebody`)
		_, _, reason := c.direct(t.Context(), `SELECT 1`, nil, false)
		require.Equal(t, DetourUncheckedState.String(), reason.String())
	})
}

// A prepared text that isn't what is to be sent by now is prepared again.
func TestDetourOfAPreparedStatement(t *testing.T) {
	dsn := localpg.Database(t)
	fencetest.Run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0)`)
	db, err := Open(dsn, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	defer db.Close()
	onConn(t, db, func(c *Conn) {
		prepared, err := c.PrepareContext(t.Context(), `SELECT 1`)
		require.NoError(t, err)
		s := prepared.(*Stmt)
		for _, text := range []string{s.text, `SELECT 2`} {
			s.text = text
			rows, err := s.QueryContext(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, rows.Close())
		}
		require.Equal(t, map[Detour]uint64{DetourPreparedText: 1}, c.connector.Stats().Detours)
		require.Equal(t, `SELECT 1`, s.text)
	})
}

// Each reason has a name of its own and a row in one of the tables.
func TestEveryDetourIsTested(t *testing.T) {
	tested := map[Detour]bool{DetourUncheckedState: true, DetourPreparedText: true} // by tests of their own
	for _, test := range detourStatements {
		tested[test.reason] = true
	}
	for _, test := range detourSettings {
		tested[test.reason] = true
	}
	for _, test := range detourSituations {
		tested[test.reason] = true
	}
	names := make(map[string]bool)
	for d := range gate.DetourEnd {
		require.True(t, tested[d], d)
		require.NotEmpty(t, d.String())
		require.False(t, names[d.String()], d)
		names[d.String()] = true
	}
	require.Equal(t, "unknown", gate.DetourEnd.String())
}

// The counts of a closed connection stay, and JSON has the reasons as words.
func TestDetoursInStats(t *testing.T) {
	connector, err := Wrap(&fake{count: 1, quiet: true}, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(t.Context(), guarded, "paid", tokenctx.Arg, 17)
	require.ErrorIs(t, err, ErrNoToken)
	before, _ := StatsOf(db)
	require.NoError(t, db.Close())
	after, ok := StatsOf(db)
	require.True(t, ok)
	require.Equal(t, before.Detours, after.Detours)
	text, err := json.Marshal(after.Detours)
	require.NoError(t, err)
	require.JSONEq(t, `{"no token": 1}`, string(text))
}

// A write that changes no row is asked after, whichever way it went, and the
// arguments of the caller stay as they are.
func TestShortWayOutcome(t *testing.T) {
	inner := &fake{rows: [][]sqldriver.Value{{int64(9)}}}
	connector, err := Wrap(inner, ProtectTable(rewrite.Table{Name: "orders", Mode: rewrite.Strict, Key: []string{"id"}}))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for range 3 {
		inner.rows = [][]sqldriver.Value{{int64(9)}}
		_, err = db.ExecContext(tokenctx.With(t.Context(), 7), guarded, "paid", tokenctx.Arg, 17)
		var stale *StaleError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, tokenctx.Token(9), stale.Current)
	}
	require.Equal(t, []any{"paid", int64(7), 17}, inner.calls[0].args)
}

// An execution allocates what database/sql does, and nothing more.
func TestExecAllocatesNothing(t *testing.T) {
	quiet := &fake{count: 1, quiet: true}
	fenced, err := Wrap(quiet, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	ctx := tokenctx.With(t.Context(), 7)
	allocations := func(connector sqldriver.Connector, query string, args ...any) float64 {
		db := sql.OpenDB(connector)
		defer func() { require.NoError(t, db.Close()) }()
		return testing.AllocsPerRun(200, func() {
			if _, err := db.ExecContext(ctx, query, args...); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, args := range [][]any{{"paid", tokenctx.Arg, int64(17)}, {"paid", int64(7), int64(17)}} {
		require.Equal(t, allocations(quiet, guarded, args...), allocations(fenced, guarded, args...))
	}
	const unprotected = `UPDATE notes SET body = $1 WHERE id = $2`
	require.Equal(t, allocations(quiet, unprotected, "a", int64(1)), allocations(fenced, unprotected, "a", int64(1)))
}
