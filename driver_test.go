package fencerow_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

func TestMain(m *testing.M) { localpg.Main(m) }

// schema has one protected table of each mode, one that belongs to a resource,
// and one that isn't protected.
const schema = `
	CREATE TABLE orders (id bigint PRIMARY KEY, status text, total bigint);
	CREATE TABLE jobs (id bigint PRIMARY KEY, state text);
	CREATE TABLE invoices (id bigint PRIMARY KEY, state text);
	CREATE TABLE notes (id bigint PRIMARY KEY, body text);
	INSERT INTO orders VALUES (1, 'new', 10), (2, 'new', 20);
	INSERT INTO jobs VALUES (1, 'new');
	INSERT INTO invoices VALUES (1, 'new');
	INSERT INTO notes VALUES (1, 'new');`

var template = localpg.Template{Name: "pause", Setup: func(ctx context.Context, dsn string) error {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, schema); err != nil {
		return err
	}
	return migrations.Register(ctx, dsn,
		migrations.Table{Name: "orders", Mode: migrations.Strict},
		migrations.Table{Name: "jobs", Mode: migrations.Lease},
		migrations.Table{Name: "invoices", Mode: migrations.Lease, Resource: "billing"})
}}

const (
	guardedOrder = `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token < $2`
	guardedJob   = `UPDATE jobs SET state = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`
)

// open returns a handle of fencerow's driver and a plain one on a new database.
func open(t *testing.T) (fenced, plain *sql.DB) {
	t.Helper()
	dsn := localpg.Database(t, template)
	for name, db := range map[string]**sql.DB{"fencerow": &fenced, "pgx": &plain} {
		handle, err := sql.Open(name, dsn)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, handle.Close()) })
		*db = handle
	}
	return fenced, plain
}

// holder is the context of a lock holder with the given token.
func holder(t *testing.T, token tokenctx.Token) context.Context {
	return tokenctx.With(t.Context(), token)
}

// order reads a row over the plain handle.
func order(t *testing.T, plain *sql.DB, id int) (status string, token int64) {
	t.Helper()
	require.NoError(t, plain.QueryRow(`SELECT status, last_token FROM orders WHERE id = $1`, id).Scan(&status, &token))
	return status, token
}

func TestStaleWriteChangesNothing(t *testing.T) {
	db, plain := open(t)
	_, err := db.ExecContext(holder(t, 7), guardedOrder, "by A", tokenctx.Arg, 1)
	require.NoError(t, err)
	_, err = db.ExecContext(holder(t, 8), guardedOrder, "by B", tokenctx.Arg, 1)
	require.NoError(t, err)

	_, err = db.ExecContext(holder(t, 7), guardedOrder, "by A again", tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrStale)
	var stale *driver.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, &driver.StaleError{Table: "orders", Token: 7, Current: 8}, stale)

	status, token := order(t, plain, 1)
	require.Equal(t, "by B", status)
	require.EqualValues(t, 8, token)
}

func TestRetryInStrictModeIsAReplay(t *testing.T) {
	db, plain := open(t)
	ctx := holder(t, 7)
	_, err := db.ExecContext(ctx, guardedOrder, "paid", tokenctx.Arg, 1)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, guardedOrder, "paid", tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrReplay)
	require.NotErrorIs(t, err, driver.ErrStale)
	status, _ := order(t, plain, 1)
	require.Equal(t, "paid", status)
}

func TestRetryInLeaseModeIsAccepted(t *testing.T) {
	db, _ := open(t)
	ctx := holder(t, 7)
	for range 2 {
		result, err := db.ExecContext(ctx, guardedJob, "done", tokenctx.Arg, 1)
		require.NoError(t, err)
		n, err := result.RowsAffected()
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	}
	_, err := db.ExecContext(holder(t, 6), guardedJob, "stale", tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrStale)
}

func TestMissingRowIsNoError(t *testing.T) {
	db, _ := open(t)
	result, err := db.ExecContext(holder(t, 7), guardedOrder, "paid", tokenctx.Arg, 99)
	require.NoError(t, err)
	n, err := result.RowsAffected()
	require.NoError(t, err)
	require.Zero(t, n)

	var id int
	err = db.QueryRowContext(holder(t, 7), guardedOrder+` RETURNING id`, "paid", tokenctx.Arg, 99).Scan(&id)
	require.ErrorIs(t, err, sql.ErrNoRows)
}

// DELETE and upsert are asked after like UPDATE, and so is a holder's own token
// where the guard rejects it.
func TestOutcomesOfOtherWrites(t *testing.T) {
	const (
		remove     = `DELETE FROM orders WHERE id = $1 AND last_token < $2`
		upsert     = `INSERT INTO orders (id, status, last_token) VALUES ($1, 'x', $2) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token < EXCLUDED.last_token`
		twoRows    = `INSERT INTO orders (id, status, last_token) VALUES ($1, 'x', $2), (2, 'x', $2) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = $2 WHERE orders.last_token < $2 RETURNING id`
		strictJob  = `UPDATE jobs SET state = 'x', last_token = $2 WHERE id = $1 AND last_token < $2`
		merge      = `MERGE INTO orders o USING (SELECT $1::bigint AS id) s ON s.id = o.id WHEN MATCHED AND o.last_token < $2 THEN DELETE`
		quietMerge = `MERGE INTO orders o USING jobs s ON s.id = o.id AND s.id = $1 WHEN MATCHED AND o.last_token < $2 THEN DELETE`
	)
	for name, sql := range map[string]string{"delete": remove, "delete returning": remove + ` RETURNING id`, "upsert": upsert, "upsert of two": twoRows, "merge": merge, "a strict guard on a lease table": strictJob} {
		t.Run(name, func(t *testing.T) {
			db, plain := open(t)
			_, err := plain.Exec(`UPDATE orders SET last_token = 8; UPDATE jobs SET last_token = 8`)
			require.NoError(t, err)
			_, err = db.ExecContext(holder(t, 7), sql, 1, tokenctx.Arg)
			require.ErrorIs(t, err, driver.ErrStale)
			_, err = db.ExecContext(holder(t, 8), sql, 1, tokenctx.Arg)
			require.ErrorIs(t, err, driver.ErrReplay)
			_, err = db.ExecContext(holder(t, 9), sql, 1, tokenctx.Arg)
			require.NoError(t, err)
		})
	}
	t.Run("a merge that reads a table can't be told", func(t *testing.T) {
		db, plain := open(t)
		_, err := plain.Exec(`UPDATE orders SET last_token = 8`)
		require.NoError(t, err)
		_, err = db.ExecContext(holder(t, 7), quietMerge, 1, tokenctx.Arg)
		require.ErrorIs(t, err, driver.ErrUndetermined)
		_, err = db.ExecContext(holder(t, 9), quietMerge, 99, tokenctx.Arg)
		require.NoError(t, err, "no row carries a newer token")
	})
}

// A compare-and-set whose row the newer holder has changed matches nothing any
// more; the primary key still tells why.
func TestCompareAndSetTellsStaleFromMissing(t *testing.T) {
	db, _ := open(t)
	cas := guardedOrder + ` AND status = 'new'`
	_, err := db.ExecContext(holder(t, 8), cas, "by B", tokenctx.Arg, 1)
	require.NoError(t, err)
	_, err = db.ExecContext(holder(t, 7), cas, "by A", tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrStale)
	_, err = db.ExecContext(holder(t, 8), cas, "by B", tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrReplay)
	_, err = db.ExecContext(holder(t, 9), cas, "by C", tokenctx.Arg, 1)
	require.NoError(t, err, "the row is there but no longer new: no error, no row")
}

func TestRefusals(t *testing.T) {
	db, plain := open(t)
	ctx := holder(t, 7)
	tests := map[string]struct {
		ctx  context.Context
		sql  string
		args []any
		rule rewrite.Rule
	}{
		"no guard":                  {ctx, `UPDATE orders SET status = $1 WHERE id = $2`, []any{"x", 1}, rewrite.UnguardedUpdate},
		"guard under OR":            {ctx, `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND (last_token < $2 OR id = $3)`, []any{"x", 7, 1}, rewrite.GuardPosition},
		"text comparison":           {ctx, `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token::text < $2::text`, []any{"x", 7, 1}, rewrite.GuardComparison},
		"another parameter in SET":  {ctx, `UPDATE orders SET status = $1, last_token = $4 WHERE id = $3 AND last_token < $2`, []any{"x", 7, 1, 9}, rewrite.OtherToken},
		"an expression in SET":      {ctx, `UPDATE orders SET status = $1, last_token = last_token + 1 WHERE id = $3 AND last_token < $2`, []any{"x", 7, 1}, rewrite.RaiseValue},
		"no raise":                  {ctx, `UPDATE orders SET status = $1 WHERE id = $3 AND last_token < $2`, []any{"x", 7, 1}, rewrite.UnraisedUpdate},
		"no token":                  {t.Context(), guardedOrder, []any{"x", tokenctx.Arg, 1}, rewrite.NoToken},
		"token zero":                {tokenctx.With(t.Context(), 0), guardedOrder, []any{"x", tokenctx.Arg, 1}, rewrite.InvalidToken},
		"another token":             {ctx, guardedOrder, []any{"x", 8, 1}, rewrite.OtherToken},
		"a float token":             {ctx, guardedOrder, []any{"x", 7.0, 1}, rewrite.TokenArgument},
		"a NULL token":              {ctx, guardedOrder, []any{"x", nil, 1}, rewrite.TokenArgument},
		"another resource's token":  {tokenctx.WithResource(t.Context(), "stock", 900), `UPDATE invoices SET state = $1, last_token = $2 WHERE last_token <= $2`, []any{"x", tokenctx.Arg}, rewrite.NoToken},
		"default token on resource": {ctx, `UPDATE invoices SET state = $1, last_token = $2 WHERE last_token <= $2`, []any{"x", tokenctx.Arg}, rewrite.NoToken},
		"delete":                    {ctx, `DELETE FROM orders`, nil, rewrite.UnguardedDelete},
		"truncate":                  {ctx, `TRUNCATE orders`, nil, rewrite.ProtectedTruncate},
		"a write behind a read":     {ctx, `SELECT 1; UPDATE orders SET status = 'x'`, nil, rewrite.UnguardedUpdate},
		"a write nested too deep":   {ctx, "UPDATE orders SET total = " + strings.Repeat("1+", 500_000) + "1", nil, rewrite.TooDeep},
		"nested too deep":           {ctx, strings.Repeat("1+", 500_000) + "1", nil, rewrite.TooDeep},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, line, _ := runtime.Caller(0)
			_, err := db.ExecContext(test.ctx, test.sql, test.args...)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			var v *rewrite.Violation
			require.ErrorAs(t, err, &v)
			require.Equal(t, test.rule, v.Rule, err.Error())
			require.True(t, strings.HasSuffix(v.Location, fmt.Sprintf("/driver_test.go:%d", line+1)), v.Location)
			require.Equal(t, test.rule == rewrite.NoToken, errors.Is(err, driver.ErrNoToken))
		})
	}
	status, token := order(t, plain, 1)
	require.Equal(t, "new", status)
	require.Zero(t, token)
	require.NoError(t, db.PingContext(t.Context()), "the connection is still usable")
}

func TestResourceTokenOpensItsTable(t *testing.T) {
	db, _ := open(t)
	ctx := tokenctx.WithResource(holder(t, 900), "billing", 7)
	_, err := db.ExecContext(ctx, `UPDATE invoices SET state = $1, last_token = $2 WHERE id = 1 AND last_token <= $2`, "sent", tokenctx.Arg)
	require.NoError(t, err)
}

// Every door of database/sql gives the same answers.
func TestDoors(t *testing.T) {
	const returning = guardedOrder + ` RETURNING id`
	rowID := func(row *sql.Row) error {
		var id int
		return row.Scan(&id)
	}
	rowsOf := func(rows *sql.Rows, err error) error {
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int
			if err := rows.Scan(&id); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	result := func(_ sql.Result, err error) error { return err }
	type send func(ctx context.Context, db *sql.DB, sql string, args ...any) error
	withTx := func(fn func(ctx context.Context, tx *sql.Tx, sql string, args ...any) error) send {
		return func(ctx context.Context, db *sql.DB, sql string, args ...any) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if err := fn(ctx, tx, sql, args...); err != nil {
				// a refused or stale write leaves the transaction usable
				if _, err2 := tx.ExecContext(ctx, `SELECT 1`); err2 != nil {
					return errors.Join(fmt.Errorf("the transaction is broken: %w", err2), tx.Rollback())
				}
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		}
	}
	withConn := func(fn func(ctx context.Context, conn *sql.Conn, sql string, args ...any) error) send {
		return func(ctx context.Context, db *sql.DB, sql string, args ...any) error {
			conn, err := db.Conn(ctx)
			if err != nil {
				return err
			}
			return errors.Join(fn(ctx, conn, sql, args...), conn.Close())
		}
	}
	withStmt := func(prepare func(ctx context.Context, db *sql.DB, sql string) (*sql.Stmt, error), fn func(ctx context.Context, stmt *sql.Stmt, args ...any) error) send {
		return func(ctx context.Context, db *sql.DB, sql string, args ...any) error {
			stmt, err := prepare(ctx, db, sql)
			if err != nil {
				return err
			}
			return errors.Join(fn(ctx, stmt, args...), stmt.Close())
		}
	}
	onDB := func(ctx context.Context, db *sql.DB, sql string) (*sql.Stmt, error) {
		return db.PrepareContext(ctx, sql)
	}

	doors := map[string]send{
		"DB.Exec": func(ctx context.Context, db *sql.DB, sql string, args ...any) error {
			return result(db.ExecContext(ctx, sql, args...))
		},
		"DB.Query": func(ctx context.Context, db *sql.DB, sql string, args ...any) error {
			return rowsOf(db.QueryContext(ctx, sql, args...))
		},
		"DB.QueryRow": func(ctx context.Context, db *sql.DB, sql string, args ...any) error {
			return rowID(db.QueryRowContext(ctx, sql, args...))
		},
		"Conn.Exec": withConn(func(ctx context.Context, c *sql.Conn, sql string, args ...any) error {
			return result(c.ExecContext(ctx, sql, args...))
		}),
		"Conn.Query": withConn(func(ctx context.Context, c *sql.Conn, sql string, args ...any) error {
			return rowsOf(c.QueryContext(ctx, sql, args...))
		}),
		"Conn.QueryRow": withConn(func(ctx context.Context, c *sql.Conn, sql string, args ...any) error {
			return rowID(c.QueryRowContext(ctx, sql, args...))
		}),
		"Tx.Exec": withTx(func(ctx context.Context, tx *sql.Tx, sql string, args ...any) error {
			return result(tx.ExecContext(ctx, sql, args...))
		}),
		"Tx.Query": withTx(func(ctx context.Context, tx *sql.Tx, sql string, args ...any) error {
			return rowsOf(tx.QueryContext(ctx, sql, args...))
		}),
		"Tx.QueryRow": withTx(func(ctx context.Context, tx *sql.Tx, sql string, args ...any) error {
			return rowID(tx.QueryRowContext(ctx, sql, args...))
		}),
		"Tx.Prepare": withTx(func(ctx context.Context, tx *sql.Tx, sql string, args ...any) error {
			stmt, err := tx.PrepareContext(ctx, sql)
			if err != nil {
				return err
			}
			return errors.Join(result(stmt.ExecContext(ctx, args...)), stmt.Close())
		}),
		"Stmt.Exec":  withStmt(onDB, func(ctx context.Context, s *sql.Stmt, args ...any) error { return result(s.ExecContext(ctx, args...)) }),
		"Stmt.Query": withStmt(onDB, func(ctx context.Context, s *sql.Stmt, args ...any) error { return rowsOf(s.QueryContext(ctx, args...)) }),
		"Stmt.QueryRow": withStmt(onDB, func(ctx context.Context, s *sql.Stmt, args ...any) error {
			return rowID(s.QueryRowContext(ctx, args...))
		}),
	}
	for name, send := range doors {
		t.Run(name, func(t *testing.T) {
			db, plain := open(t)
			db.SetMaxOpenConns(1)
			want := func(value string, token int64) {
				t.Helper()
				status, got := order(t, plain, 1)
				require.Equal(t, value, status)
				require.Equal(t, token, got)
			}
			require.NoError(t, send(holder(t, 7), db, returning, "by A", tokenctx.Arg, 1))
			want("by A", 7)
			require.NoError(t, send(holder(t, 8), db, returning, "by B", int64(8), 1))
			want("by B", 8)
			require.ErrorIs(t, send(holder(t, 7), db, returning, "stale", tokenctx.Arg, 1), driver.ErrStale)
			require.ErrorIs(t, send(holder(t, 8), db, returning, "replay", tokenctx.Arg, 1), driver.ErrReplay)
			require.ErrorIs(t, send(t.Context(), db, returning, "no token", tokenctx.Arg, 1), driver.ErrNoToken)
			require.ErrorIs(t, send(holder(t, 9), db, `UPDATE orders SET status = $1 WHERE id = $2 RETURNING id`, "unguarded", 1), rewrite.ErrRefused)
			want("by B", 8)
			if !strings.HasSuffix(name, "QueryRow") {
				require.ErrorIs(t, send(holder(t, 7), db, guardedOrder, "stale", tokenctx.Arg, 1), driver.ErrStale)
				require.NoError(t, send(holder(t, 9), db, guardedOrder, "by C", tokenctx.Arg, 1))
				want("by C", 9)
			}
			require.NoError(t, send(t.Context(), db, `UPDATE notes SET body = $1 WHERE id = $2 RETURNING id`, "free", 1))
		})
	}
}

// A prepared statement takes the token of each execution.
func TestPreparedStatementTakesEachContextsToken(t *testing.T) {
	db, plain := open(t)
	stmt, err := db.PrepareContext(t.Context(), guardedOrder)
	require.NoError(t, err)
	defer stmt.Close()
	_, err = stmt.ExecContext(holder(t, 8), "by B", tokenctx.Arg, 1)
	require.NoError(t, err)
	_, err = stmt.ExecContext(holder(t, 7), "by A", tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrStale)
	_, err = stmt.ExecContext(t.Context(), "nobody", tokenctx.Arg, 1)
	require.ErrorIs(t, err, driver.ErrNoToken)
	status, _ := order(t, plain, 1)
	require.Equal(t, "by B", status)
}

// Another driver must not send tokenctx.Arg as some value.
func TestArgIsAnErrorElsewhere(t *testing.T) {
	_, plain := open(t)
	_, err := plain.ExecContext(holder(t, 7), guardedOrder, "x", tokenctx.Arg, 1)
	require.ErrorContains(t, err, "tokenctx.Arg was asked for its value, by a driver that is not fencerow")
}

// Tokens are drawn by many sessions at once: none twice, and one asked for
// after another was handed out is larger.
func TestTokensIncreaseOverConcurrentSessions(t *testing.T) {
	db, _ := open(t)
	const sessions, draws = 16, 20
	db.SetMaxOpenConns(sessions)
	var last atomic.Int64
	drawn := make(chan tokenctx.Token, sessions*draws)
	group, ctx := errgroup.WithContext(t.Context())
	for range sessions {
		group.Go(func() error {
			for range draws {
				before := last.Load()
				token, err := lease.NextToken(ctx, db)
				if err != nil {
					return err
				}
				if int64(token) <= before {
					return fmt.Errorf("token %d was drawn after %d had been handed out", token, before)
				}
				for seen := last.Load(); int64(token) > seen && !last.CompareAndSwap(seen, int64(token)); seen = last.Load() {
				}
				drawn <- token
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	close(drawn)
	unique := make(map[tokenctx.Token]bool)
	for token := range drawn {
		require.False(t, unique[token], "token %d was handed out twice", token)
		unique[token] = true
	}
	require.Len(t, unique, sessions*draws)
}

// A token that was handed out is never handed out again, also when the server
// dies right after.
func TestTokensSurviveAServerCrash(t *testing.T) {
	server := localpg.StartServer(t, localpg.WithSetting("fsync", "on"))
	dsn := server.DSN("postgres")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	draw := func() tokenctx.Token {
		db, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		defer db.Close()
		token, err := lease.NextToken(t.Context(), db)
		require.NoError(t, err)
		return token
	}
	last := draw()
	require.EqualValues(t, 1, last)
	for range 3 {
		require.NoError(t, server.Kill())
		require.NoError(t, server.Restart(t.Context()))
		token := draw()
		require.Greater(t, token, last)
		last = token
	}
}

// A process that dies with its token takes it along.
func TestTokensSurviveAProcessCrash(t *testing.T) {
	const drawFor = "FENCEROW_TEST_DRAW_TOKEN"
	if dsn := os.Getenv(drawFor); dsn != "" {
		db, err := sql.Open("fencerow", dsn)
		require.NoError(t, err)
		token, err := lease.NextToken(t.Context(), db)
		require.NoError(t, err)
		fmt.Printf("token=%d\n", token)
		select {} // until the parent kills this process
	}
	dsn := localpg.Database(t, template)
	plain, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer plain.Close()
	var last tokenctx.Token
	for range 3 {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		child.Env = append(os.Environ(), drawFor+"="+dsn)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		var token tokenctx.Token
		for lines := bufio.NewScanner(out); token == 0 && lines.Scan(); {
			_, _ = fmt.Sscanf(lines.Text(), "token=%d", &token)
		}
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		require.Greater(t, token, last)
		last = token
		token, err = lease.NextToken(t.Context(), plain)
		require.NoError(t, err)
		require.Greater(t, token, last)
		last = token
	}
}
