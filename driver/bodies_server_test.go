package driver_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// bodiesSchema has functions that write orders, for what could run them.
const bodiesSchema = `
CREATE FUNCTION bad() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN 1; END $$;
CREATE FUNCTION badt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN NEW; END $$;
CREATE FUNCTION good() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TABLE lf (id bigint, v text); INSERT INTO lf VALUES (1); CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON lf FOR EACH ROW EXECUTE FUNCTION badt();
CREATE TABLE lf_plain (id bigint, v text); INSERT INTO lf_plain VALUES (1);
`

// plpgsqlBody makes f() of a body.
func plpgsqlBody(body string) string {
	return `CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ ` + body + ` $f$;`
}

// bodyCase is a statement that a body or an object of the setup makes write orders, or
// not.
type bodyCase struct {
	setup, use string // use is "" for SELECT f()
}

func (c bodyCase) statement() string {
	if c.use == "" {
		return `SELECT f()`
	}
	return c.use
}

func requireBodiesRefused(t *testing.T, schema string, cases map[string]bodyCase) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			db, plain := openTexts(t, schema+c.setup)
			requireTextRefused(t, db, plain, c.statement())
		})
	}
}

func requireBodiesAllowed(t *testing.T, schema string, cases map[string]bodyCase) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			db, plain := openTexts(t, schema+c.setup)
			_, err := db.ExecContext(t.Context(), c.statement())
			require.NoError(t, err)
			var v string
			require.NoError(t, plain.QueryRow(t.Context(), `SELECT v FROM orders`).Scan(&v))
			require.Equal(t, "new", v)
		})
	}
}

// What a body makes of a table counts as what the table's code does, whatever it is
// written by then.
func TestBodiesThatChangeTables(t *testing.T) {
	const whole = `CREATE TABLE whole (id bigint, v text, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id); CREATE TABLE parted (id bigint, v text) PARTITION BY LIST (id); CREATE TABLE above (id bigint, v text);`
	const parent = `CREATE TABLE parent (id bigint PRIMARY KEY, v text); INSERT INTO parent VALUES (1);`
	const foreign = `CREATE EXTENSION postgres_fdw; CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw; CREATE FOREIGN TABLE ft (id bigint, v text) SERVER s OPTIONS (table_name 'plain'); DROP FUNCTION bad; DROP FUNCTION badt CASCADE;`
	requireBodiesRefused(t, bodiesSchema, map[string]bodyCase{
		"LIKE, defaults":        {setup: `CREATE TABLE d (i int, j int DEFAULT bad());` + plpgsqlBody(`BEGIN CREATE TEMP TABLE x (LIKE d INCLUDING DEFAULTS); INSERT INTO x (i) VALUES (1); END`)},
		"LIKE, all":             {setup: `CREATE TABLE d (i int, j int DEFAULT bad());` + plpgsqlBody(`BEGIN CREATE TABLE x (a int, LIKE public.d INCLUDING ALL, b int); INSERT INTO x (i) VALUES (1); END`)},
		"LIKE, generated":       {setup: `CREATE FUNCTION bad_of(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN bad(); END'; CREATE TABLE d (i int, j int GENERATED ALWAYS AS (bad_of(i)) STORED);` + plpgsqlBody(`BEGIN CREATE TABLE x (LIKE d INCLUDING GENERATED); INSERT INTO x (i) VALUES (1); END`)},
		"LIKE, EXECUTE":         {setup: `CREATE TABLE d (i int, j int DEFAULT bad());` + plpgsqlBody(`BEGIN EXECUTE 'CREATE TABLE x (LI' || 'KE d INCLUDING ALL)'; INSERT INTO x (i) VALUES (1); END`)},
		"LIKE, any name":        {setup: `CREATE TABLE d (i int, j int DEFAULT bad());` + plpgsqlBody(`BEGIN EXECUTE format('CREATE TABLE x (LIKE %I INCLUDING ALL)', (SELECT relname FROM pg_class WHERE oid = 'd'::regclass)); INSERT INTO x (i) VALUES (1); END`)},
		"LIKE, part of a name":  {setup: `CREATE TABLE d_1 (i int, j int DEFAULT bad());` + plpgsqlBody(`BEGIN EXECUTE format('CREATE TABLE x (LIKE %I INCLUDING ALL)', 'd_' || good()); INSERT INTO x (i) VALUES (1); END`)},
		"ATTACH, the protected": {setup: whole + plpgsqlBody(`BEGIN ALTER TABLE whole ATTACH PARTITION orders FOR VALUES IN (1); UPDATE whole SET v = 'HIT'; ALTER TABLE whole DETACH PARTITION orders; END`)},
		"ATTACH, a trigger":     {setup: whole + plpgsqlBody(`BEGIN ALTER TABLE parted ATTACH PARTITION lf FOR VALUES IN (1); INSERT INTO parted VALUES (1, 'x'); END`)},
		"INHERIT, a trigger":    {setup: whole + plpgsqlBody(`BEGIN ALTER TABLE lf INHERIT above; UPDATE above SET v = 'x'; END`)},
		"REFERENCES, a trigger": {setup: parent + plpgsqlBody(`BEGIN ALTER TABLE ONLY lf ADD FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE; DELETE FROM parent; END`)},
		"RENAME, a trigger":     {setup: plpgsqlBody(`BEGIN ALTER TABLE lf_plain RENAME TO lf_old; ALTER TABLE IF EXISTS lf RENAME TO lf_plain; INSERT INTO lf_plain VALUES (1); END`)},
		"RENAME, a view":        {setup: `CREATE VIEW lv AS SELECT * FROM lf;` + plpgsqlBody(`BEGIN ALTER VIEW lv RENAME TO lw; INSERT INTO lw VALUES (1); END`)},
		"RENAME, a column":      {setup: `CREATE TABLE area (id int PRIMARY KEY, region text UNIQUE); INSERT INTO area VALUES (1, 'new'); ALTER TABLE orders ADD FOREIGN KEY (v) REFERENCES area (region) ON UPDATE CASCADE;` + plpgsqlBody(`BEGIN ALTER TABLE area RENAME COLUMN region TO r; UPDATE area SET r = 'HIT'; END`)},
		"RENAME, a column, 2":   {setup: `CREATE TABLE area (id int PRIMARY KEY, region text UNIQUE); INSERT INTO area VALUES (1, 'new'); ALTER TABLE orders ADD FOREIGN KEY (v) REFERENCES area (region) ON UPDATE CASCADE;` + plpgsqlBody(`BEGIN ALTER TABLE area RENAME region TO r; UPDATE area SET r = 'HIT'; END`)},
	})
	requireBodiesAllowed(t, bodiesSchema, map[string]bodyCase{
		"LIKE orders":         {setup: plpgsqlBody(`BEGIN CREATE TEMP TABLE x (LIKE orders INCLUDING ALL); INSERT INTO x VALUES (1); END`)},
		"LIKE plain":          {setup: plpgsqlBody(`BEGIN CREATE TEMP TABLE x (LIKE plain INCLUDING ALL); INSERT INTO x VALUES (1); END`)},
		"LIKE a trigger's":    {setup: plpgsqlBody(`BEGIN CREATE TEMP TABLE x (LIKE lf INCLUDING ALL); INSERT INTO x VALUES (1); END`)},
		"LIKE, any name":      {setup: plpgsqlBody(`BEGIN EXECUTE format('CREATE TABLE x (LIKE %I INCLUDING ALL)', (SELECT 'plain'::text)); INSERT INTO x VALUES (1); END`)},
		"a pattern":           {setup: plpgsqlBody(`BEGIN CREATE TEMP TABLE x AS SELECT * FROM cfg WHERE t LIKE 'or%'; END`)},
		"ATTACH":              {setup: whole + plpgsqlBody(`BEGIN ALTER TABLE parted ATTACH PARTITION lf_plain FOR VALUES IN (1); INSERT INTO parted VALUES (1, 'x'); END`)},
		"INHERIT":             {setup: whole + plpgsqlBody(`BEGIN ALTER TABLE lf_plain INHERIT above; UPDATE above SET v = 'x'; END`)},
		"REFERENCES":          {setup: parent + plpgsqlBody(`BEGIN ALTER TABLE lf_plain ADD FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE; DELETE FROM parent; END`)},
		"RENAME":              {setup: plpgsqlBody(`BEGIN ALTER TABLE lf_plain RENAME TO lf_old; ALTER TABLE plain RENAME TO lf_plain; INSERT INTO lf_plain VALUES (1); END`)},
		"RENAME a column":     {setup: plpgsqlBody(`BEGIN ALTER TABLE plain RENAME v TO w; UPDATE plain SET w = 'x'; END`)},
		"RENAME a constraint": {setup: parent + plpgsqlBody(`BEGIN ALTER TABLE parent RENAME CONSTRAINT parent_pkey TO p; DELETE FROM parent; END`)},
		"ALTER":               {setup: plpgsqlBody(`BEGIN ALTER TABLE lf ADD COLUMN w int; ALTER TABLE lf ALTER w SET NOT NULL; EXCEPTION WHEN OTHERS THEN NULL; END`)},
	})
	t.Run("a foreign table's options", func(t *testing.T) {
		db, plain := openTexts(t, bodiesSchema+foreign+plpgsqlBody(`BEGIN ALTER FOREIGN TABLE ft OPTIONS (SET table_name 'orders'); END`))
		_, err := db.ExecContext(t.Context(), `SELECT f()`)
		requireRefused(t, err, rewrite.UnsafeFunction)
		_, err = plain.Exec(t.Context(), `SELECT f()`)
		require.NoError(t, err)
	})
}

// A body may enable an event trigger, or make one, and fire it.
func TestBodiesThatEnableEventTriggers(t *testing.T) {
	const disabled = `CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM bad(); END $$; CREATE EVENT TRIGGER e1 ON ddl_command_end EXECUTE FUNCTION et(); ALTER EVENT TRIGGER e1 DISABLE;`
	requireBodiesRefused(t, bodiesSchema+disabled, map[string]bodyCase{
		"enabled":          {setup: plpgsqlBody(`BEGIN ALTER EVENT TRIGGER e1 ENABLE; CREATE TABLE zz (a int); END`)},
		"enabled always":   {setup: plpgsqlBody(`BEGIN ALTER EVENT TRIGGER e1 ENABLE ALWAYS; DROP TABLE cfg; END`)},
		"enabled, EXECUTE": {setup: plpgsqlBody(`BEGIN EXECUTE 'ALTER EVENT TRIGGER ' || 'e1 ENABLE'; CREATE TABLE zz (a int); END`)},
		"enabled, a name":  {setup: plpgsqlBody(`BEGIN EXECUTE format('ALTER EVENT TRIGGER %I ENABLE', (SELECT evtname FROM pg_event_trigger)); CREATE TABLE zz (a int); END`)},
		"made":             {setup: plpgsqlBody(`BEGIN CREATE EVENT TRIGGER e2 ON ddl_command_end EXECUTE FUNCTION et(); CREATE TABLE zz (a int); END`)},
	})
	requireBodiesAllowed(t, bodiesSchema+disabled, map[string]bodyCase{
		"DDL":     {setup: plpgsqlBody(`BEGIN CREATE TABLE zz (a int); ALTER TABLE zz ADD b int; END`)},
		"a word":  {setup: plpgsqlBody(`BEGIN INSERT INTO audit VALUES (1, 'alter event trigger'); END`)},
		"dropped": {setup: plpgsqlBody(`BEGIN DROP EVENT TRIGGER e1; CREATE TABLE zz (a int); END`)},
	})
}

// INTO sets a variable, whatever the word before it is.
func TestBodiesWithNamesOfKeywords(t *testing.T) {
	const runs = ` EXECUTE format('UPDATE %I SET v = ''HIT''', n); END`
	requireBodiesRefused(t, "", map[string]bodyCase{
		"a cursor merge":       {setup: plpgsqlBody(`DECLARE n text := 'plain'; merge CURSOR FOR SELECT t FROM cfg; BEGIN OPEN merge; FETCH merge INTO n;` + runs)},
		"a cursor, FROM":       {setup: plpgsqlBody(`DECLARE n text := 'plain'; insert CURSOR FOR SELECT t FROM cfg; BEGIN OPEN insert; FETCH NEXT FROM insert INTO n;` + runs)},
		"a variable insert":    {setup: plpgsqlBody(`DECLARE n text := 'plain'; insert text := 'SELECT t FROM cfg'; BEGIN EXECUTE insert INTO n;` + runs)},
		"a field insert":       {setup: `CREATE TYPE fields AS (insert text);` + plpgsqlBody(`DECLARE n text := 'plain'; r fields; BEGIN r.insert := 'SELECT t FROM cfg'; EXECUTE r.insert INTO n;`+runs)},
		"an alias insert":      {setup: plpgsqlBody(`DECLARE n text := 'plain'; q text := 'SELECT t FROM cfg'; BEGIN EXECUTE (q) insert INTO n;` + runs)},
		"an alias, CASE":       {setup: plpgsqlBody(`DECLARE n text := 'plain'; BEGIN EXECUTE CASE WHEN false THEN 'x' ELSE 'SELECT t FROM cfg' END merge INTO n;` + runs)},
		"a constant":           {setup: plpgsqlBody(`DECLARE n text := 'plain'; BEGIN EXECUTE 'SELECT t FROM cfg' insert INTO n;` + runs)},
		"a parameter insert":   {setup: `CREATE FUNCTION f(insert text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE n text := 'plain'; BEGIN EXECUTE insert INTO n;` + runs + ` $$`, use: `SELECT f('SELECT t FROM cfg')`},
		"a variable function":  {setup: plpgsqlBody(`DECLARE function text := 'UPDATE ord' || 'ers SET v = 1'; BEGIN EXECUTE function; END`)},
		"a variable procedure": {setup: plpgsqlBody(`DECLARE procedure text := 'UPDATE ord' || 'ers SET v = 1'; BEGIN EXECUTE procedure; END`)},
		"a parameter function": {setup: `CREATE FUNCTION f(function text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE function; END $$`, use: `SELECT f((SELECT q FROM cfg))`},
	})
	requireBodiesAllowed(t, "", map[string]bodyCase{
		"INSERT INTO":      {setup: plpgsqlBody(`DECLARE n text := 'plain'; BEGIN IF true THEN INSERT INTO audit (v) VALUES (n); END IF; FOR i IN 1..2 LOOP INSERT INTO audit (v) SELECT n; END LOOP; EXECUTE format('UPDATE %I SET v = 1', n); END`)},
		"WITH INSERT INTO": {setup: plpgsqlBody(`DECLARE n text := 'plain'; BEGIN WITH x AS (INSERT INTO audit (v) VALUES (n) RETURNING *) INSERT INTO audit (v) VALUES (n); EXECUTE format('UPDATE %I SET v = 1', n); END`)},
		"a label":          {setup: plpgsqlBody(`DECLARE n text := 'plain'; BEGIN <<ins>> BEGIN INSERT INTO audit (v) VALUES (n); END; EXECUTE format('UPDATE %I SET v = 1', n); END`)},
		"GRANT EXECUTE":    {setup: plpgsqlBody(`BEGIN GRANT EXECUTE ON FUNCTION run TO PUBLIC; END`)},
	})
}

// EXECUTE runs several statements, so what is put in without quotes may be one of its
// own.
func TestBodiesWithStatementsPutIn(t *testing.T) {
	const cfg = `UPDATE cfg SET t = 'plain; UPDATE public.orders SET v = ''HIT'''; CREATE SCHEMA plain;`
	with := func(text string) bodyCase {
		return bodyCase{setup: cfg + plpgsqlBody(`DECLARE x text; BEGIN SELECT t INTO x FROM cfg; EXECUTE `+text+`; END`)}
	}
	requireBodiesRefused(t, "", map[string]bodyCase{
		"SET": with(`'SET app.tenant = ' || x`), "SET, format": with(`format('SET app.tenant = %s', x)`), "SET LOCAL": with(`'SET LOCAL app.tenant TO ' || x`),
		"ANALYZE": with(`'ANALYZE ' || x`), "SELECT": with(`'SELECT count(*) FROM ' || x`), "LOCK": with(`'LOCK TABLE ' || x`), "TABLE": with(`'TABLE ' || x`), "WITH": with(`'WITH a AS (SELECT 1) TABLE ' || x`),
		"NOTIFY": with(`'NOTIFY a; LISTEN ' || x`), "SHOW": with(`concat('SELECT 1 FROM ', x)`), "cut": with(`'ANALYZE ' || substr(x, 1)`),
		"a constant":  {setup: `UPDATE cfg SET t = 'x''; UPDATE orders SET v = ''HIT'; ` + plpgsqlBody(`DECLARE x text; BEGIN SELECT t INTO x FROM cfg; EXECUTE 'SET app.tenant = ''' || x || ''''; END`)},
		"a parameter": {setup: cfg + `CREATE FUNCTION tenant(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SET app.tenant = ' || n; END $$;` + plpgsqlBody(`DECLARE x text; BEGIN SELECT t INTO x FROM cfg; PERFORM tenant(x); END`)},
		"given":       {setup: cfg + `CREATE FUNCTION tenant(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SET app.tenant = ' || n; END $$`, use: `SELECT tenant(t) FROM cfg`},
	})
	quoted := func(text string) bodyCase {
		return bodyCase{setup: `UPDATE cfg SET t = 'plain';` + plpgsqlBody(`DECLARE x text; r regclass; BEGIN SELECT t INTO x FROM cfg; r := x; EXECUTE `+text+`; END`)}
	}
	requireBodiesAllowed(t, "", map[string]bodyCase{
		"SET, %L": quoted(`format('SET app.tenant = %L', x)`), "SET, quote_literal": quoted(`'SET app.tenant = ' || quote_literal(x)`), "SET search_path, %I": quoted(`format('SET LOCAL search_path = %I', x)`),
		"ANALYZE, quote_ident": quoted(`'ANALYZE ' || quote_ident(x)`), "SELECT, %I": quoted(`format('SELECT count(*) FROM %I', x)`), "SELECT, regclass": quoted(`'SELECT count(*) FROM ' || x::regclass`),
		"given": {setup: `CREATE FUNCTION tenant(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SET app.tenant = ' || n; END $$`, use: `SELECT tenant('abc')`},
	})
}

// keywords are names that a function may have without quotes, and by which a reader of
// its caller's body tells what a statement does.
var keywords = []string{"insert", "update", "delete", "merge", "copy", "truncate", "refresh", "alter", "drop", "rename", "import", "partition",
	"inherits", "trigger", "rule", "policy", "execute", "prepare", "move", "set", "reset", "begin", "call", "view", "sequence", "attach", "of"}

// A function that a body calls is followed whatever its name is.
func TestCallsOfFunctionsNamedLikeKeywords(t *testing.T) {
	t.Parallel()
	for _, name := range keywords {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t)
			run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 'row', 9); CREATE TABLE queue (v text);
				CREATE FUNCTION `+name+`() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN 1; END $$;
				CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ DECLARE x int; BEGIN x := public.`+name+`(); RETURN x; END $$;
				CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.`+name+`(); RETURN NEW; END $$;
				CREATE TRIGGER t AFTER INSERT ON queue FOR EACH ROW EXECUTE FUNCTION fired()`)
			db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
			require.NoError(t, err)
			defer db.Close()
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			for _, use := range []string{`SELECT f()`, `INSERT INTO queue VALUES ('x')`} {
				_, err := db.Exec(use)
				require.ErrorIs(t, err, rewrite.ErrRefused, use)
				_, err = plain.Exec(t.Context(), `BEGIN; `+use)
				require.NoError(t, err)
				var v string
				require.NoError(t, plain.QueryRow(t.Context(), `SELECT v FROM orders`).Scan(&v))
				require.Equal(t, "HIT", v, use)
				_, err = plain.Exec(t.Context(), `ROLLBACK`)
				require.NoError(t, err)
			}
		})
	}
}

// A name may be a column's, by whichever way that is set.
func TestBodiesWithColumnsFirst(t *testing.T) {
	const f = `CREATE FUNCTION f(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM purge(t) FROM cfg; END $$;`
	const set = ` SET plpgsql.variable_conflict = 'use_column'`
	requireBodiesRefused(t, "", map[string]bodyCase{
		"the function's":    {f + `ALTER FUNCTION f` + set, `SELECT f('plain')`},
		"the caller's":      {f + `CREATE FUNCTION g() RETURNS void LANGUAGE plpgsql` + set + ` AS $$ BEGIN PERFORM f('plain'); END $$`, `SELECT g()`},
		"a caller's config": {f + `CREATE FUNCTION g() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('plpgsql.variable_conflict', 'use_column', true); PERFORM f('plain'); END $$`, `SELECT g()`},
		"the database's":    {f + `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET plpgsql.variable_conflict = use_column', current_database()); END $$`, `SELECT f('plain')`},
	})
	requireBodiesAllowed(t, "", map[string]bodyCase{
		"another pragma": {"CREATE FUNCTION h(t text) RETURNS void LANGUAGE plpgsql AS $$\n#variable_conflict use_column\nBEGIN PERFORM t FROM cfg; END $$;" +
			`CREATE FUNCTION f(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM purge(n) FROM queue; END $$`, `SELECT f('plain')`},
		"variables": {`CREATE FUNCTION f(n text) RETURNS void LANGUAGE plpgsql SET plpgsql.variable_conflict = 'use_variable' AS $$ BEGIN PERFORM purge(n) FROM queue; END $$`, `SELECT f('plain')`},
	})
	t.Run("the session's", func(t *testing.T) {
		db, plain := openTexts(t, f)
		for _, set := range []string{`SET plpgsql.variable_conflict = use_column`, `SET LOCAL plpgsql.variable_conflict TO 'use_column'`, `SELECT set_config('plpgsql.variable_conflict', 'use_column', false)`, `RESET plpgsql.variable_conflict`} {
			_, err := db.ExecContext(t.Context(), set)
			requireRefused(t, err, rewrite.SessionSetting)
		}
		_, err := db.ExecContext(t.Context(), `SET plpgsql.variable_conflict = error`)
		require.NoError(t, err)
		_, err = plain.Exec(t.Context(), `SET plpgsql.variable_conflict = use_column; SELECT f('plain')`)
		require.NoError(t, err)
		var v string
		require.NoError(t, plain.QueryRow(t.Context(), `SELECT v FROM orders`).Scan(&v))
		require.Equal(t, "HIT", v, "the bypass is real")
	})
}
