package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// systemSchema has other names for catalogs, settings and the registry, as a
// migration could have made them.
const systemSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0);
INSERT INTO orders VALUES (1, 0, 9);
CREATE VIEW settings AS SELECT name, setting FROM pg_settings;
CREATE VIEW above AS SELECT * FROM settings;
CREATE VIEW classes AS SELECT oid, relname FROM pg_class;
CREATE VIEW columns AS SELECT attrelid, attname, attnotnull FROM pg_catalog.pg_attribute;
CREATE VIEW watched AS SELECT pid, state FROM pg_stat_activity;
CREATE TABLE log (id int);
CREATE FUNCTION set_tenant(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', t, false); END $$;
`

// What belongs to the server or to fencerow isn't changed under another name.
func TestSystemObjectsByIdentity(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, systemSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	run(t, dsn, `CREATE VIEW listed AS SELECT * FROM fencing.registry`)
	for name, c := range map[string]struct {
		before []string
		refuse string
	}{
		"a view of the settings":       {nil, `UPDATE settings SET setting = 'app' WHERE name = 'search_path'`},
		"a view of that view":          {nil, `UPDATE above SET setting = 'app' WHERE name = 'search_path'`},
		"with its schema":              {nil, `UPDATE public.settings SET setting = 'replica' WHERE name = 'session_replication_role'`},
		"a view of a catalog":          {nil, `UPDATE classes SET relname = 'xx' WHERE relname = 'orders'`},
		"another":                      {nil, `DELETE FROM columns`},
		"a view of the registry":       {nil, `UPDATE listed SET driver_level = 'off'`},
		"made by the handle":           {nil, `CREATE VIEW mine AS SELECT name, setting FROM pg_settings`},
		"a temporary one":              {nil, `CREATE TEMP VIEW mine AS SELECT * FROM pg_catalog.pg_settings WHERE true`},
		"over a view that is known":    {nil, `CREATE TEMP VIEW mine AS SELECT * FROM settings`},
		"with another schema":          {nil, `CREATE SCHEMA s CREATE VIEW mine AS SELECT * FROM pg_class`},
		"a rule":                       {nil, `CREATE RULE r AS ON INSERT TO log DO INSTEAD UPDATE pg_settings SET setting = 'x'`},
		"the path of the handle":       {nil, `SET search_path = fencing, public`},
		"the path of the transaction":  {nil, `SET LOCAL search_path TO 'public', "fencing"`},
		"the path by a function":       {nil, `SELECT set_config('search_path', 'fencing', false)`},
		"rows of the registry":         {[]string{`SELECT set_tenant('fencing, public')`}, `UPDATE registry SET driver_level = 'off'`},
		"a prepared one":               {[]string{`SELECT set_tenant('fencing, public')`}, `DELETE FROM registry`},
		"the generation":               {[]string{`SELECT set_tenant('fencing, public')`}, `UPDATE generation SET value = value + 1`},
		"truncated":                    {[]string{`SELECT set_tenant('fencing, public')`}, `TRUNCATE registry`},
		"a function of the schema":     {[]string{`SELECT set_tenant('fencing, public')`}, `SELECT unregister('orders')`},
		"its level":                    {[]string{`SELECT set_tenant('fencing, public')`}, `SELECT driver_level('orders', 'off')`},
		"dropped":                      {[]string{`SELECT set_tenant('fencing, public')`}, `DROP TABLE registry CASCADE`},
		"its triggers":                 {[]string{`SELECT set_tenant('fencing, public')`}, `ALTER TABLE registry DISABLE TRIGGER ALL`},
		"a function dropped":           {[]string{`SELECT set_tenant('fencing, public')`}, `DROP FUNCTION take(text, interval, text)`},
		"a function replaced":          {[]string{`SELECT set_tenant('fencing, public')`}, `CREATE OR REPLACE FUNCTION take(text, interval, text) RETURNS int LANGUAGE sql AS 'SELECT 1'`},
		"a right given away":           {[]string{`SELECT set_tenant('fencing, public')`}, `GRANT ALL ON registry TO PUBLIC`},
		"a child of the registry":      {[]string{`SELECT set_tenant('fencing, public')`}, `CREATE TABLE public.child () INHERITS (registry)`},
		"the sequence":                 {[]string{`SELECT set_tenant('fencing, public')`}, `ALTER SEQUENCE write_epoch RESTART`},
		"the sequence by its function": {[]string{`SELECT set_tenant('fencing, public')`}, `SELECT setval('write_epoch', 1)`},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := driver.Open(dsn)
			require.NoError(t, err)
			defer db.Close()
			db.SetMaxOpenConns(1)
			for _, s := range c.before {
				_, err := db.Exec(s)
				require.NoError(t, err)
			}
			_, err = db.Exec(c.refuse)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			_, err = db.Exec(`UPDATE public.orders SET n = 99`)
			require.ErrorIs(t, err, rewrite.ErrRefused, "the table is still protected")
		})
	}
}

// Tables of one's own that are called like those of the schema fencing are used
// as any others, and so is what only reads the system's.
func TestNamesOfFencingAreFree(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, systemSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	defer db.Close()
	for _, sql := range []string{
		`CREATE TABLE registry (id int, driver_level text)`, `CREATE TABLE lease (id int PRIMARY KEY)`, `CREATE TABLE epoch (id int, l int REFERENCES lease (id))`,
		`INSERT INTO registry VALUES (1, 'x')`, `UPDATE registry SET driver_level = 'off'`, `INSERT INTO lease VALUES (1)`, `DELETE FROM lease`, `TRUNCATE registry`,
		`MERGE INTO lease USING (VALUES (1)) v (id) ON lease.id = v.id WHEN NOT MATCHED THEN INSERT (id) VALUES (v.id)`, `WITH x AS (INSERT INTO lease (id) VALUES (3) RETURNING id) SELECT * FROM x`,
		`CREATE INDEX ON registry (id)`, `COMMENT ON TABLE lease IS 'mine'`, `ALTER TABLE public.lease ADD COLUMN x int`, `ALTER TABLE lease ADD COLUMN y int`, `CREATE VIEW leases AS SELECT * FROM lease`,
		`UPDATE leases SET x = 1`, `DO $$ BEGIN UPDATE public.lease SET x = 2; END $$`, `DO $$ DECLARE generation int; BEGIN SELECT count(*) INTO generation FROM lease; END $$`,
		`DROP TABLE public.registry`, `DROP TABLE epoch, lease CASCADE`,
		`CREATE FUNCTION release(int) RETURNS int LANGUAGE sql AS 'SELECT $1'`, `SELECT release(1)`, `CREATE OR REPLACE FUNCTION release(int) RETURNS int LANGUAGE sql AS 'SELECT $1'`, `DROP FUNCTION release(int)`,
		`CREATE FUNCTION register(int) RETURNS int LANGUAGE sql AS 'SELECT $1'`, `SELECT register(1)`,
		`CREATE VIEW busy AS SELECT pid, query FROM pg_stat_activity`, `CREATE VIEW sizes AS SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace`,
		`CREATE VIEW counts AS SELECT relkind, count(*) FROM pg_class GROUP BY 1`, `SELECT * FROM settings LIMIT 1`, `SELECT * FROM watched`,
	} {
		_, err := db.Exec(sql)
		require.NoError(t, err, sql)
	}
}

// A handle whose path leads into the schema fencing isn't opened.
func TestPathOfFencing(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, systemSchema)
	_, err := driver.Open(withParameter(dsn, "search_path=fencing,public"), driver.Protect("orders", rewrite.Lease))
	require.ErrorContains(t, err, "names the schema fencing")
}
