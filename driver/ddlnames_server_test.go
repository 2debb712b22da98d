package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// ddlSchema has orders, which is protected, and a table of its name in another schema that
// isn't, which is the one that the sessions' path leads to.
const ddlSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0);
CREATE SCHEMA arch CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0);
CREATE SCHEMA bare; CREATE SCHEMA other CREATE TABLE plain (id int);
CREATE TABLE other.parted (id bigint, v text, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id);
CREATE TABLE other.parent (id bigint, v text, last_token bigint NOT NULL DEFAULT 0);
CREATE FUNCTION other.setpath(p text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', p, false); END $$;
CREATE FUNCTION other.setlocal(p text) RETURNS void LANGUAGE sql AS $$ SELECT set_config('search_path', p, true) $$;
CREATE PROCEDURE other.usepath(p text) LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', p, false); END $$;
CREATE FUNCTION other.on_login() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', NEW.tenant, false); RETURN NEW; END $$;
CREATE TABLE other.login (tenant text); CREATE TRIGGER t BEFORE INSERT ON other.login FOR EACH ROW EXECUTE FUNCTION other.on_login();
`

// ddlByBareName are changes of structure that reach orders by its bare name.
var ddlByBareName = map[string]string{
	"rewrite":          `ALTER TABLE orders ALTER COLUMN v TYPE text USING 'HIT'`,
	"add":              `ALTER TABLE orders ADD COLUMN more int`,
	"several":          `ALTER TABLE orders ADD COLUMN more int, DROP COLUMN v`,
	"drop":             `DROP TABLE orders`,
	"drop of several":  `DROP TABLE other.plain, orders`,
	"drop if it is":    `DROP TABLE IF EXISTS orders CASCADE`,
	"view":             `CREATE VIEW other.vv AS SELECT * FROM orders`,
	"attach":           `ALTER TABLE other.parted ATTACH PARTITION orders FOR VALUES IN (1)`,
	"inherit":          `ALTER TABLE orders INHERIT other.parent`,
	"child":            `CREATE TABLE other.child () INHERITS (orders)`,
	"foreign key":      `ALTER TABLE other.plain ADD FOREIGN KEY (id) REFERENCES orders ON DELETE CASCADE`,
	"rule":             `CREATE RULE r AS ON INSERT TO orders DO NOTHING`,
	"trigger":          `CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION other.on_login()`,
	"policy":           `CREATE POLICY p ON orders USING (true)`,
	"index":            `CREATE INDEX ON orders (v)`,
	"statistics":       `CREATE STATISTICS other.st ON id, v FROM orders`,
	"disabled trigger": `ALTER TABLE orders DISABLE TRIGGER ALL`,
}

// ddlPaths are the paths that a session is led to, with whether orders is the protected one
// in them.
var ddlPaths = map[string]bool{"public": true, "bare, public": true, "public, arch": true, "arch": false, "arch, public": false, "other, arch": false}

// ddlMovers lead a session to a path.
var ddlMovers = map[string]string{
	"function":       `SELECT other.setpath($1)`,
	"local function": `SELECT other.setlocal($1)`,
	"procedure":      `CALL other.usepath($1)`,
	"trigger":        `INSERT INTO other.login VALUES ($1)`,
}

// reaches reports whether a transaction has a lock on the protected table: whatever uses it has.
func reaches(t *testing.T, tx *sql.Tx, oid uint32) (yes bool) {
	t.Helper()
	require.NoError(t, tx.QueryRow(`SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE relation = $1 AND pid = pg_catalog.pg_backend_pid())`, oid).Scan(&yes))
	return yes
}

// A change of structure by a bare name goes by what that means when it runs, whoever has led the
// session to another path, and never reaches the protected table.
func TestStructureByABareName(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, ddlSchema)
	onArch := withParameter(dsn, "search_path=arch")
	var oid uint32
	plain, err := sql.Open("pgx", onArch)
	require.NoError(t, err)
	defer plain.Close()
	plain.SetMaxOpenConns(1)
	require.NoError(t, plain.QueryRow(`SELECT 'public.orders'::regclass::oid`).Scan(&oid))
	db, err := driver.Open(onArch, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for who, mover := range ddlMovers {
		for path, isProtected := range ddlPaths {
			for use, text := range ddlByBareName {
				isMain := use == "rewrite" || use == "view"
				if who != "function" && !isMain || (who != "function" || !isMain) && path != "public" && path != "arch" {
					continue
				}
				t.Run(who+"/"+path+"/"+use, func(t *testing.T) {
					within := func(db *sql.DB) (bool, error) {
						tx, err := db.Begin()
						require.NoError(t, err)
						defer func() { require.NoError(t, tx.Rollback()) }()
						_, err = tx.Exec(mover, path)
						require.NoError(t, err)
						_, err = tx.Exec(text)
						if !errors.Is(err, rewrite.ErrRefused) {
							require.NoError(t, err)
						}
						return reaches(t, tx, oid), err
					}
					reached, _ := within(plain)
					require.Equal(t, isProtected, reached, "without the handle")
					reached, err := within(db)
					require.False(t, reached)
					if !isProtected && path != "arch, public" { // where the one could take the place of the other
						require.NoError(t, err)
						return
					}
					require.ErrorIs(t, err, rewrite.ErrRefused)
					require.ErrorContains(t, err, "write its schema")
				})
			}
		}
	}
}

// A hook of the pool leads sessions elsewhere as well, and a statement before in the same text: where
// that can't be told, the name counts for the protected table.
func TestStructureByABareNameBehindOthers(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, ddlSchema)
	db, err := driver.Open(withParameter(dsn, "search_path=arch"), driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, one := range []struct {
		text       string
		isAccepted bool
	}{
		{`SELECT other.setpath('public'); ALTER TABLE orders DROP COLUMN v`, false},
		{`ALTER TABLE other.plain ADD COLUMN c text DEFAULT other.setpath('public')::text; DROP TABLE orders`, false},
		{`SELECT other.setpath('public'); GRANT ALL ON orders TO PUBLIC`, false},
		{`GRANT ALL ON orders TO PUBLIC`, true},
		{`BEGIN; ALTER TABLE orders ADD COLUMN a int; CREATE INDEX ON orders (a); COMMENT ON TABLE other.plain IS ''; COMMIT`, true},
		{`DO $$ BEGIN PERFORM other.setpath('public'); END $$; CREATE VIEW other.vv AS SELECT * FROM orders`, false},
		{`CREATE SCHEMA more; CREATE TABLE more.orders (id int); ALTER TABLE orders ADD COLUMN b int`, true},
		{`ALTER TABLE orders DROP COLUMN a; SELECT other.setpath('arch')`, true},
		{`BEGIN; SELECT set_config('search_path', 'arch', true); ROLLBACK; ALTER TABLE orders DROP COLUMN v`, false},
	} {
		_, err := db.Exec(one.text)
		if one.isAccepted {
			require.NoError(t, err, one.text)
			continue
		}
		require.ErrorIs(t, err, rewrite.ErrRefused, one.text)
	}
}

// A pool's hook leads a session to another path each time that it is used.
func TestStructureByABareNameBehindAHook(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, ddlSchema)
	config, err := pgx.ParseConfig(withParameter(dsn, "search_path=arch"))
	require.NoError(t, err)
	path := "public"
	connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Lease), driver.WithPgx(stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SELECT pg_catalog.set_config('search_path', $1, false)`, path)
		return err
	})))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	require.NoError(t, db.Ping())
	prepared, err := db.Prepare(`ALTER TABLE orders ALTER COLUMN v TYPE text USING 'HIT'`)
	if err != nil {
		require.ErrorIs(t, err, rewrite.ErrRefused)
	} else {
		_, err = prepared.Exec()
		require.ErrorIs(t, err, rewrite.ErrRefused)
	}
	_, err = db.Exec(`DROP TABLE orders`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	path = "arch"
	prepared, err = db.Prepare(`ALTER TABLE orders ALTER COLUMN v TYPE text USING 'HIT'`)
	require.NoError(t, err)
	defer prepared.Close()
	_, err = prepared.Exec()
	require.NoError(t, err)
	path = "public"
	_, err = prepared.Exec()
	require.ErrorIs(t, err, rewrite.ErrRefused)
}
