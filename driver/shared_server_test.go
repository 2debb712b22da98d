package driver_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// namesakeForms are what a table that isn't protected may be like, with the bare
// name of one that is. %role% stands for the role that writes it.
var namesakeForms = map[string]string{
	"rights to write only": `GRANT INSERT, UPDATE, DELETE ON accounts TO %role%`,
	"policies to write only": `ALTER TABLE accounts ENABLE ROW LEVEL SECURITY; GRANT ALL ON accounts TO %role%;
		CREATE POLICY i ON accounts FOR INSERT TO %role% WITH CHECK (true); CREATE POLICY u ON accounts FOR UPDATE TO %role% USING (true)`,
	"a rule instead of an INSERT": `CREATE TABLE kept (LIKE accounts); GRANT ALL ON accounts, kept TO %role%;
		CREATE RULE r AS ON INSERT TO accounts DO INSTEAD INSERT INTO kept VALUES (NEW.id, NEW.balance)`,
	"a rule besides an INSERT": `CREATE TABLE kept (LIKE accounts); GRANT ALL ON accounts, kept TO %role%;
		CREATE RULE r AS ON INSERT TO accounts DO ALSO INSERT INTO kept VALUES (NEW.id, NEW.balance)`,
	"a rule instead of an UPDATE": `GRANT ALL ON accounts TO %role%; CREATE RULE r AS ON UPDATE TO accounts WHERE NEW.balance < 0 DO INSTEAD NOTHING`,
	"children":                    `CREATE TABLE grown () INHERITS (accounts); INSERT INTO grown VALUES (50, 1); GRANT ALL ON accounts, grown TO %role%`,
	"a partition with partitions": `DROP TABLE accounts; CREATE TABLE whole (id bigint, balance bigint) PARTITION BY RANGE (id);
		CREATE TABLE accounts PARTITION OF whole FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (id); CREATE TABLE low PARTITION OF accounts FOR VALUES FROM (0) TO (1000);
		INSERT INTO accounts VALUES (1, 100); GRANT ALL ON whole, accounts, low TO %role%`,
	"a view": `ALTER TABLE accounts RENAME TO behind; CREATE VIEW accounts AS SELECT * FROM behind; GRANT ALL ON accounts TO %role%`,
	"a trigger for each statement": `GRANT ALL ON accounts TO %role%; CREATE FUNCTION notice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION notice()`,
}

// namesakeWrites are writes that need no right to read.
var namesakeWrites = []string{
	`INSERT INTO accounts (id, balance) VALUES (20, 1)`,
	`INSERT INTO accounts (id, balance) SELECT 30, 1`,
	`WITH x AS (INSERT INTO accounts (id, balance) VALUES (40, 1)) SELECT 1`,
	`UPDATE accounts SET balance = 5`,
	`DELETE FROM accounts`,
	`INSERT INTO accounts (id, balance) VALUES (21, 1); UPDATE accounts SET balance = 6; DELETE FROM accounts`,
}

// newRole makes a role that may use the schemas public and app.
func newRole(t *testing.T, dsn string) string {
	role := "narrow_" + roleSuffix(dsn)
	run(t, dsn, `CREATE ROLE `+role+` LOGIN`)
	t.Cleanup(func() { run2(t, dsn, `DROP OWNED BY `+role, `DROP ROLE `+role) })
	run(t, dsn, `GRANT USAGE ON SCHEMA public, app TO `+role)
	return role
}

// openAs returns a handle that protects app.accounts, and the configuration of a
// plain connection, both as the role.
func openAs(t *testing.T, dsn, role string, options ...driver.Option) (*sql.DB, *pgx.ConnConfig) {
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.User = role
	connector, err := driver.NewConnector(*config, append(options, driver.Protect("app.accounts", rewrite.Lease))...)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db, config
}

// A write that may go to a table by its bare name goes there, whatever the table is
// like, although a protected one has the name too: as it does without fencerow.
func TestWritesOfNamesakes(t *testing.T) {
	for form, setUp := range namesakeForms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t)
			run(t, dsn, namesSchema, namesRows)
			role := newRole(t, dsn)
			run(t, dsn, strings.ReplaceAll(setUp, "%role%", role))
			guarded, config := openAs(t, dsn, role)
			plain, err := pgx.ConnectConfig(t.Context(), config)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			for _, text := range namesakeWrites {
				want, err := plain.Exec(t.Context(), `BEGIN; `+text)
				_, rollbackErr := plain.Exec(t.Context(), `ROLLBACK`)
				require.NoError(t, rollbackErr)
				tx, beginErr := guarded.BeginTx(t.Context(), nil)
				require.NoError(t, beginErr)
				result, guardedErr := tx.Exec(text)
				if err != nil { // some rules take no WITH
					require.EqualError(t, guardedErr, err.Error(), text)
				} else {
					require.NoError(t, guardedErr, text)
					n, err := result.RowsAffected()
					require.NoError(t, err)
					require.Equal(t, want.RowsAffected(), n, text)
				}
				require.NoError(t, tx.Rollback())
			}
		})
	}
}

// A role that may only insert into a protected table does so by its bare name, with
// the token that is added, although another table has the name too.
func TestRewrittenInsertOfASharedName(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows)
	role := newRole(t, dsn)
	run(t, dsn, `GRANT INSERT ON app.accounts, public.accounts TO `+role)
	db, _ := openAs(t, dsn, role, driver.WithRewrite())
	db.SetMaxOpenConns(1)
	ctx := tokenctx.With(t.Context(), 10)
	_, err := db.ExecContext(ctx, `INSERT INTO accounts (id, balance) VALUES ($1, $2)`, 5, 50)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, `SET search_path = app`)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, `INSERT INTO accounts (id, balance) VALUES ($1, $2)`, 6, 60)
	require.NoError(t, err)
	protected, other := state(t, dsn)
	require.Equal(t, "(1,100,9) (6,60,10)", protected)
	require.Equal(t, "(1,100) (5,50)", other)
}

// A script makes a table and writes it by a bare name that a protected one has too;
// a table that isn't there is missed as it is without fencerow.
func TestSharedNameOfAMissingTable(t *testing.T) {
	const script = `CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint); INSERT INTO accounts (id, balance) VALUES (1, 1), (2, 2)`
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows, `DROP TABLE public.accounts`, `CREATE SCHEMA third`, `CREATE TABLE third.accounts (id bigint)`)
	db, err := driver.Open(dsn, driver.Protect("app.accounts", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	for _, text := range []string{`UPDATE accounts SET balance = 1`, `INSERT INTO accounts VALUES (1)`, `MERGE INTO accounts a USING (VALUES (1)) v (id) ON a.id = v.id WHEN MATCHED THEN DELETE`} {
		_, err = db.Exec(text)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, text)
		require.Equal(t, "42P01", pgErr.Code, text)
	}
	result, err := db.Exec(script)
	require.NoError(t, err)
	n, err := result.RowsAffected()
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	protected, other := state(t, dsn)
	require.Equal(t, "(1,100,9)", protected)
	require.Equal(t, "(1,1) (2,2)", other)
}

// A script that changes what its bare names mean is not led to another table than
// it would write without fencerow, and never to the protected one.
func TestScriptThatChangesThePath(t *testing.T) {
	for name, script := range map[string]string{
		"SET":        `SET search_path = app; INSERT INTO accounts (id, balance) VALUES (9, 9)`,
		"a function": `SELECT set_tenant('app'); UPDATE accounts SET balance = 0`,
		"a failure":  `ROLLBACK; DELETE FROM accounts`,
		"itself":     `UPDATE accounts SET balance = (SELECT 0 FROM set_tenant('app')); DELETE FROM accounts`,
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t)
			run(t, dsn, namesSchema, namesRows)
			db, err := driver.Open(dsn, driver.Protect("app.accounts", rewrite.Lease))
			require.NoError(t, err)
			defer db.Close()
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			if name == "a failure" {
				_, err = conn.ExecContext(t.Context(), `SET search_path = app`)
				require.NoError(t, err)
				_, err = conn.ExecContext(t.Context(), `BEGIN; SET search_path = public; SELECT 1 / 0`)
				require.Error(t, err)
			}
			_, err = conn.ExecContext(t.Context(), script)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			require.ErrorContains(t, err, "write the schema")
			protected, other := state(t, dsn)
			require.Equal(t, "(1,100,9)", protected)
			require.Equal(t, "(1,100)", other)
		})
	}
}

// A name that means a table which was not there when the catalog was read is
// refused with what to do.
func TestSharedNameOfATemporaryTable(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, namesSchema, namesRows, `CREATE FUNCTION shadow() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'CREATE TEMPORARY TABLE ' || 'acc' || 'ounts (id bigint, balance bigint)'; END $$`)
	db, err := driver.Open(dsn, driver.Protect("app.accounts", rewrite.Lease), driver.WithGuardedFunctions("shadow"))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`SELECT shadow()`)
	require.NoError(t, err)
	_, err = db.Exec(`MERGE INTO accounts a USING (VALUES (1)) v (id) ON a.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (1, 1)`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.ErrorContains(t, err, "write the schema")
}
