package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// shortWay asks a handle's connection whether a statement goes the short way.
func shortWay(t *testing.T, db *sql.DB, ctx context.Context, query string, asQuery bool, args ...any) (bound []sqldriver.NamedValue, ok bool) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, conn.Raw(func(dc any) error {
		named := make([]sqldriver.NamedValue, len(args))
		for i, a := range args {
			named[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: a}
		}
		_, bound, ok = dc.(*Conn).direct(ctx, query, named, asQuery)
		return nil
	}))
	return bound, ok
}

func TestShortWay(t *testing.T) {
	ctx := tokenctx.With(t.Context(), 7)
	tests := map[string]struct {
		ctx     context.Context
		sql     string
		asQuery bool
		args    []any
		bound   []any // nil: the long way
	}{
		"unprotected":                    {ctx, `UPDATE notes SET a = $1`, false, []any{1}, []any{1}},
		"unprotected, a time":            {ctx, `UPDATE notes SET a = $1`, false, []any{time.Time{}}, []any{time.Time{}}},
		"unprotected, a type of its own": {ctx, `UPDATE notes SET a = $1`, false, []any{sql.NullInt64{}}, nil},
		"unprotected, the token":         {ctx, `UPDATE notes SET a = $1`, false, []any{tokenctx.Arg}, nil},
		"a query":                        {ctx, `SELECT * FROM notes`, true, []any{}, []any{}},
		"a query of the table":           {ctx, `SELECT * FROM orders`, true, []any{}, []any{}},
		"the token's stand-in":           {ctx, guarded, false, []any{"paid", tokenctx.Arg, 17}, []any{"paid", int64(7), 17}},
		"the token itself":               {ctx, guarded, false, []any{"paid", int64(7), 17}, []any{"paid", int64(7), 17}},
		"as a query":                     {ctx, guarded, true, []any{"paid", int64(7), 17}, nil},
		"another token":                  {ctx, guarded, false, []any{"paid", int64(8), 17}, nil},
		"the token as another type":      {ctx, guarded, false, []any{"paid", 7, 17}, nil},
		"the stand-in elsewhere":         {ctx, guarded, false, []any{tokenctx.Arg, tokenctx.Arg, 17}, nil},
		"too few arguments":              {ctx, guarded, false, []any{"paid"}, nil},
		"no token":                       {t.Context(), guarded, false, []any{"paid", tokenctx.Arg, 17}, nil},
		"token 0":                        {tokenctx.With(ctx, 0), guarded, false, []any{"paid", tokenctx.Arg, 17}, nil},
		"unguarded":                      {ctx, `UPDATE orders SET status = 'paid'`, false, []any{}, nil},
		"a literal token":                {ctx, `UPDATE orders SET last_token = 7 WHERE last_token < 7`, false, []any{}, nil},
		"another path":                   {ctx, `SET search_path TO app`, false, []any{}, nil},
		"another catalog":                {ctx, `CREATE TABLE notes (a int)`, false, []any{}, nil},
	}
	connector, err := Wrap(&fake{count: 1, quiet: true}, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound, ok := shortWay(t, db, test.ctx, test.sql, test.asQuery, test.args...)
			require.Equal(t, test.bound != nil, ok)
			for i, want := range test.bound {
				require.Equal(t, want, bound[i].Value)
			}
		})
	}
}

// What somebody is to hear of, or to look at, takes the long way.
func TestLongWay(t *testing.T) {
	for name, opts := range map[string][]Option{
		"hooks":          {WithHooks(Hooks{Before: func(context.Context, Operation) {}})},
		"a report":       {Protect("jobs", rewrite.Lease), WithLevel(Report, "jobs")},
		"a table is off": {Protect("jobs", rewrite.Lease), WithLevel(Off, "jobs")},
	} {
		t.Run(name, func(t *testing.T) {
			connector, err := Wrap(&fake{count: 1, quiet: true}, append(opts, Protect("orders", rewrite.Strict))...)
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer func() { require.NoError(t, db.Close()) }()
			_, ok := shortWay(t, db, t.Context(), `UPDATE notes SET a = 1`, false)
			require.False(t, ok)
		})
	}
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
