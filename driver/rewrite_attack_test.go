package driver_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openRewriting opens a handle on levelSchema with orders and jobs protected.
func openRewriting(t *testing.T, opts ...driver.Option) *sql.DB {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	db, err := driver.Open(dsn, append(opts, driver.Protect("orders", rewrite.Lease), driver.Protect("jobs", rewrite.Lease), driver.WithRewrite())...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// A statement that is guarded by hand runs at the level report, with and without
// rewriting, and the token is put there for tokenctx.Arg.
func TestAttackReportTakesArg(t *testing.T) {
	for name, write := range map[string]struct {
		sql  string
		args []any
	}{
		"a plain insert": {`INSERT INTO orders (id, status, last_token) VALUES ($1, $2, $3)`, []any{2, "mine", tokenctx.Arg}},
		"an upsert": {`INSERT INTO orders (id, status, last_token) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE
			SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`, []any{2, "mine", tokenctx.Arg}},
		"the token by itself": {`WITH w AS (INSERT INTO orders (id, status) VALUES (2, 'mine')) UPDATE orders SET last_token = $1 WHERE id = 1`, []any{tokenctx.Arg}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			db := openRewriting(t, driver.WithLevel(driver.Report, "orders"), r.option())
			_, err := db.ExecContext(tokenctx.With(t.Context(), 8), write.sql, write.args...)
			require.NoError(t, err)
			require.Empty(t, r.take())
		})
	}
}

// At the level report a stale write that is guarded by hand is told of, with
// rewriting too.
func TestAttackReportHearsOfStale(t *testing.T) {
	var r recorder
	db := openRewriting(t, driver.WithLevel(driver.Report, "orders"), r.option())
	_, err := db.ExecContext(tokenctx.With(t.Context(), 4), `INSERT INTO orders (id, status, last_token) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE
		SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`, 1, "mine", 4)
	require.NoError(t, err)
	require.Equal(t, []string{"stale"}, r.take())
}

// At the level off a statement gets its own arguments: the token for
// tokenctx.Arg, and nothing else.
func TestAttackOffKeepsArguments(t *testing.T) {
	for name, write := range map[string]struct {
		sql  string
		args []any
	}{
		"one more":  {`INSERT INTO orders (id, status, last_token) VALUES ($1, 'a', $2), (3, 'b', DEFAULT)`, []any{2, tokenctx.Arg}},
		"one other": {`INSERT INTO orders (id, status, last_token) VALUES ($1, 'a', $2), (3, 'b', $3)`, []any{2, tokenctx.Arg, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			db := openRewriting(t, driver.WithLevel(driver.Off, "orders"))
			_, err := db.ExecContext(tokenctx.With(t.Context(), 8), write.sql, write.args...)
			require.NoError(t, err)
			require.Equal(t, "a 8", order(t, db, 2))
			require.Equal(t, "b 0", order(t, db, 3))
		})
	}
}

// A statement that is sent as it is, without arguments, isn't held to what the
// simple protocol does with arguments.
func TestAttackReportInSimpleProtocol(t *testing.T) {
	db := openRewriting(t, driver.WithLevel(driver.Report, "orders"))
	_, err := db.ExecContext(tokenctx.With(t.Context(), 8), `UPDATE orders SET status = E'a\\b' WHERE id = 1`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	require.Equal(t, `a\b 5`, order(t, db, 1))
}

// reentrant is an argument that sends a statement when it is asked for its value.
type reentrant struct{ send func() error }

func (r reentrant) Value() (sqldriver.Value, error) { return "nested", r.send() }

// By Conn.Raw an argument may send a statement on the connection that it is for:
// pgx asks it before it sends anything.
func TestAttackReentrantArgument(t *testing.T) {
	db := openRewriting(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	ctx := tokenctx.With(t.Context(), 8)
	require.NoError(t, conn.Raw(func(dc any) error {
		c := dc.(*driver.Conn)
		nested := reentrant{func() error {
			_, err := c.ExecContext(ctx, `UPDATE jobs SET status = 'inner' WHERE id = $1`, []sqldriver.NamedValue{{Ordinal: 1, Value: 1}})
			return err
		}}
		_, err := c.ExecContext(ctx, `UPDATE orders SET status = $1 WHERE id = $2`, []sqldriver.NamedValue{{Ordinal: 1, Value: nested}, {Ordinal: 2, Value: 1}})
		return err
	}))
	require.Equal(t, "nested 8", order(t, db, 1))
}

// fleeting is a token that sends a statement when it is asked for its value.
type fleeting struct{ send func() error }

func (f fleeting) Value() (sqldriver.Value, error) { return int64(8), f.send() }

// A token that is asked for its value while tokens are bound leaves the other
// arguments what they are.
func TestAttackReentrantToken(t *testing.T) {
	db := openRewriting(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	ctx := tokenctx.With(t.Context(), 8)
	named := func(values ...any) (args []sqldriver.NamedValue) {
		for i, v := range values {
			args = append(args, sqldriver.NamedValue{Ordinal: i + 1, Value: v})
		}
		return args
	}
	require.NoError(t, conn.Raw(func(dc any) error {
		c := dc.(*driver.Conn)
		token := fleeting{func() error {
			_, err := c.ExecContext(ctx, `UPDATE jobs SET status = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`, named("inner", tokenctx.Arg, 1))
			return err
		}}
		_, err := c.ExecContext(ctx, `UPDATE orders SET status = $1, last_token = $2 WHERE last_token <= $2 AND id <= $3`, named("outer", token, 1))
		return err
	}))
	require.Equal(t, "outer 8", order(t, db, 1))
}

// As many arguments as the protocol takes leave no room for the token.
func TestAttackMostArguments(t *testing.T) {
	db := openRewriting(t)
	var b strings.Builder
	args := make([]any, 65535)
	for i := range args {
		fmt.Fprintf(&b, ",$%d", i+1)
		args[i] = i
	}
	_, err := db.ExecContext(tokenctx.With(context.Background(), 8), `DELETE FROM jobs WHERE id IN (`+b.String()[1:]+`)`, args...)
	if err != nil {
		require.ErrorIs(t, err, rewrite.ErrRefused, "what the caller passed is not too much: say that the token is")
	}
}

// A text without arguments is sent in one message by pgx, and leaves no prepared
// statement behind. With the token as its only argument it shouldn't either: bun's
// texts are all different.
func TestAttackTextsLeaveNoStatements(t *testing.T) {
	db := openRewriting(t)
	db.SetMaxOpenConns(1)
	for i := range 20 {
		_, err := db.ExecContext(tokenctx.With(t.Context(), 8), fmt.Sprintf(`UPDATE orders SET status = 'v%d' WHERE id = 1`, i))
		require.NoError(t, err)
	}
	var n int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'UPDATE%'`).Scan(&n))
	require.Zero(t, n)
}
