package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// ormWrites are writes of the order 1 as ORMs send them.
var ormWrites = map[string]struct {
	sql  string
	args []any
}{
	"update":           {`UPDATE "orders" SET "status"=$1 WHERE "id" = $2`, []any{"mine", 1}},
	"update, literals": {`UPDATE "orders" AS "o" SET "status" = 'mine' WHERE ("o"."id" = 1) /*route='a'*/`, nil},
	"save":             {`UPDATE "orders" SET "status"=$1,"last_token"=$2 WHERE "id" = $3`, []any{"mine", int64(1), 1}},
	"save, literals":   {`UPDATE "orders" AS "o" SET "status" = 'mine', "last_token" = 0 WHERE ("o"."id" = 1)`, nil},
	"upsert":           {`INSERT INTO "orders" ("id","status") VALUES ($1,$2) ON CONFLICT ("id") DO UPDATE SET "status"="excluded"."status"`, []any{1, "mine"}},
	"upsert of a model": {
		`INSERT INTO "orders" ("id","status","last_token") VALUES ($1,$2,$3) ON CONFLICT ("id") DO UPDATE SET "status"="excluded"."status","last_token"="excluded"."last_token"`,
		[]any{1, "mine", int64(99)},
	},
	"named arguments":     {`UPDATE orders SET status = @status WHERE id = @id`, []any{pgx.NamedArgs{"status": "mine", "id": 1}}},
	"the token by itself": {`UPDATE orders SET status = $1, last_token = $2 WHERE id = $3`, []any{"mine", tokenctx.Arg, 1}},
}

// entries are the ways to send a statement. Each returns its error.
var rewriteEntries = map[string]func(context.Context, *sql.DB, string, ...any) error{
	"exec": func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		result, err := db.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, sql.ErrNoRows)
		}
		return nil
	},
	"returning": func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		var status string
		var token int64
		err := db.QueryRowContext(ctx, query+` RETURNING "status", "last_token"`, args...).Scan(&status, &token)
		if err == nil && status != "mine" {
			return errors.New("another row: " + status)
		}
		return err
	},
	"transaction": func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err = tx.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		return tx.Commit()
	},
	"in a CTE": func(ctx context.Context, db *sql.DB, query string, args ...any) error {
		return db.QueryRowContext(ctx, `WITH w AS (`+query+` RETURNING "id") SELECT "id" FROM w`, args...).Scan(new(int64))
	},
}

// prepare sends a statement twice through one Stmt, if its arguments are plain.
func prepared(ctx context.Context, db *sql.DB, query string, args ...any) error {
	stmt, err := db.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for range 2 {
		if _, err := stmt.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// What an ORM writes is done by the present holder, and refused from a stale one,
// in every exec mode and at every entry.
func TestRewrite(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	plain := openPlain(t, dsn)
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}
	for _, mode := range modes {
		config, err := pgx.ParseConfig(dsn)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Lease), driver.WithRewrite())
		require.NoError(t, err)
		db := sql.OpenDB(connector)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		for name, write := range ormWrites {
			entries := map[string]func(context.Context, *sql.DB, string, ...any) error{}
			for entry, send := range rewriteEntries {
				entries[entry] = send
			}
			if name != "named arguments" {
				entries["prepared"] = prepared
			}
			for entry, send := range entries {
				t.Run(mode.String()+"/"+name+"/"+entry, func(t *testing.T) {
					query := write.sql
					if entry == "returning" || entry == "in a CTE" {
						query = withoutComment(query)
					}
					reset := func(token int) {
						_, err := plain.Exec(`WITH d AS (DELETE FROM orders WHERE id > 2)
							INSERT INTO orders (id, status, last_token) VALUES (1, 'theirs', $1), (2, 'theirs', 5)
							ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token`, token)
						require.NoError(t, err)
					}
					reset(9)
					err := send(tokenctx.With(t.Context(), 8), db, query, write.args...)
					require.ErrorIs(t, err, driver.ErrStale)
					require.Equal(t, "theirs 9", order(t, db, 1))

					reset(7)
					require.ErrorIs(t, send(t.Context(), db, query, write.args...), driver.ErrNoToken)
					require.Equal(t, "theirs 7", order(t, db, 1))
					require.NoError(t, send(tokenctx.With(t.Context(), 8), db, query, write.args...))
					require.Equal(t, "mine 8", order(t, db, 1))
					require.Equal(t, "theirs 5", order(t, db, 2))
				})
			}
		}
	}
}

func withoutComment(query string) string {
	if i := len(query) - len(`/*route='a'*/`); i > 0 && query[i:] == `/*route='a'*/` {
		return query[:i]
	}
	return query
}

func order(t *testing.T, db *sql.DB, id int) (row string) {
	t.Helper()
	require.NoError(t, db.QueryRow(`SELECT status || ' ' || last_token FROM orders WHERE id = $1`, id).Scan(&row))
	return row
}

// A table that is only reported has its statements sent as they are.
func TestRewriteAtReport(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	var events []driver.Event
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease), driver.WithLevel(driver.Report, "orders"), driver.WithRewrite(),
		driver.WithReporter(func(_ context.Context, e driver.Event) { events = append(events, e) }))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	run(t, dsn, `DELETE FROM orders`, `INSERT INTO orders (id, status, last_token) VALUES (1, 'theirs', 9)`)

	_, err = db.ExecContext(tokenctx.With(t.Context(), 8), `UPDATE orders SET status = $1 WHERE id = $2`, "mine", 1)
	require.NoError(t, err)
	require.Equal(t, "mine 9", order(t, db, 1))
	require.Empty(t, events)
	_, err = db.ExecContext(t.Context(), `UPDATE orders SET status = $1 WHERE id = $2`, "nobody's", 1)
	require.NoError(t, err)
	require.Equal(t, "nobody's 9", order(t, db, 1))
	require.Len(t, events, 1)
	require.ErrorIs(t, events[0].Err, driver.ErrNoToken)

	stmt, err := db.PrepareContext(t.Context(), `UPDATE orders SET status = $1 WHERE id = $2`)
	require.NoError(t, err)
	defer stmt.Close()
	_, err = stmt.ExecContext(tokenctx.With(t.Context(), 8), "prepared", 1)
	require.NoError(t, err)
	require.Equal(t, "prepared 9", order(t, db, 1))
}

// Without the option, and where nothing can be added, statements are refused.
func TestRewriteIsAChoice(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	for name, test := range map[string]struct {
		table  rewrite.Table
		opts   []driver.Option
		accept bool
	}{
		"not asked for":     {rewrite.Table{Name: "orders", Mode: rewrite.Lease}, nil, false},
		"for all tables":    {rewrite.Table{Name: "orders", Mode: rewrite.Lease}, []driver.Option{driver.WithRewrite()}, true},
		"for the one table": {rewrite.Table{Name: "orders", Mode: rewrite.Lease, Rewrite: true}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := driver.Open(dsn, append(test.opts, driver.ProtectTable(test.table))...)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			ctx := tokenctx.With(t.Context(), 8)
			_, err = db.ExecContext(ctx, `UPDATE orders SET status = 'x' WHERE id = 1`)
			require.Equal(t, test.accept, err == nil, "%v", err)
			_, err = db.ExecContext(ctx, `INSERT INTO orders VALUES (3, 'x', 8)`)
			require.Equal(t, !test.accept, errors.Is(err, rewrite.ErrRefused), "%v", err) // its key is there the second time
			_, err = db.ExecContext(ctx, `UPDATE orders SET status = 'x' WHERE id = $1`)
			require.Error(t, err, "an argument is missing")
		})
	}
}

// A handle that goes by the registry follows the choice made there for a table.
func TestRewriteFromRegistry(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, levelSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}, migrations.Table{Name: "jobs", Mode: migrations.Lease}))
	db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	ctx := tokenctx.With(t.Context(), 8)
	stmt, err := db.PrepareContext(ctx, `DELETE FROM jobs WHERE id = $1 AND last_token <= $2`)
	require.NoError(t, err)
	defer stmt.Close()
	update := func(table string) error {
		_, err := db.ExecContext(ctx, `UPDATE `+table+` SET status = $1 WHERE id = $2`, "mine", 1)
		return err
	}
	require.ErrorIs(t, update("orders"), rewrite.ErrRefused)
	require.NoError(t, migrations.SetRewrite(t.Context(), dsn, "orders", true))
	require.NoError(t, update("orders"))
	require.Equal(t, "mine 8", order(t, db, 1))
	require.ErrorIs(t, update("jobs"), rewrite.ErrRefused, "another table")
	_, err = stmt.ExecContext(ctx, 1, tokenctx.Arg)
	require.NoError(t, err)
	require.NoError(t, migrations.SetRewrite(t.Context(), dsn, "orders", false))
	require.ErrorIs(t, update("orders"), rewrite.ErrRefused)
}

// A statement that was prepared before a table is rewritten is prepared again.
func TestPreparedBeforeRewrite(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, levelSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Off))
	db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	ctx := tokenctx.With(t.Context(), 8)
	stmt, err := db.PrepareContext(ctx, `UPDATE orders SET status = $1 WHERE id = $2`)
	require.NoError(t, err)
	defer stmt.Close()
	for _, step := range []struct {
		on   bool
		want string
	}{{false, "plain 5"}, {true, "rewritten 8"}} {
		require.NoError(t, migrations.SetRewrite(t.Context(), dsn, "orders", step.on))
		if step.on {
			require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Enforce))
		}
		status, _, _ := strings.Cut(step.want, " ")
		_, err = stmt.ExecContext(ctx, status, 1)
		require.NoError(t, err)
		require.Equal(t, step.want, order(t, db, 1))
	}
}
