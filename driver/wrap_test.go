package driver

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const guarded = `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token < $2`

// wrapped returns a handle whose statements end in a fake.
func wrapped(t *testing.T, f *fake) *sql.DB {
	t.Helper()
	connector, err := Wrap(f, Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestTokenIsSentAsInt64(t *testing.T) {
	token := int32(7)
	for name, arg := range map[string]any{
		"Arg": tokenctx.Arg, "int": 7, "int64": int64(7), "uint8": uint8(7), "Token": tokenctx.Token(7), "pointer": &token,
		"sql.NullInt64": sql.NullInt64{Int64: 7, Valid: true}, "pgtype.Int8": pgtype.Int8{Int64: 7, Valid: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{count: 1}
			args := []any{"paid", arg, 17}
			_, err := wrapped(t, f).ExecContext(tokenctx.With(t.Context(), 7), guarded, args...)
			require.NoError(t, err)
			require.Equal(t, []fakeCall{{guarded, []any{"paid", int64(7), 17}}}, f.calls)
			require.Equal(t, arg, args[1], "the caller's arguments stay as they are")
		})
	}
}

// fickle shows one value and sends another.
type fickle struct{ calls int }

func (f *fickle) Value() (sqldriver.Value, error) {
	f.calls++
	return int64(6 + f.calls), nil
}

func TestTokenArgumentIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		arg  any
		rule rewrite.Rule
	}{
		"float": {7.0, rewrite.TokenArgument}, "fraction": {7.5, rewrite.TokenArgument}, "text": {"7", rewrite.TokenArgument},
		"bytes": {[]byte("7"), rewrite.TokenArgument}, "nil": {nil, rewrite.TokenArgument}, "bool": {true, rewrite.TokenArgument},
		"nil pointer": {(*int64)(nil), rewrite.TokenArgument}, "NULL": {sql.NullInt64{}, rewrite.TokenArgument},
		"too large": {uint64(1<<63 + 7), rewrite.TokenArgument}, "another": {8, rewrite.OtherToken},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{count: 1}
			_, err := wrapped(t, f).ExecContext(tokenctx.With(t.Context(), 7), guarded, "paid", test.arg, 17)
			var v *rewrite.Violation
			require.ErrorAs(t, err, &v)
			require.Equal(t, test.rule, v.Rule)
			require.Empty(t, f.calls)
		})
	}
	t.Run("a Valuer that changes its mind", func(t *testing.T) {
		f := &fake{count: 1}
		_, err := wrapped(t, f).ExecContext(tokenctx.With(t.Context(), 7), guarded, "paid", &fickle{}, 17)
		require.NoError(t, err)
		require.Equal(t, int64(7), f.calls[0].args[1])
	})
}

func TestArgElsewhereIsRefused(t *testing.T) {
	f := &fake{count: 1}
	db := wrapped(t, f)
	ctx := tokenctx.With(t.Context(), 7)
	for _, sql := range []string{`SELECT $1`, `UPDATE notes SET body = $1`, `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token < $2`} {
		_, err := db.ExecContext(ctx, sql, tokenctx.Arg, tokenctx.Arg, 3)
		var v *rewrite.Violation
		require.ErrorAs(t, err, &v, sql)
		require.Equal(t, rewrite.MisplacedArg, v.Rule)
	}
	require.Empty(t, f.calls)
}

// rewriteTo is a query rewriter with a mind of its own.
type rewriteTo func(conn *pgx.Conn) (string, []any)

func (r rewriteTo) RewriteQuery(_ context.Context, conn *pgx.Conn, _ string, _ []any) (string, []any, error) {
	sql, args := r(conn)
	return sql, args, nil
}

func TestSpecialArguments(t *testing.T) {
	ctx := tokenctx.With(t.Context(), 7)
	const named = `UPDATE orders SET status = @status, last_token = @token WHERE id = @id AND last_token < @token`
	tests := map[string]struct {
		sql  string
		args []any
		want []any        // the arguments that are sent
		rule rewrite.Rule // or the rule that refuses
	}{
		"exec mode shifts the placeholders": {guarded, []any{pgx.QueryExecModeExec, "paid", tokenctx.Arg, 17}, []any{pgx.QueryExecModeExec, "paid", int64(7), 17}, ""},
		"formats are arguments to Exec":     {guarded, []any{pgx.QueryResultFormats{1}, "paid", 7, 17}, nil, rewrite.TokenArgument},
		"exec mode with a wrong token":      {guarded, []any{pgx.QueryExecModeExec, "paid", 8, 17}, nil, rewrite.OtherToken},
		"named arguments":                   {named, []any{pgx.NamedArgs{"status": "paid", "token": tokenctx.Arg, "id": 17}}, []any{"paid", int64(7), 17}, ""},
		"strict named arguments":            {named, []any{pgx.StrictNamedArgs{"status": "paid", "token": 7, "id": 17}}, []any{"paid", int64(7), 17}, ""},
		"a rewriter makes a write of a read": {`SELECT 1`, []any{rewriteTo(func(*pgx.Conn) (string, []any) {
			return `UPDATE orders SET status = 'x'`, nil
		})}, nil, rewrite.UnguardedUpdate},
		"a rewriter uses the connection": {`SELECT 1`, []any{rewriteTo(func(conn *pgx.Conn) (string, []any) {
			_, _ = conn.Exec(context.Background(), `UPDATE orders SET status = 'x'`)
			return `SELECT 1`, nil
		})}, nil, rewrite.QueryRewriter},
		"a rewriter returns a rewriter": {`SELECT 1`, []any{rewriteTo(func(*pgx.Conn) (string, []any) {
			return `SELECT 1`, []any{pgx.NamedArgs{}}
		})}, nil, rewrite.QueryRewriter},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fake{count: 1}
			_, err := wrapped(t, f).ExecContext(ctx, test.sql, test.args...)
			if test.rule != "" {
				var v *rewrite.Violation
				require.ErrorAs(t, err, &v)
				require.Equal(t, test.rule, v.Rule, err.Error())
				require.Empty(t, f.calls)
				return
			}
			require.NoError(t, err)
			require.Len(t, f.calls, 1)
			require.Equal(t, test.want, f.calls[0].args)
		})
	}
}

// pgx's Query takes result formats, its Exec doesn't: a guarded write that is
// executed although it was queried must not be sent with them.
func TestFormatsOfAnExecutedQuery(t *testing.T) {
	f := &fake{count: 1}
	db := wrapped(t, f)
	ctx := tokenctx.With(t.Context(), 7)
	for _, query := range []string{guarded, `SELECT $1, $2, $3`} {
		f.calls = nil
		rows, err := db.QueryContext(ctx, query, pgx.QueryResultFormats{1}, pgx.QueryExecModeExec, "paid", 7, 17)
		require.NoError(t, err)
		require.NoError(t, rows.Close())
		want := []any{pgx.QueryExecModeExec, "paid", int64(7), 17}
		if query != guarded {
			want = []any{pgx.QueryResultFormats{1}, pgx.QueryExecModeExec, "paid", 7, 17}
		}
		require.Equal(t, want, f.calls[0].args)
	}
}

func TestWrapNeedsNothingButAConnector(t *testing.T) {
	_, err := Wrap(nil)
	require.ErrorContains(t, err, "needs a connector")
	f := &fake{count: 1}
	connector, err := Wrap(f)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	require.IsType(t, &Driver{}, db.Driver())
	require.NoError(t, db.Ping())
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(`UPDATE orders SET status = 'x'`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
}

// A write that returns rows is asked for its first row before Query returns,
// and the row isn't lost.
func TestReturningKeepsItsFirstRow(t *testing.T) {
	f := &fake{rows: [][]sqldriver.Value{{"a"}, {"b"}}}
	rows, err := wrapped(t, f).QueryContext(tokenctx.With(t.Context(), 7), guarded+` RETURNING status`, "paid", tokenctx.Arg, 17)
	require.NoError(t, err)
	var got []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		got = append(got, s)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, []string{"a", "b"}, got)
}
