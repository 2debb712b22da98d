package driver_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// namesSchema has accounts in two schemas, one of them protected, and every
// usual way to change a session's search path without a SET that shows it.
const namesSchema = `
CREATE SCHEMA app;
CREATE TABLE app.accounts (id bigint PRIMARY KEY, balance bigint, last_token bigint NOT NULL DEFAULT 0);
CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint);
CREATE FUNCTION set_tenant(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', t, false); END $$;
CREATE PROCEDURE use_tenant(t text) LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', t, false); END $$;
CREATE TABLE login (tenant text);
CREATE FUNCTION on_login() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', NEW.tenant, false); RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON login FOR EACH ROW EXECUTE FUNCTION on_login();
`

// namesRows puts both tables' rows in place.
const namesRows = `TRUNCATE app.accounts, public.accounts; INSERT INTO app.accounts VALUES (1, 100, 9); INSERT INTO public.accounts VALUES (1, 100)`

// pathChanges are who changes the path to app.
var pathChanges = map[string]struct {
	statements []string
	option     stdlib.OptionOpenDB
}{
	"nobody":      {},
	"SET":         {statements: []string{`SET search_path = app`}},
	"a function":  {statements: []string{`SELECT set_tenant('app')`}},
	"a procedure": {statements: []string{`CALL use_tenant('app')`}},
	"a trigger":   {statements: []string{`INSERT INTO login VALUES ('app')`}},
	"a hook of the pool": {option: stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SET search_path = app`)
		return err
	})},
	"a function and back":  {statements: []string{`SELECT set_tenant('app')`, `SELECT public.set_tenant('public')`, `SELECT set_tenant('app, public')`}},
	"a function and a SET": {statements: []string{`SET search_path = public`, `SELECT set_tenant('app')`}},
}

// nameUses are statements by a bare name.
var nameUses = map[string]string{
	"UPDATE":                `UPDATE accounts SET balance = 0 WHERE id = 1`,
	"UPDATE of no row":      `UPDATE accounts SET balance = 0 WHERE id = 77`,
	"UPDATE with an alias":  `UPDATE accounts AS a SET balance = 0 WHERE a.id = 1 OR a.id = 2`,
	"UPDATE FROM":           `UPDATE accounts SET balance = 0 FROM public.login WHERE accounts.id = 1`,
	"DELETE":                `DELETE FROM accounts WHERE id = 1`,
	"DELETE all":            `DELETE FROM accounts`,
	"INSERT":                `INSERT INTO accounts (id, balance) VALUES (2, 0)`,
	"INSERT of many":        `INSERT INTO accounts (id, balance) SELECT n, 0 FROM generate_series(2, 50) n`,
	"INSERT RETURNING":      `INSERT INTO accounts (id, balance) VALUES (2, 0) RETURNING id`,
	"upsert":                `INSERT INTO accounts (id, balance) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET balance = EXCLUDED.balance`,
	"WITH":                  `WITH x AS (UPDATE accounts SET balance = 0 RETURNING id) SELECT count(*) FROM x`,
	"WITH INSERT":           `WITH x AS (INSERT INTO accounts (id, balance) VALUES (2, 0)) SELECT 1`,
	"WITH INSERT RETURNING": `WITH x AS (INSERT INTO accounts (id, balance) VALUES (2, 0) RETURNING id) SELECT * FROM x`,
	"EXPLAIN ANALYZE":       `EXPLAIN ANALYZE UPDATE accounts SET balance = 0`,
	"COPY":                  `COPY (DELETE FROM accounts RETURNING id) TO STDOUT`,
	"MERGE":                 `MERGE INTO accounts a USING (VALUES (1), (3)) v (id) ON a.id = v.id WHEN MATCHED AND a.balance < 0 OR a.balance > 1 THEN UPDATE SET balance = 0 WHEN NOT MATCHED THEN INSERT VALUES (3, 3)`,
	"MERGE beside INSERT":   `WITH x AS (INSERT INTO accounts (id) SELECT 1 WHERE false) MERGE INTO accounts a USING (VALUES (1)) v (id) ON a.id = v.id WHEN MATCHED THEN UPDATE SET balance = 0`,
	"script":                `UPDATE accounts SET balance = 0 WHERE id = 1; DELETE FROM accounts WHERE id = 1; INSERT INTO accounts (id, balance) VALUES (2, 0)`,
	"rule":                  `CREATE RULE r AS ON UPDATE TO accounts DO ALSO DELETE FROM accounts WHERE false`,
	"TRUNCATE":              `TRUNCATE accounts`,
}

// state is what both tables of a name have.
func state(t *testing.T, dsn string) (protected, other string) {
	fencetest.With(t, dsn, func(conn *pgx.Conn) {
		for table, into := range map[string]*string{"app.accounts": &protected, "public.accounts": &other} {
			require.NoError(t, conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(a::text, ' ' ORDER BY id), '') FROM `+table+` a`).Scan(into))
		}
	})
	return protected, other
}

// A bare name that a protected table and another share never leads an unguarded
// statement to the protected one, whoever has changed the path; and leads it to
// the other one where the path does.
func TestBareNames(t *testing.T) {
	for who, change := range pathChanges {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t)
			run(t, dsn, namesSchema)
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			options := []driver.Option{driver.Protect("app.accounts", rewrite.Lease)}
			if change.option != nil {
				options = append(options, driver.WithPgx(change.option))
			}
			connector, err := driver.NewConnector(*config, options...)
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer db.Close()
			db.SetMaxOpenConns(1)
			for use, text := range nameUses {
				t.Run(use, func(t *testing.T) {
					run(t, dsn, namesRows)
					require.NoError(t, db.Ping())
					session, err := db.Conn(t.Context()) // the same connection, after the pool's hook
					require.NoError(t, err)
					defer session.Raw(func(any) error { return sqldriver.ErrBadConn }) // the next use has a session of its own
					for _, s := range change.statements {
						_, err := session.ExecContext(t.Context(), s)
						require.NoError(t, err)
					}
					before, _ := state(t, dsn)
					_, err = session.ExecContext(t.Context(), text)
					var path string
					require.NoError(t, session.QueryRowContext(t.Context(), `SELECT current_setting('search_path')`).Scan(&path))
					after, _ := state(t, dsn)
					require.Equal(t, before, after, "the protected table, under the path %s", path)
					if path == "app" || path == "app, public" {
						require.ErrorIs(t, err, rewrite.ErrRefused)
						require.True(t, driver.NotApplied(err))
						return
					}
					if refusedBare[use] {
						require.ErrorIs(t, err, rewrite.ErrRefused)
						if use != "rule" {
							require.ErrorContains(t, err, "write the schema")
						}
						return
					}
					require.NoError(t, err, "the other table is not protected")
				})
			}
		})
	}
}

// refusedBare are the uses in which no schema is written before the name: what they
// store is run later.
var refusedBare = map[string]bool{"rule": true}

// ungated are the uses that have no place for a gate.
var ungated = map[string]bool{"TRUNCATE": true, "WITH INSERT RETURNING": true}

// pathMover changes the path right before a statement that has a gate is sent.
type pathMover struct{ moved bool }

func (m *pathMover) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !m.moved && strings.Contains(data.SQL, "fencerow: bare name") {
		m.moved = true
		_, _ = conn.Exec(ctx, `SELECT public.set_tenant('app')`)
	}
	return ctx
}

func (m *pathMover) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Where a bare name means another table when the statement runs than when the
// server was asked, the gate ends the statement, and that is told as the reason.
func TestClosedGate(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows)
	for use, text := range nameUses {
		if refusedBare[use] || ungated[use] {
			continue
		}
		t.Run(use, func(t *testing.T) {
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			mover := new(pathMover)
			config.Tracer = mover
			connector, err := driver.NewConnector(*config, driver.Protect("app.accounts", rewrite.Lease))
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer db.Close()
			db.SetMaxOpenConns(1)
			before, _ := state(t, dsn)
			_, err = db.Exec(text)
			require.True(t, mover.moved)
			var v *rewrite.Violation
			require.ErrorAs(t, err, &v)
			require.Equal(t, rewrite.AmbiguousName, v.Rule)
			require.True(t, driver.NotApplied(err))
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.ErrorContains(t, err, "write the schema")
			after, _ := state(t, dsn)
			require.Equal(t, before, after)
		})
	}
}

// A protected table that comes to the name of one that isn't is told from that.
func TestGateAfterASwap(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows)
	db, err := driver.Open(dsn, driver.Protect("app.accounts", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`UPDATE accounts SET balance = 1`)
	require.NoError(t, err)
	run(t, dsn, `ALTER TABLE public.accounts RENAME TO accounts_old`, `ALTER INDEX public.accounts_pkey RENAME TO old_pkey`, `ALTER TABLE app.accounts SET SCHEMA public`)
	for _, text := range []string{`UPDATE accounts SET balance = 2`, `INSERT INTO accounts (id, balance) VALUES (2, 2)`, `DELETE FROM accounts`} {
		_, err = db.Exec(text)
		require.ErrorIs(t, err, rewrite.ErrRefused, text)
	}
}

// Where a bare name means the protected table, an unguarded statement is refused
// before it is sent, so that a transaction goes on; one with a guard, and one that
// is rewritten, are sent whatever the path is and was.
func TestBareNamesOfTenants(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows, `CREATE ROLE narrow_`+roleSuffix(dsn)+` LOGIN`, `REVOKE ALL ON SCHEMA public FROM PUBLIC`)
	t.Cleanup(func() { run2(t, dsn, `DROP OWNED BY narrow_`+roleSuffix(dsn), `DROP ROLE narrow_`+roleSuffix(dsn)) })
	run(t, dsn, `GRANT USAGE ON SCHEMA app TO narrow_`+roleSuffix(dsn), `GRANT ALL ON app.accounts TO narrow_`+roleSuffix(dsn), `ALTER ROLE narrow_`+roleSuffix(dsn)+` SET search_path = app`)
	for name, rewritten := range map[string]bool{"guarded by hand": false, "rewritten": true} {
		t.Run(name, func(t *testing.T) {
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			config.User = "narrow_" + roleSuffix(dsn)
			options := []driver.Option{driver.Protect("app.accounts", rewrite.Lease)}
			if rewritten {
				options = append(options, driver.WithRewrite())
			}
			connector, err := driver.NewConnector(*config, options...)
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer db.Close()
			tx, err := db.BeginTx(tokenctx.With(t.Context(), 10), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			_, err = tx.Exec(`UPDATE accounts SET balance = 1 WHERE id = 1`)
			if rewritten {
				require.NoError(t, err, "no right on the other schema is needed")
				return
			}
			require.ErrorIs(t, err, rewrite.ErrRefused)
			require.ErrorContains(t, err, "FR101")
			_, err = tx.Exec(`UPDATE accounts SET balance = 1, last_token = $1 WHERE id = 1 AND last_token <= $1`, tokenctx.Arg)
			require.NoError(t, err)
		})
	}
}

// roleSuffix makes a role's name one of this test's database.
func roleSuffix(dsn string) string {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return ""
	}
	return config.Database
}

// At level report what a bare name means decides whether anything is reported.
func TestBareNamesAreReported(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows)
	var events recorder
	db, err := driver.Open(dsn, driver.Protect("app.accounts", rewrite.Lease), driver.WithLevel(driver.Report, "app.accounts"), events.option())
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`UPDATE accounts SET balance = 0`)
	require.NoError(t, err)
	require.Empty(t, events.take(), "it is the table that isn't protected")
	_, err = db.Exec(`SELECT set_tenant('app')`)
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE accounts SET balance = 0`)
	require.NoError(t, err)
	require.NotEmpty(t, events.take())
}

// A statement with a gate gives the rows and columns that it gives without one.
func TestGateIsNotSeen(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows)
	for _, mode := range []string{"", "exec", "simple_protocol", "describe_exec", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			with := dsn
			if mode != "" {
				with = withParameter(dsn, "default_query_exec_mode="+mode)
			}
			db, err := driver.Open(with, driver.Protect("app.accounts", rewrite.Lease))
			require.NoError(t, err)
			defer db.Close()
			_, err = db.Exec(`DELETE FROM accounts WHERE id > 1`)
			require.NoError(t, err)
			var id, balance int
			require.NoError(t, db.QueryRow(`INSERT INTO accounts (id, balance) VALUES ($1, $2) RETURNING *`, 5, 50).Scan(&id, &balance))
			require.Equal(t, []int{5, 50}, []int{id, balance})
			require.NoError(t, db.QueryRow(`INSERT INTO accounts AS a (id, balance) VALUES ($1, $2) RETURNING a.id`, 6, 60).Scan(&id))
			require.Equal(t, 6, id)
			rows, err := db.Query(`INSERT INTO accounts (id, balance) VALUES (7, 70), (8, 80)`)
			require.NoError(t, err)
			columns, err := rows.Columns()
			require.NoError(t, err)
			require.Empty(t, columns)
			require.False(t, rows.Next())
			require.NoError(t, rows.Close())
			stmt, err := db.Prepare(`INSERT INTO accounts (id, balance) VALUES ($1, $2) RETURNING id, balance`)
			require.NoError(t, err)
			require.NoError(t, stmt.QueryRow(9, 90).Scan(&id, &balance))
			require.Equal(t, []int{9, 90}, []int{id, balance})
			require.NoError(t, stmt.Close())
			result, err := db.Exec(`INSERT INTO accounts (id, balance) VALUES (10, 1), (11, 1)`)
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			require.Equal(t, int64(2), n)
			rows, err = db.Query(`UPDATE accounts SET balance = balance + 1 WHERE id >= $1 RETURNING id`, 10)
			require.NoError(t, err)
			types, err := rows.ColumnTypes()
			require.NoError(t, err)
			require.Len(t, types, 1)
			count := 0
			for rows.Next() {
				count++
			}
			require.NoError(t, rows.Err())
			require.Equal(t, 2, count)
		})
	}
}
