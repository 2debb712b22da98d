package driver_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// The role that a session began with may be left and taken again. What "$user" in the search path
// stands for changes with it, so a bare name is looked up anew.
func TestUndoRole(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	config, role := asApp(t, dsn)
	boss := "boss_of_" + strings.ToLower(config.Database)
	run(t, dsn, `CREATE ROLE `+boss, `GRANT `+boss+` TO `+role, `CREATE SCHEMA `+boss, `CREATE SCHEMA `+role,
		`CREATE TABLE `+boss+`.orders (id int, n int, last_token bigint NOT NULL DEFAULT 0)`, `CREATE TABLE `+role+`.orders (LIKE `+boss+`.orders INCLUDING ALL)`,
		`INSERT INTO `+boss+`.orders VALUES (1, 1)`, `INSERT INTO `+role+`.orders VALUES (1, 1)`,
		`GRANT ALL ON SCHEMA `+boss+`, `+role+` TO `+boss+`, `+role, `GRANT ALL ON `+boss+`.orders, `+role+`.orders TO `+boss+`, `+role)
	t.Cleanup(func() { run(t, dsn, `DROP OWNED BY `+boss, `DROP ROLE `+boss) })
	config.RuntimeParams["role"] = boss
	db, err := driver.Open(stdlib.RegisterConnConfig(config), driver.Protect(boss+".orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	exec := func(sql string) error { _, err := conn.ExecContext(t.Context(), sql); return err }
	requireUser := func(user string) {
		t.Helper()
		var current string
		require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT current_user`).Scan(&current))
		require.Equal(t, strings.Trim(user, `"`), current)
	}
	const unguarded, making = `UPDATE orders SET n = 2`, `CREATE TABLE orders (i int)`
	requireUser(boss)
	require.ErrorIs(t, exec(unguarded), rewrite.ErrRefused)
	require.NoError(t, exec(`SET ROLE NONE`))
	requireUser(role)
	require.NoError(t, exec(unguarded))
	require.ErrorIs(t, exec(making), rewrite.ErrRefused)
	require.NoError(t, exec(`RESET ROLE`))
	requireUser(boss)
	require.ErrorIs(t, exec(unguarded), rewrite.ErrRefused)
	require.ErrorIs(t, exec(`SET ROLE NONE; `+unguarded), rewrite.ErrRefused)
	require.ErrorIs(t, exec(`SET ROLE `+role), rewrite.ErrRefused)

	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	var n int
	require.NoError(t, plain.QueryRow(t.Context(), `SELECT n FROM `+boss+`.orders`).Scan(&n))
	require.Equal(t, 1, n)
}

// DISCARD TEMP takes away the session's own tables, the one that has stood before a protected table
// among them: the bare name is the protected table's again.
func TestDiscardTemporaryTables(t *testing.T) {
	db, _ := openUndo(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	for _, sql := range []string{`CREATE TEMP TABLE kept (i int)`, `DISCARD TEMP`, `CREATE TEMP TABLE kept (i int)`} {
		_, err := conn.ExecContext(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	_, err = conn.ExecContext(t.Context(), `UPDATE orders SET n = 2`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	_, err = conn.ExecContext(t.Context(), `DISCARD ALL`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
}

// DEALLOCATE ALL has pgx forget what it has prepared, so that statements go on as before, and none runs
// that was prepared under a name of theirs.
func TestDeallocateAll(t *testing.T) {
	for name, deallocate := range map[string]func(*sql.Conn) error{
		"executed": func(c *sql.Conn) error { return onlyError(c.ExecContext(t.Context(), `DEALLOCATE ALL`)) },
		"queried":  func(c *sql.Conn) error { return drain(c.QueryContext(t.Context(), `DEALLOCATE PREPARE ALL`)) },
	} {
		t.Run(name, func(t *testing.T) {
			db, plain := openUndo(t)
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			const guarded = `UPDATE orders SET n = n + 1, last_token = $1 WHERE last_token <= $1`
			ctx := tokenctx.With(t.Context(), 7)
			stmt, err := conn.PrepareContext(ctx, guarded)
			require.NoError(t, err)
			var sent string
			require.NoError(t, conn.QueryRowContext(ctx, `SELECT name FROM pg_prepared_statements WHERE name LIKE 'stmt\_%'`).Scan(&sent))
			write := func() {
				t.Helper()
				_, err := stmt.ExecContext(ctx, tokenctx.Arg)
				require.NoError(t, err)
				_, err = conn.ExecContext(ctx, guarded, tokenctx.Arg)
				require.NoError(t, err)
			}
			write()
			for range 2 {
				require.NoError(t, deallocate(conn))
				write()
			}
			require.NoError(t, deallocate(conn))
			_, err = conn.ExecContext(ctx, `PREPARE `+pgx.Identifier{sent}.Sanitize()+`(bigint) AS UPDATE other SET n = $1`)
			require.NoError(t, err)
			write()
			require.NoError(t, stmt.Close())
			var n int
			require.NoError(t, plain.QueryRow(t.Context(), `SELECT n + (SELECT n FROM other) FROM orders`).Scan(&n))
			require.Equal(t, 8, n)

			tx, err := conn.BeginTx(ctx, nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(ctx, `SELECT 1/0`)
			require.Error(t, err)
			require.ErrorContains(t, onlyError(tx.ExecContext(ctx, `DEALLOCATE ALL`)), "25P02")
			require.NoError(t, tx.Rollback())
			_, err = conn.ExecContext(ctx, guarded, tokenctx.Arg)
			require.NoError(t, err)
		})
	}
	db, _ := openUndo(t)
	stmt, err := db.Prepare(`DEALLOCATE ALL`)
	require.NoError(t, err)
	defer stmt.Close()
	_, err = stmt.Exec()
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.ErrorContains(t, err, "pass it as a text to Exec")
}

// openUndo returns a handle that protects orders, and a plain connection.
func openUndo(t *testing.T) (*sql.DB, *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int PRIMARY KEY, n int, last_token bigint NOT NULL DEFAULT 0)`, `INSERT INTO orders VALUES (1, 0)`, `CREATE TABLE other (n int)`, `INSERT INTO other VALUES (0)`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close(context.Background()) })
	return db, plain
}

// An EXPLAIN of a write without a guard changes nothing, and shows the plan of what would be sent
// where statements are rewritten.
func TestExplainOfUnguardedWrite(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int PRIMARY KEY, n int, last_token bigint NOT NULL DEFAULT 0)`, `INSERT INTO orders VALUES (1, 0)`)
	for rewrites, filter := range map[bool]string{false: "", true: "last_token <= "} {
		opts := []driver.Option{driver.Protect("orders", rewrite.Lease)}
		if rewrites {
			opts = append(opts, driver.WithRewrite())
		}
		db, err := driver.Open(dsn, opts...)
		require.NoError(t, err)
		defer db.Close()
		ctx := tokenctx.With(t.Context(), 7)
		for _, sql := range []string{`EXPLAIN (COSTS off, FORMAT json) UPDATE orders SET n = $1 WHERE n < 5`, `EXPLAIN (FORMAT json) DELETE FROM orders WHERE n < $1`} {
			var plan string
			require.NoError(t, db.QueryRowContext(ctx, sql, 9).Scan(&plan), sql)
			require.Contains(t, plan, "ModifyTable", sql)
			require.Contains(t, plan, filter, sql)
		}
		_, err = db.ExecContext(ctx, `EXPLAIN INSERT INTO orders VALUES (2, 2)`)
		require.NoError(t, err)
		var n, rows int
		require.NoError(t, db.QueryRowContext(ctx, `SELECT sum(n), count(*) FROM orders`).Scan(&n, &rows))
		require.Equal(t, [2]int{0, 1}, [2]int{n, rows})
		if !rewrites {
			_, err = db.ExecContext(ctx, `EXPLAIN ANALYZE UPDATE orders SET n = 1`)
			require.ErrorIs(t, err, rewrite.ErrRefused)
		}
	}
}
