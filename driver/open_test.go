package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// run sends statements over a plain connection.
func run(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	fencetest.Run(t, dsn, statements...)
}

// withParameter adds key=value to a DSN of either form.
func withParameter(dsn, parameter string) string {
	switch {
	case !strings.Contains(dsn, "://"):
		return dsn + " " + parameter
	case strings.Contains(dsn, "?"):
		return dsn + "&" + parameter
	}
	return dsn + "?" + parameter
}

func TestMalformedDSN(t *testing.T) {
	for _, dsn := range []string{"postgres://u:sekret@h:99999/db", "host=localhost port=abc password=sekret", "garbage sekret", "postgres://u:sek ret@h/db", "postgres://u:sekret@h/db?sslmode=nope"} {
		for name, open := range map[string]func() (*sql.DB, error){
			"sql.Open":    func() (*sql.DB, error) { return sql.Open("fencerow", dsn) },
			"driver.Open": func() (*sql.DB, error) { return driver.Open(dsn) },
		} {
			_, err := open()
			require.ErrorContains(t, err, "fencerow: malformed DSN: ", name)
			require.NotContains(t, err.Error(), "sek", name)
		}
	}
}

// A DSN is read with each connection, like pgx does: passwords and certificates
// that it names may have changed.
func TestDSNIsReadAgain(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int, last_token bigint NOT NULL DEFAULT 0)`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxIdleConns(0)
	t.Setenv("PGAPPNAME", "rotated")
	var name string
	require.NoError(t, db.QueryRow(`SHOW application_name`).Scan(&name))
	require.Equal(t, "rotated", name)
	t.Setenv("PGPORT", "sekret")
	withoutPort, err := sql.Open("fencerow", "host=localhost port=1 password=sekret")
	require.NoError(t, err)
	defer withoutPort.Close()
	t.Setenv("PGTZ", "")
	t.Setenv("PGSSLMODE", "sekret")
	err = withoutPort.Ping()
	require.ErrorContains(t, err, "fencerow: malformed DSN")
	require.NotContains(t, err.Error(), "password=")
}

// Without a statement cache pgx prepares nothing by itself, nor does fencerow.
func TestNoStatementCache(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int, last_token bigint NOT NULL DEFAULT 0)`)
	db, err := driver.Open(withParameter(dsn, "statement_cache_capacity=0"), driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`SELECT 1`)
	require.NoError(t, err)
}

func TestMissingRegistry(t *testing.T) {
	dsn := localpg.Database(t)
	db, err := sql.Open("fencerow", dsn)
	require.NoError(t, err)
	defer db.Close()
	require.ErrorIs(t, db.Ping(), driver.ErrNotInstalled)

	run(t, dsn, `CREATE TABLE orders (id int, last_token bigint NOT NULL DEFAULT 0)`)
	fromCode, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err, "tables from code need no registry")
	require.NoError(t, fromCode.Close())
}

func TestRegistryNeedsRights(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	role := "app_" + config.Database
	run(t, dsn, `CREATE ROLE "`+role+`" LOGIN PASSWORD 'app'`)
	t.Cleanup(func() { run2(t, dsn, `DROP OWNED BY "`+role+`"`, `DROP ROLE "`+role+`"`) })
	config.User, config.Password = role, "app"
	open := func() error {
		connector, err := driver.NewConnector(*config)
		require.NoError(t, err)
		db := sql.OpenDB(connector)
		defer db.Close()
		return db.Ping()
	}
	err = open()
	require.ErrorContains(t, err, `GRANT USAGE ON SCHEMA fencing TO "`+role+`"; GRANT SELECT ON fencing.registry, fencing.generation TO "`+role+`"`)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	run(t, dsn, `GRANT USAGE ON SCHEMA fencing TO "`+role+`"`, `GRANT SELECT ON fencing.registry, fencing.generation TO "`+role+`"`)
	require.NoError(t, open())
}

// run2 is run for cleaning up, when the test's context has ended.
func run2(t *testing.T, dsn string, statements ...string) {
	conn, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	for _, s := range statements {
		_, err := conn.Exec(context.Background(), s)
		require.NoError(t, err, s)
	}
}

func TestTokenColumnIsChecked(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE DOMAIN fuzzy AS float8`)
	for name, test := range map[string]struct{ column, want string }{
		"missing":   {``, "has no column last_token"},
		"text":      {`, last_token text NOT NULL DEFAULT '0'`, "of type text: it must be bigint"},
		"int":       {`, last_token int NOT NULL DEFAULT 0`, "of type integer: it must be bigint"},
		"domain":    {`, last_token fuzzy NOT NULL DEFAULT 0`, "of type public.fuzzy: it must be bigint"},
		"nullable":  {`, last_token bigint DEFAULT 0`, "may be NULL"},
		"identity":  {`, last_token bigint GENERATED BY DEFAULT AS IDENTITY`, "is generated"},
		"generated": {`, last_token bigint NOT NULL GENERATED ALWAYS AS (1) STORED`, "is generated"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, dsn, `DROP TABLE IF EXISTS orders`, `CREATE TABLE orders (id int`+test.column+`)`)
			_, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
			require.ErrorContains(t, err, `protected table "orders" `)
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := driver.Open(dsn, driver.Protect("nowhere.orders", rewrite.Lease))
	require.ErrorContains(t, err, `protected table "nowhere.orders" is no table of this database`)
}

// A column can be NOT NULL and have nulls, since PostgreSQL 18.
func TestNotNullMustBeValid(t *testing.T) {
	dsn := localpg.Database(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	run(t, dsn, `CREATE TABLE orders (id int, last_token bigint)`, `INSERT INTO orders VALUES (1, NULL)`)
	var version int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT current_setting('server_version_num')::int`).Scan(&version))
	_, err = conn.Exec(t.Context(), `ALTER TABLE orders ADD CONSTRAINT there NOT NULL last_token NOT VALID`)
	if version < 18_00_00 {
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr)
		require.Equal(t, "42601", pgErr.Code, "no such thing")
		return
	}
	require.NoError(t, err)
	_, err = driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.ErrorContains(t, err, `protected table "orders" has a token column last_token that may be NULL`)
	run(t, dsn, `UPDATE orders SET last_token = 0`, `ALTER TABLE orders ALTER COLUMN last_token SET NOT NULL`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		opt  driver.Option
		want string
	}{
		"no mode":        {driver.Protect("orders", ""), "has no mode"},
		"malformed name": {driver.Protect(`a.b.c`, rewrite.Strict), "malformed table name"},
		"open quote":     {driver.Protect(`"orders`, rewrite.Strict), "malformed table name"},
		"empty name":     {driver.Protect(``, rewrite.Strict), "malformed table name"},
		"cache":          {driver.WithPlanCache(0), "positive number"},
		"timeout":        {driver.WithProbeTimeout(0), "positive duration"},
		"nil":            {nil, "nil option"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := driver.NewConnector(pgx.ConnConfig{}, test.opt)
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := driver.NewConnector(pgx.ConnConfig{}, driver.Protect("orders", rewrite.Strict), driver.Protect("orders", rewrite.Lease))
	require.ErrorContains(t, err, "protected twice")
}

// A registered table stays protected under its new name after a rename, and
// under its old one.
func TestRegistryFollowsRenames(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE orders (id int)`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	run(t, dsn, `ALTER TABLE orders RENAME TO sales`, `CREATE TABLE orders (id int, last_token bigint NOT NULL DEFAULT 0)`)
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	defer db.Close()
	for _, table := range []string{"orders", "sales"} {
		_, err := db.Exec(`UPDATE ` + table + ` SET id = 1`)
		require.ErrorIs(t, err, rewrite.ErrRefused, table)
	}
}

// A session in which the server reads texts otherwise than the check is no use.
func TestSessionState(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int, last_token bigint NOT NULL DEFAULT 0)`)
	for parameter, want := range map[string]string{
		"standard_conforming_strings=off": "standard_conforming_strings is not on",
		"client_encoding=latin1":          "client_encoding is not UTF8",
	} {
		db, err := driver.Open(withParameter(dsn, parameter), driver.Protect("orders", rewrite.Lease))
		require.NoError(t, err)
		_, err = db.Exec(`SELECT 1`)
		require.NoError(t, err, "what no lexer can read as a write may pass")
		_, err = db.Exec(`SELECT 1 FROM orders`)
		var v *rewrite.Violation
		require.ErrorAs(t, err, &v)
		require.Equal(t, rewrite.SessionState, v.Rule)
		require.ErrorContains(t, err, want)
		require.NoError(t, db.Close())
	}
}

// Bare names are looked up in the session's path, and after a change of it in
// any schema.
func TestSearchPath(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE SCHEMA app`, `CREATE TABLE app.orders (id int, last_token bigint NOT NULL DEFAULT 0)`, `CREATE TABLE orders (id int)`)
	db, err := driver.Open(dsn, driver.Protect("app.orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := tokenctx.With(t.Context(), 7)
	exec := func(sql string) error {
		_, err := db.ExecContext(ctx, sql)
		return err
	}
	require.NoError(t, exec(`UPDATE orders SET id = 1`))
	require.ErrorIs(t, exec(`UPDATE app.orders SET id = 1`), rewrite.ErrRefused)
	require.ErrorIs(t, exec(`SET search_path = app, pg_catalog`), rewrite.ErrRefused)
	require.NoError(t, exec(`SET search_path = app`))
	require.ErrorIs(t, exec(`UPDATE orders SET id = 1`), rewrite.ErrRefused)

	empty, err := driver.Open(withParameter(dsn, "search_path="), driver.Protect("app.orders", rewrite.Lease))
	require.NoError(t, err)
	require.NoError(t, empty.Close())

	run(t, dsn, `CREATE SCHEMA mine`)
	hostile, err := driver.Open(withParameter(dsn, "search_path=mine,app,pg_catalog"), driver.Protect("app.orders", rewrite.Lease))
	require.NoError(t, err)
	defer hostile.Close()
	_, err = hostile.ExecContext(ctx, `UPDATE app.orders SET id = 1, last_token = 7 WHERE last_token <= 7`)
	var v *rewrite.Violation
	require.True(t, errors.As(err, &v))
	require.Equal(t, rewrite.UnsafePath, v.Rule)

	// a path that was unsafe at first may come back
	hostile.SetMaxOpenConns(1)
	for _, sql := range []string{`SET LOCAL search_path TO public`, `SET search_path TO public`, `RESET search_path`} {
		_, err = hostile.ExecContext(ctx, sql)
		require.NoError(t, err)
		_, err = hostile.ExecContext(ctx, `UPDATE app.orders SET id = 1, last_token = 7 WHERE last_token <= 7`)
		require.ErrorAs(t, err, &v, sql)
		require.Equal(t, rewrite.UnsafePath, v.Rule)
	}
}

// pgx's simple protocol writes arguments into the text; where its lexer and the
// server's differ, an argument would become SQL.
func TestSimpleProtocol(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id int, note text, last_token bigint NOT NULL DEFAULT 0)`, `INSERT INTO orders VALUES (1, 'a', 9)`)
	for name, dsn := range map[string]string{"dsn": withParameter(dsn, "default_query_exec_mode=simple_protocol"), "argument": dsn} {
		db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
		require.NoError(t, err)
		defer db.Close()
		exec := func(token tokenctx.Token, sql string, args ...any) error {
			if name == "argument" {
				args = append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
			}
			_, err := db.ExecContext(tokenctx.With(t.Context(), token), sql, args...)
			return err
		}
		for _, sql := range []string{
			"UPDATE orders SET note = E'a'\n'b\\' , $1 ', last_token = $2 WHERE id = $3 AND last_token < $2 -- ' $2 $3",
			"UPDATE orders AS a$$ SET note = 'b$$ $1 ', last_token = $2 WHERE id = $3 AND last_token < $2 -- ' $2 $3",
		} {
			require.ErrorIs(t, exec(7, sql, " WHERE id = 1 --", tokenctx.Arg, 1), rewrite.ErrRefused)
		}
		for _, sql := range []string{"SELECT E'a'\n'b\\' || $1 ' -- '", "SELECT 1 AS a$$, 'b$$ $1 ' -- '", "SELECT name'a\\', '$1 ' -- '"} {
			var v *rewrite.Violation
			require.ErrorAs(t, exec(7, sql, "; UPDATE orders SET note = $$q$$ --"), &v)
			require.Equal(t, rewrite.SimpleProtocol, v.Rule)
		}
		const guarded = `UPDATE orders SET note = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`
		require.ErrorIs(t, exec(7, guarded, "it's $1", tokenctx.Arg, 1), driver.ErrStale)
		require.NoError(t, exec(10, guarded, "it's $1", tokenctx.Arg, 1))
		require.NoError(t, exec(10, `SELECT E'a\nb'`), "without arguments nothing is written into it")
		require.NoError(t, exec(10, `SELECT regexp_replace(note, '\s+', ' '), 'US$' ~ '^new$', $$x$$ FROM orders WHERE id = $1`, 1), "what every lexer reads alike")
	}
}
