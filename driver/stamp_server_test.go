package driver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// What others change of the names that the closure goes by is known with the next look.
func TestRenamesByOthers(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, textsSchema, `ALTER TABLE plain ADD COLUMN n int; CREATE SCHEMA oth; CREATE SEQUENCE toks; CREATE SEQUENCE moved; CREATE SEQUENCE owned; CREATE TABLE issued (id bigint, last_token bigint NOT NULL DEFAULT 0)`,
		`CREATE TABLE moving (id bigint, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE owning (id bigint, last_token bigint NOT NULL DEFAULT 0)`,
		`SELECT fencing.register('orders', 'lease'), fencing.register('issued', 'lease', issued_by => 'toks'), fencing.register('moving', 'lease', issued_by => 'moved'), fencing.register('owning', 'lease', issued_by => 'owned')`,
		`CREATE FUNCTION member() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET v = 'HIT'; END $$; ALTER EXTENSION plpgsql ADD FUNCTION member()`)
	db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for name, change := range map[string]struct{ before, change, after string }{
		"a sequence that is renamed":        {`SELECT setval('toks', 1)`, `ALTER SEQUENCE toks RENAME TO toks_2`, `SELECT setval('toks_2', 1)`},
		"a sequence that is moved":          {`SELECT setval('moved', 1)`, `ALTER SEQUENCE moved SET SCHEMA oth; ALTER SEQUENCE oth.moved RENAME TO moved_2`, `ALTER SEQUENCE oth.moved_2 RESTART`},
		"a sequence that becomes a table's": {``, `ALTER SEQUENCE owned OWNED BY plain.n`, `TRUNCATE plain RESTART IDENTITY`},
		"an extension's function no more":   {``, `ALTER EXTENSION plpgsql DROP FUNCTION member()`, `SELECT member()`},
	} {
		t.Run(name, func(t *testing.T) {
			if change.before != "" {
				_, err := db.Exec(change.before)
				require.ErrorIs(t, err, rewrite.ErrRefused)
			}
			run(t, dsn, change.change)
			_, err := db.Exec(change.after)
			require.ErrorIs(t, err, rewrite.ErrRefused)
		})
	}
}

// So it is with temporary relations that the session itself gives another name.
func TestRenamedTemporaryRelations(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, textsSchema, `CREATE FUNCTION tgn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', TG_TABLE_NAME || 'ers'); RETURN NEW; END $$`,
		`CREATE FUNCTION bad() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN 1; END $$`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease), driver.WithRefreshInterval(time.Hour))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for name, script := range map[string][]string{
		"a trigger": {`CREATE TEMP TABLE ordx (id int)`, `CREATE TRIGGER t AFTER INSERT ON ordx FOR EACH ROW EXECUTE FUNCTION tgn()`, `ALTER TABLE ordx RENAME TO ord`, `INSERT INTO ord VALUES (1)`},
		"a default": {`CREATE TEMP TABLE dx (id int, n int DEFAULT bad())`, `ALTER TABLE dx RENAME TO dy`, `INSERT INTO dy VALUES (1)`},
		"a check":   {`CREATE TEMP TABLE cx (id int CHECK (bad() > 0))`, `ALTER TABLE cx RENAME TO cy`, `INSERT INTO cy VALUES (1)`},
		"a rule":    {`CREATE TEMP TABLE rx (id int)`, `CREATE RULE r AS ON INSERT TO rx DO ALSO SELECT bad()`, `ALTER TABLE rx RENAME TO ry`, `INSERT INTO ry VALUES (1)`},
		"a view":    {`CREATE TEMP VIEW vx AS SELECT bad()`, `ALTER VIEW vx RENAME TO vy`, `SELECT * FROM vy`},
		"a child":   {`CREATE TEMP TABLE ix () INHERITS (orders)`, `ALTER TABLE ix RENAME TO iy`, `UPDATE iy SET v = 'HIT'`},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			for _, s := range script {
				if _, err = db.Exec(s); err != nil {
					break
				}
			}
			require.ErrorIs(t, err, rewrite.ErrRefused)
			var v string
			require.NoError(t, db.QueryRow(`SELECT v FROM orders`).Scan(&v))
			require.Equal(t, "new", v)
		})
	}
}

// Temporary objects are found by the name that texts have for their schema.
func TestTemporaryObjectsByTheirSchema(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, textsSchema, `CREATE FUNCTION mk() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
			CREATE TEMP VIEW tv AS SELECT * FROM orders;
			CREATE FUNCTION pg_temp.tfn() RETURNS void LANGUAGE sql AS 'UPDATE public.orders SET v = ''HIT''';
		END $$`,
		`CREATE FUNCTION by_view() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE pg_temp.tv SET v = 'HIT'; END $$`,
		`CREATE FUNCTION by_call() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_temp.tfn(); END $$`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease), driver.WithGuardedFunctions("public.mk"))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`SELECT mk()`)
	require.NoError(t, err)
	var schema string
	require.NoError(t, db.QueryRow(`SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = pg_catalog.pg_my_temp_schema()`).Scan(&schema))
	for _, text := range []string{`UPDATE pg_temp.tv SET v = 'HIT'`, `UPDATE ` + schema + `.tv SET v = 'HIT'`, `UPDATE tv SET v = 'HIT'`, `SELECT pg_temp.tfn()`, `SELECT ` + schema + `.tfn()`, `SELECT by_view()`, `SELECT by_call()`, `DROP VIEW pg_temp.tv; SELECT pg_temp.tfn()`} {
		_, err := db.Exec(text)
		require.ErrorIs(t, err, rewrite.ErrRefused, text)
	}
}
