package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// textsSchema has a protected table orders, and code that runs SQL which it makes of what
// it is given.
const textsSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 'new', 9);
CREATE TABLE plain (id bigint, v text); CREATE TABLE audit (id bigint, v text);
CREATE TABLE cfg (t text, q text); INSERT INTO cfg VALUES ('orders', 'UPDATE orders SET v = ''HIT''');
CREATE TABLE queue (t text);
CREATE FUNCTION name_of() RETURNS text LANGUAGE sql AS $$ SELECT 'or' || 'ders' $$;
CREATE FUNCTION purge(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', t); END $$;
CREATE FUNCTION run(q text, n int DEFAULT 0) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN n; END $$;
`

// bodiesSchema has besides functions that write orders, for what could run them.
const bodiesSchema = textsSchema + `
CREATE TYPE en AS ENUM ('a'); CREATE TABLE par (id bigint PRIMARY KEY); INSERT INTO par VALUES (9); ALTER TABLE orders ADD e en DEFAULT 'a', ADD par bigint DEFAULT 9 REFERENCES par ON DELETE SET NULL;
CREATE FUNCTION bad() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN 1; END $$;
CREATE FUNCTION badt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN NEW; END $$;
CREATE FUNCTION bade() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; END $$;
CREATE EVENT TRIGGER e1 ON ddl_command_end EXECUTE FUNCTION bade(); ALTER EVENT TRIGGER e1 DISABLE;
CREATE FUNCTION bycmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM bad(); RETURN btint4cmp($1, $2); END $$;
CREATE FUNCTION byname() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', TG_TABLE_NAME || 'ers'); RETURN NEW; EXCEPTION WHEN undefined_table THEN RETURN NEW; END $$;
`

// bodyCase is a statement that a body makes write orders, or not. In the use, @ stands
// for the case's schema.
type bodyCase struct {
	setup string
	use   string // "" for SELECT @f()
	why   string // the body isn't read; "" for what runs SQL that it makes
}

// plpgsqlBody makes f() of a body.
func plpgsqlBody(body string) string {
	return `CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ ` + body + ` $f$;`
}

// openBodies makes each case in a schema of its own, named by its place, and then opens a
// handle.
func openBodies(t *testing.T, schema string, cases map[string]bodyCase, opts ...driver.Option) (*sql.DB, *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t)
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close(context.Background()) })
	_, err = plain.Exec(t.Context(), schema)
	require.NoError(t, err)
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		_, err := plain.Exec(t.Context(), fmt.Sprintf(`CREATE SCHEMA c%d; SET search_path = c%d, public; %s`, i, i, cases[name].setup))
		require.NoError(t, err, name)
	}
	_, err = plain.Exec(t.Context(), `RESET search_path`)
	require.NoError(t, err)
	db, err := driver.Open(dsn, append(opts, driver.Protect("orders", rewrite.Lease))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, plain
}

// statement returns the case's statement in its schema.
func (c bodyCase) statement(place int) string {
	if c.use == "" {
		c.use = `SELECT @f()`
	}
	return strings.ReplaceAll(c.use, "@", fmt.Sprintf("c%d.", place))
}

// ordersOf is what stands in orders, and how it is built.
func ordersOf(t *testing.T, q interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (s string) {
	t.Helper()
	require.NoError(t, q.QueryRow(t.Context(), `SELECT string_agg(o::text, ',') FROM orders o`).Scan(&s))
	return s
}

// requireBodiesRefused shows that each case writes orders, and that it is refused for
// the case's own reason.
func requireBodiesRefused(t *testing.T, schema string, cases map[string]bodyCase) {
	t.Helper()
	db, plain := openBodies(t, schema, cases)
	before := ordersOf(t, plain)
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		statement := c.statement(i)
		_, err := db.ExecContext(t.Context(), statement)
		var v *rewrite.Violation
		require.ErrorAs(t, err, &v, name)
		require.Contains(t, []rewrite.Rule{rewrite.UnsafeFunction, rewrite.IndirectWrite}, v.Rule, name)
		if c.why == "" {
			c.why = "runs SQL that it makes"
		}
		require.ErrorContains(t, err, c.why, name)
		require.Equal(t, before, ordersOf(t, plain), name)

		tx, err := plain.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), fmt.Sprintf(`SET LOCAL search_path = c%d, public; SELECT set_config('app.t', 'orders', true)`, i))
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), statement)
		require.NoError(t, err, name)
		require.NotEqual(t, before, ordersOf(t, tx), "the bypass is real: %s", name)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// requireBodiesAllowed shows that each case is sent, and doesn't write orders.
func requireBodiesAllowed(t *testing.T, schema string, cases map[string]bodyCase) {
	t.Helper()
	db, plain := openBodies(t, schema, cases)
	before := ordersOf(t, plain)
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		_, err := db.ExecContext(tokenctx.With(t.Context(), 12), cases[name].statement(i))
		require.NoError(t, err, name)
		require.Equal(t, before, ordersOf(t, plain), name)
	}
}

// makesText is a function f that puts the name of orders into a text, and runs that.
func makesText(declares, text string) bodyCase {
	return bodyCase{setup: plpgsqlBody(`DECLARE ` + declares + ` BEGIN EXECUTE ` + text + `; END`)}
}

// update is the text of an UPDATE of a name.
func update(name string) string { return `format('UPDATE %I SET v = ''HIT''', ` + name + `)` }

// ddl is a body whose statement makes it unread.
func ddl(setup, body, statement string) bodyCase {
	return bodyCase{setup: setup + plpgsqlBody(`BEGIN `+body+` END`), why: "has the statement " + statement}
}

// What a body does that isn't plain counts as a write of every table without a wall.
func TestBodiesThatAreNotPlain(t *testing.T) {
	const parted = `CREATE TABLE whole (LIKE orders) PARTITION BY LIST (id); CREATE TABLE lf (LIKE orders); CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON lf FOR EACH ROW EXECUTE FUNCTION badt();`
	const lf = `CREATE TABLE lf (id bigint, v text); INSERT INTO lf VALUES (1); CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON lf FOR EACH ROW EXECUTE FUNCTION badt(); CREATE TABLE above (id bigint, v text); CREATE TABLE parent (id bigint PRIMARY KEY); INSERT INTO parent VALUES (1);`
	trigger := func(on, body, args string) string {
		return `CREATE TABLE ` + on + ` (t text); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ ` + body + ` $f$; CREATE TRIGGER t AFTER INSERT OR UPDATE ON ` + on + ` FOR EACH ROW EXECUTE FUNCTION f(` + args + `)`
	}
	g := func(parameters, body, use string) bodyCase {
		return bodyCase{setup: `CREATE FUNCTION f(` + parameters + `) RETURNS void LANGUAGE plpgsql AS $f$ ` + body + ` $f$`, use: use}
	}
	requireBodiesRefused(t, bodiesSchema, map[string]bodyCase{
		// structure
		"LIKE, defaults":        {setup: `CREATE TABLE d (i int, j int DEFAULT bad());` + plpgsqlBody(`BEGIN CREATE TEMP TABLE x (LIKE d INCLUDING DEFAULTS); INSERT INTO x (i) VALUES (1); END`), why: "makes a table with LIKE"},
		"a default":             {setup: plpgsqlBody(`BEGIN CREATE TEMP TABLE x (i int, j int DEFAULT bad()); INSERT INTO x (i) VALUES (1); END`), why: "makes a table with DEFAULT"},
		"ATTACH, orders":        ddl(parted, `ALTER TABLE whole ATTACH PARTITION orders FOR VALUES IN (1); UPDATE whole SET v = 'HIT'; ALTER TABLE whole DETACH PARTITION orders;`, "ALTER TABLE"),
		"ATTACH, a trigger":     ddl(parted, `ALTER TABLE whole ATTACH PARTITION lf FOR VALUES IN (1); INSERT INTO whole VALUES (1, 'x', 5);`, "ALTER TABLE"),
		"ATTACH, a parent's":    ddl(`CREATE TABLE p (id bigint) PARTITION BY LIST (id); CREATE TRIGGER t AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION badt(); CREATE TABLE p1 (id bigint);`, `ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1); INSERT INTO p1 VALUES (1);`, "ALTER TABLE"),
		"PARTITION OF":          {setup: `CREATE TABLE p (id bigint) PARTITION BY LIST (id); CREATE TRIGGER t AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION badt();` + plpgsqlBody(`BEGIN CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); INSERT INTO p1 VALUES (1); END`), why: "makes a table with PARTITION"},
		"INHERIT":               ddl(lf, `ALTER TABLE lf INHERIT above; UPDATE above SET v = 'x';`, "ALTER TABLE"),
		"REFERENCES":            ddl(lf, `ALTER TABLE lf ADD FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE; DELETE FROM parent;`, "ALTER TABLE"),
		"RENAME":                ddl(lf, `ALTER TABLE above RENAME TO old; ALTER TABLE lf RENAME TO above; INSERT INTO above VALUES (1);`, "ALTER TABLE"),
		"RENAME, a view":        ddl(`CREATE VIEW vo AS SELECT * FROM orders;`, `ALTER VIEW vo RENAME TO vx; UPDATE vx SET v = 'HIT';`, "ALTER VIEW"),
		"RENAME, a key's":       ddl(``, `ALTER TABLE par RENAME TO par2; DELETE FROM par2;`, "ALTER TABLE"),
		"a view":                ddl(``, `CREATE TEMP VIEW x AS SELECT * FROM orders; UPDATE x SET v = 'HIT';`, "CREATE VIEW"),
		"a rule":                ddl(``, `CREATE RULE r AS ON INSERT TO plain DO ALSO SELECT bad(); INSERT INTO plain VALUES (1);`, "CREATE RULE"),
		"a trigger":             ddl(`CREATE TABLE ord (id int);`, `CREATE TRIGGER t AFTER INSERT ON ord FOR EACH ROW EXECUTE FUNCTION byname(); INSERT INTO ord VALUES (1);`, "CREATE TRIGGER"),
		"a trigger's table":     ddl(`CREATE TABLE abc (id int); CREATE TRIGGER t AFTER INSERT ON abc FOR EACH ROW EXECUTE FUNCTION byname();`, `ALTER TABLE abc RENAME TO ord; INSERT INTO ord VALUES (1);`, "ALTER TABLE"),
		"an event trigger":      ddl(``, `ALTER EVENT TRIGGER e1 ENABLE; CREATE TABLE zz (a int);`, "ALTER EVENT"),
		"an event trigger, 2":   ddl(``, `CREATE EVENT TRIGGER e2 ON ddl_command_end EXECUTE FUNCTION bade(); CREATE TABLE zz (a int);`, "CREATE EVENT"),
		"a function":            ddl(``, `CREATE OR REPLACE FUNCTION ok() RETURNS int LANGUAGE plpgsql AS 'BEGIN EXECUTE ''UPDATE ord'' || ''ers SET v = 1''; RETURN 1; END'; PERFORM ok();`, "CREATE FUNCTION"),
		"a function's name":     ddl(`CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS 'SELECT bad()';`, `ALTER FUNCTION writes() RENAME TO written; PERFORM written();`, "ALTER FUNCTION"),
		"an operator family":    ddl(`CREATE OPERATOR FAMILY of1 USING btree; CREATE OPERATOR CLASS oc FOR TYPE int USING btree FAMILY of1 AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >; CREATE TABLE ix (i int); INSERT INTO ix VALUES (2), (1);`, `ALTER OPERATOR FAMILY of1 USING btree ADD FUNCTION 1 (int, int) bycmp(int, int); CREATE INDEX ON ix (i oc);`, "ALTER OPERATOR"),
		"a type":                ddl(``, `DROP TYPE en CASCADE;`, "DROP TYPE"),
		"a default that is put": ddl(``, `ALTER TABLE plain ALTER v SET DEFAULT bad(); INSERT INTO plain (id) VALUES (1);`, "ALTER TABLE"),
		"DO":                    ddl(``, `DO 'BEGIN UPDATE orders SET v = 1; END';`, "DO"),

		// SQL that is made
		"a name given": {use: `SELECT public.purge('orders')`}, "a text given": {use: `SELECT public.run('UPDATE orders SET v = 1')`}, "from a table": {use: `SELECT public.purge(t) FROM public.cfg`},
		"a caller's constant": {setup: `CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT purge('orders') $$`}, "a caller's record": g(`t text`, `<<b>> DECLARE g cfg; BEGIN SELECT * INTO g FROM cfg; PERFORM purge(g.t); END`, `SELECT @f('plain')`),
		"a caller's column": {setup: "CREATE FUNCTION f(t text) RETURNS void LANGUAGE plpgsql SET plpgsql.variable_conflict = 'use_column' AS $$ BEGIN PERFORM purge(t) FROM cfg; END $$", use: `SELECT @f('plain')`},
		"a catalog":         makesText(`r record;`, update(`(SELECT relname FROM pg_class WHERE relname LIKE 'order_')`)), "a table": makesText(``, update(`(SELECT t FROM cfg)`)), "a text of a table": makesText(``, `(SELECT q FROM cfg)`), "a result": makesText(``, `'UPDATE ' || name_of() || ' SET v = 1'`),
		"pieces": makesText(``, `'UPDATE or' || 'ders SET v = 1'`), "a variable": makesText(`q text := 'UPDATE orders SET v = 1';`, `q`), "brackets": {setup: plpgsqlBody(`BEGIN EXECUTE ('UPDATE orders SET v = 1'); END`), why: `writes table "orders"`}, "escapes": makesText(``, `E'UPDATE \x6frders SET v = 1'`), "unicode": makesText(``, `U&'UPDATE \006frders SET v = 1'`),
		"char(n)": makesText(``, update(`'ordersXX'::char(6)`)), "regclass": makesText(``, `format('UPDATE %s SET v = 1', ('public.ord' || 'ers')::regclass)`), "trim": makesText(``, update(`trim(' ord' || 'ers ')`)), "an array": {setup: plpgsqlBody(`DECLARE n text; BEGIN FOREACH n IN ARRAY ('{ord\ers}')::text[] LOOP EXECUTE ` + update(`n`) + `; END LOOP; END`)},
		"md5 of its own": {setup: `CREATE FUNCTION md5(int) RETURNS text LANGUAGE sql AS 'SELECT q FROM cfg';` + plpgsqlBody(`BEGIN EXECUTE md5(1); END`)}, "|| of its own": {setup: `CREATE FUNCTION cat(text, int) RETURNS text LANGUAGE sql AS 'SELECT q FROM cfg'; CREATE OPERATOR || (FUNCTION = cat, LEFTARG = text, RIGHTARG = int);` + plpgsqlBody(`BEGIN EXECUTE 'SELECT '::text || 1; END`)},
		"SET": {setup: `CREATE TABLE own (t text); INSERT INTO own VALUES ('x; UPDATE public.orders SET v = ''HIT''');` + plpgsqlBody(`DECLARE x text; BEGIN SELECT t INTO x FROM own; EXECUTE 'SET app.tenant = ' || x; END`)},
		"FOR": {setup: plpgsqlBody(`DECLARE x record; q text := 'UPDATE orders SET v = 1 RETURNING 1'; BEGIN FOR x IN EXECUTE q LOOP NULL; END LOOP; END`)}, "RETURN QUERY": {setup: `CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ DECLARE q text := 'UPDATE orders SET v = 1 RETURNING 1'; BEGIN RETURN QUERY EXECUTE q; END $$`}, "OPEN": {setup: plpgsqlBody(`DECLARE c refcursor; q text := 'SELECT bad()'; x int; BEGIN OPEN c FOR EXECUTE q; FETCH c INTO x; END`)},
		"a constant's DO": {setup: plpgsqlBody(`BEGIN EXECUTE 'DO $d$ BEGIN UPDATE orders SET v = 1; END $d$'; END`), why: "has the statement DO"}, "EXPLAIN": {setup: plpgsqlBody(`DECLARE x record; BEGIN FOR x IN EXPLAIN (ANALYZE) UPDATE orders SET v = (1) LOOP NULL; END LOOP; END`), why: "goes through EXPLAIN"},
		"$1": g(`t text`, `BEGIN t := 'ord' || 'ers'; EXECUTE 'UPDATE ' || $1 || ' SET v = 1'; END`, `SELECT @f('plain')`), "an alias": g(`t text`, `DECLARE a ALIAS FOR $1; BEGIN a := 'orders'; EXECUTE 'UPDATE ' || t || ' SET v = 1'; END`, `SELECT @f('plain')`),
		"a cursor's parameter": g(`q text`, `DECLARE c CURSOR (q text) FOR SELECT run(q); x int; BEGIN OPEN c('UPDATE ord' || 'ers SET v = 1'); FETCH c INTO x; END`, `SELECT @f('SELECT 1')`), "an array given": g(`c text[]`, `DECLARE n text; BEGIN FOREACH n IN ARRAY c LOOP EXECUTE `+update(`n`)+`; END LOOP; END`, `SELECT @f('{ord\ers}')`),
		"a default of an argument": g(`c text DEFAULT 'ord' || 'ers'`, `BEGIN EXECUTE `+update(`c`)+`; END`, `SELECT @f()`), "a setting": g(`c text DEFAULT current_setting('app.t')`, `BEGIN EXECUTE `+update(`c`)+`; END`, `SELECT @f()`), "a row's field": {setup: `CREATE FUNCTION f(c cfg) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE c.q; END $$`, use: `SELECT @f(c) FROM public.cfg c`},
		"a variable merge": {setup: plpgsqlBody(`DECLARE n text := 'plain'; merge CURSOR FOR SELECT t FROM cfg; BEGIN OPEN merge; FETCH merge INTO n; EXECUTE ` + update(`n`) + `; END`), why: `called "merge"`}, "a variable insert": {setup: plpgsqlBody(`DECLARE n text := 'plain'; insert text := 'SELECT t FROM cfg'; BEGIN EXECUTE insert INTO n; EXECUTE ` + update(`n`) + `; END`), why: `called "insert"`},
		"scs off": {setup: `CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql SET standard_conforming_strings = off AS $$ BEGIN EXECUTE 'UPDATE \157rders SET v = 1'; END $$`, why: "sets standard_conforming_strings"}, "scs off, a caller's": {setup: `CREATE FUNCTION h() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE \157rders SET v = 1'; END $$; CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql SET standard_conforming_strings = off AS $$ BEGIN PERFORM h(); END $$`, why: "standard_conforming_strings"},
		"query_to_xml": {setup: `CREATE FUNCTION f() RETURNS xml LANGUAGE sql AS $$ SELECT query_to_xml('SELECT bad()', true, true, '') $$`, why: "calls query_to_xml"}, "schema_to_xml": {setup: `CREATE VIEW ww AS SELECT bad() AS b; CREATE FUNCTION f() RETURNS xml LANGUAGE plpgsql AS $$ BEGIN RETURN schema_to_xml('` + "public" + `', true, true, (SELECT b::text FROM ww)); END $$`, why: "calls schema_to_xml"}, "ts_stat": {setup: `CREATE FUNCTION v() RETURNS tsvector LANGUAGE sql AS 'SELECT bad()::text::tsvector'; CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM ts_stat('SELECT ' || chr(118) || '()') $$`, why: "calls ts_stat"},

		// what runs such a body
		"a procedure": {setup: `CREATE PROCEDURE p(t text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE ` + update(`t`) + `; END $$`, use: `CALL @p('orders')`}, "DO, a call": {setup: plpgsqlBody(`BEGIN PERFORM run('UPDATE orders SET v = 1'); END`), use: `SELECT 1 FROM @f()`},
		"a default that calls": {setup: `CREATE TABLE d (i int, j int DEFAULT run('UPDATE orders SET v = 1'))`, use: `INSERT INTO @d (i) VALUES (1)`}, "a check": {setup: `CREATE TABLE d (i int CHECK (run('UPDATE orders SET v = 1') = 0))`, use: `INSERT INTO @d VALUES (1)`}, "a view that calls": {setup: `CREATE VIEW vv AS SELECT run('UPDATE orders SET v = 1')`, use: `SELECT * FROM @vv`},
		"a rule that calls": {setup: `CREATE TABLE ruled (t text); CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT purge(NEW.t)`, use: `INSERT INTO @ruled VALUES ('orders')`}, "a condition": {setup: `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TABLE cond (i int); CREATE TRIGGER t AFTER INSERT ON cond FOR EACH ROW WHEN (run('UPDATE orders SET v = 1') = 0) EXECUTE FUNCTION f()`, use: `INSERT INTO @cond VALUES (1)`},
		"NEW": {setup: trigger(`fired`, `BEGIN EXECUTE `+update(`NEW.t`)+`; RETURN NEW; END`, ``), use: `INSERT INTO @fired VALUES ('orders')`}, "TG_ARGV": {setup: trigger(`fired_2`, `BEGIN EXECUTE `+update(`TG_ARGV[1]`)+`; RETURN NEW; END`, `'plain', 'orders'`), use: `INSERT INTO @fired_2 VALUES ('x')`}, "TG_TABLE_NAME": {setup: trigger(`ord`, `BEGIN EXECUTE `+update(`TG_TABLE_NAME || 'ers'`)+`; RETURN NEW; END`, ``), use: `INSERT INTO @ord VALUES ('x')`},
		"a trigger's call": {setup: trigger(`fired_3`, `BEGIN PERFORM purge('or' || TG_ARGV[0]); RETURN NEW; END`, `'ders'`), use: `INSERT INTO @fired_3 VALUES ('x')`}, "an aggregate": {setup: `CREATE FUNCTION step(int, text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN run($2); END $$; CREATE AGGREGATE runs(text) (SFUNC = step, STYPE = int, INITCOND = 0)`, use: `SELECT @runs(q) FROM public.cfg`},
	})
}

// Ordinary bodies are read, and pass unless what they name leads to orders.
func TestPlainBodies(t *testing.T) {
	body := func(b string) bodyCase {
		return bodyCase{setup: `CREATE FUNCTION f(t text DEFAULT 'plain', n int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS $f$ ` + b + ` $f$`}
	}
	trigger := func(b string) bodyCase {
		return bodyCase{setup: `CREATE TABLE fired (id int, v text, updated_at timestamptz); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ ` + b + ` $f$; CREATE TRIGGER t BEFORE INSERT OR UPDATE ON fired FOR EACH ROW EXECUTE FUNCTION f()`, use: `INSERT INTO @fired VALUES (1)`}
	}
	requireBodiesAllowed(t, bodiesSchema, map[string]bodyCase{
		"an upsert":       {setup: `CREATE TABLE up (id int PRIMARY KEY, n int); CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql SET search_path = c0, public AS $$ BEGIN INSERT INTO audit (id) VALUES (1) ON CONFLICT DO NOTHING; END $$`},
		"loops":           body(`DECLARE r record; k int := 0; BEGIN <<outer>> FOR r IN SELECT * FROM cfg LOOP INSERT INTO audit VALUES (1, r.t); CONTINUE outer WHEN k > 5; END LOOP; FOR i IN 1..2 LOOP k := k + i; END LOOP; WHILE k > 0 LOOP k := k - 1; END LOOP; LOOP EXIT; END LOOP; END`),
		"CASE":            body(`DECLARE k int; BEGIN k := CASE WHEN n = 1 THEN 2 ELSE CASE n WHEN 3 THEN 4 END END; CASE k WHEN 1 THEN DELETE FROM plain; WHEN 2 THEN UPDATE plain SET v = CASE WHEN id > 1 THEN 'x' ELSE 'y' END; ELSE NULL; END CASE; END`),
		"exceptions":      body(`DECLARE m text; BEGIN BEGIN INSERT INTO audit VALUES (1 / 0); EXCEPTION WHEN division_by_zero OR unique_violation THEN GET STACKED DIAGNOSTICS m = MESSAGE_TEXT; WHEN OTHERS THEN RAISE; END; RAISE NOTICE 'delete from orders: %', m; END`),
		"RETURN QUERY":    {setup: `CREATE FUNCTION f() RETURNS SETOF bigint LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT id FROM orders; RETURN QUERY EXECUTE 'SELECT id FROM plain WHERE v = $1' USING 'x'; RETURN NEXT 5; END $$`},
		"cursors":         body(`DECLARE c CURSOR (k text) FOR SELECT k; d refcursor; x text; BEGIN OPEN c('x'); FETCH c INTO x; CLOSE c; OPEN d FOR SELECT cfg.t FROM cfg; FETCH d INTO x; FOR r IN c('y') LOOP NULL; END LOOP; END`),
		"temporary":       body(`BEGIN CREATE TEMP TABLE IF NOT EXISTS seen (id int PRIMARY KEY, s text NOT NULL DEFAULT 'x') ON COMMIT DROP; INSERT INTO seen SELECT id FROM orders; CREATE INDEX ON seen (s); DROP TABLE seen; CREATE TEMP TABLE seen AS SELECT * FROM orders WHERE v LIKE 'o%'; DROP TABLE IF EXISTS seen; END`),
		"a constant":      body(`BEGIN EXECUTE 'UPDATE plain SET v = $1 WHERE id = $2' USING t, n; EXECUTE 'DELETE FROM audit; INSERT INTO audit VALUES (1, ''update orders set v'')'; END`),
		"arrays":          body(`DECLARE a int[] := '{1,2,3}'; r cfg; BEGIN a[1:2] := ARRAY[5, 6]; a[n] = 7; r.t := 'x'; IF a[1] = 7 THEN NULL; END IF; END`),
		"GET DIAGNOSTICS": body(`DECLARE k int; BEGIN UPDATE plain SET v = t; GET DIAGNOSTICS k = ROW_COUNT; IF NOT FOUND OR k > 5 THEN RETURN; END IF; END`),
		"comments":        body("-- EXECUTE q; ALTER TABLE orders\n BEGIN /* UPDATE orders SET v = 1; /* DROP TABLE orders */ */ NULL; -- DELETE FROM orders\n END"),
		"set_config":      body(`BEGIN PERFORM set_config('app.t', t, true), pg_notify('c', t), pg_advisory_xact_lock(5); SET LOCAL work_mem = '8MB'; END`),
		"names":           {setup: `CREATE FUNCTION f(comment text DEFAULT 'x', open int DEFAULT 1, close int DEFAULT 2) RETURNS void LANGUAGE plpgsql AS $$ BEGIN comment := 'y'; close := open; INSERT INTO audit VALUES (close, comment); END $$`},
		"a procedure":     {setup: `CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (1); COMMIT; END $$`, use: `CALL @p()`},
		"updated_at":      trigger(`BEGIN NEW.updated_at := now(); NEW.v = coalesce(NEW.v, 'x'); RETURN NEW; END;`),
		"an audit":        trigger(`BEGIN IF TG_OP = 'DELETE' THEN INSERT INTO public.audit VALUES (OLD.id, row_to_json(OLD)::text); RETURN OLD; END IF; INSERT INTO public.audit SELECT NEW.id, TG_TABLE_NAME || to_jsonb(NEW)::text; RETURN NEW; END`),
		"SQL":             {setup: `CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ UPDATE plain SET v = 'DELETE FROM orders'; SELECT count(*) FROM orders $$`},
		"atomic":          {setup: `CREATE FUNCTION f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC INSERT INTO public.audit VALUES (1, CASE WHEN true THEN 'x' END); SELECT count(*) FROM public.orders; END`},
		"WITH":            body(`BEGIN WITH d AS (DELETE FROM plain RETURNING *) INSERT INTO audit SELECT * FROM d; END`),
	})
}

// A trigger of the protected table itself may write it, by what names its table.
func TestOwnTableTexts(t *testing.T) {
	const insert = `INSERT INTO orders (id, v, last_token) VALUES (2, 'x', $1)`
	for name, runs := range map[string]string{
		"EXECUTE": `EXECUTE format('UPDATE %I SET v = ''HIT'', last_token = 0', TG_TABLE_NAME)`, "another": `PERFORM run('UPDATE ' || TG_RELID::regclass || ' SET last_token = 0')`,
	} {
		t.Run(name, func(t *testing.T) {
			db, plain := openBodies(t, textsSchema+`CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN `+runs+`; RETURN NULL; END $f$;
				CREATE TRIGGER t AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f()`, nil)
			_, err := db.ExecContext(tokenctx.With(t.Context(), 10), insert, tokenctx.Arg)
			requireRefused(t, err, rewrite.IndirectWrite)
			_, err = plain.Exec(t.Context(), insert, 10)
			require.NoError(t, err)
			var token int
			require.NoError(t, plain.QueryRow(t.Context(), `SELECT max(last_token) FROM orders`).Scan(&token))
			require.Zero(t, token, "the bypass is real")
		})
	}
}

// What belongs to no relation bars every statement, and a handle's own DO what runs such
// a body.
func TestUnreadBodiesThatNothingNames(t *testing.T) {
	db, plain := openBodies(t, textsSchema+`CREATE OPERATOR @@@@ (FUNCTION = run, LEFTARG = text, RIGHTARG = int)`, nil)
	_, err := db.ExecContext(t.Context(), `SELECT q @@@@ 1 FROM cfg`)
	requireRefused(t, err, rewrite.IndirectWrite)
	require.ErrorContains(t, err, "runs SQL that it makes")
	_, err = db.ExecContext(t.Context(), `DO $$ BEGIN PERFORM purge('orders'); END $$`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	_, err = plain.Exec(t.Context(), `SELECT q @@@@ 1 FROM cfg`)
	require.NoError(t, err)
	require.NotEqual(t, "(1,new,9)", ordersOf(t, plain))
}

// What is refused says which routine isn't read, why, and what to do.
func TestUnreadSaysWhatToDo(t *testing.T) {
	db, _ := openBodies(t, textsSchema+`CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT run(q) FROM cfg'; CREATE FUNCTION f_guarded() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT ' || 1; RETURN 1; END $$;
		CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM run(NEW.t); RETURN NEW; END $$; CREATE TRIGGER t AFTER INSERT ON queue FOR EACH ROW EXECUTE FUNCTION fired(); CREATE VIEW seen AS SELECT g()`, nil, driver.WithGuardedFunctions("f_guarded"))
	const remedy = `; put up the wall on that table, write run plainly, or, if it writes no protected table, allow it: SELECT fencing.allow_function('public.run(text,integer)', 'why'), or driver.WithGuardedFunctions("public.run")`
	for use, says := range map[string]string{
		`SELECT run('x')`:                `function "run" may write protected table "orders": it runs SQL that it makes (EXECUTE of what is no constant)` + remedy,
		`SELECT g()`:                     `function "g" may write protected table "orders": public.run(text,integer), which it calls, runs SQL that it makes (EXECUTE of what is no constant)` + remedy,
		`INSERT INTO queue VALUES ('x')`: `INSERT on "queue" runs a trigger, rule or default that may write protected table "orders": public.run(text,integer), which it calls, runs SQL`,
		`SELECT * FROM seen`:             `whatever uses "seen" may write protected table "orders": its query, a policy, an index or the like calls public.run(text,integer), which runs SQL`,
	} {
		_, err := db.ExecContext(t.Context(), use)
		require.ErrorContains(t, err, says, use)
	}
	_, err := db.ExecContext(t.Context(), `SELECT f_guarded()`)
	require.NoError(t, err)
}

// keywords are names that a function may have without quotes, and by which a reader of
// its caller's body tells what a statement does.
var keywords = []string{"insert", "update", "delete", "merge", "copy", "truncate", "refresh", "alter", "drop", "rename", "import", "partition",
	"inherits", "trigger", "rule", "policy", "execute", "prepare", "move", "set", "reset", "begin", "call", "view", "sequence", "attach", "of"}

// A function that a body calls is followed whatever its name is.
func TestCallsOfFunctionsNamedLikeKeywords(t *testing.T) {
	cases := make(map[string]bodyCase)
	for _, name := range keywords {
		setup := `CREATE FUNCTION ` + name + `() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN 1; END $$;`
		cases[name] = bodyCase{setup: setup + `DO $do$ BEGIN EXECUTE format($x$ CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $f$ DECLARE x int; BEGIN x := %I.` + name + `(); RETURN x; END $f$ $x$, current_schema()); END $do$`, why: `writes table "orders"`}
		cases[name+", fired"] = bodyCase{setup: setup + `CREATE TABLE fired (v text); DO $do$ BEGIN EXECUTE format($x$ CREATE FUNCTION ff() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM %I.` + name + `(); RETURN NEW; END $f$ $x$, current_schema()); END $do$; CREATE TRIGGER t AFTER INSERT ON fired FOR EACH ROW EXECUTE FUNCTION ff()`,
			use: `INSERT INTO @fired VALUES ('x')`, why: "runs a trigger or rule that writes"}
	}
	requireBodiesRefused(t, textsSchema, cases)
}
