package driver_test

import (
	"testing"
)

// shadowSchema has orders in its first schema, and what could be put in its
// place.
const shadowSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, code text, n int, last_token bigint NOT NULL DEFAULT 0);
INSERT INTO orders VALUES (1, 'ABC', 9, 9);
CREATE SCHEMA app; CREATE SCHEMA other;
CREATE TABLE staged AS SELECT id, code, 0 AS n, 0::bigint AS last_token FROM orders;
CREATE TABLE parted (LIKE staged) PARTITION BY LIST (n);
CREATE TABLE fires (i int); INSERT INTO fires VALUES (1);
`

// emptiesOrders are functions that write orders.
const emptiesOrders = `CREATE FUNCTION empties() RETURNS int LANGUAGE sql AS 'DELETE FROM orders; SELECT 1'; CREATE FUNCTION steps(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT empties()'; `

// with puts more before the setup.
func (b bypass) with(setup string) bypass {
	b.setup = setup + b.setup
	return b
}

// staleWrite is the write that then goes elsewhere; the name is looked up on a
// path that has the schema app first.
const staleWrite = `SET LOCAL search_path = pg_temp, app, public; UPDATE orders SET n = 7, last_token = 7 WHERE id = 1 AND last_token <= 7`

// The stale write has found a row of its token, and it isn't that of orders.
const shadowed = `SELECT last_token = 7 AND n = 7 AND NOT EXISTS (SELECT FROM public.orders WHERE n = 7) FROM orders`

// What a call leaves behind under the name of a protected table would take the
// writes that follow.
func TestCallsThatShadow(t *testing.T) {
	function := func(language, body string) string {
		return "CREATE FUNCTION f() RETURNS void LANGUAGE " + language + " AS $f$" + body + "$f$; "
	}
	pl := func(body string) string { return function("plpgsql", "BEGIN "+body+"; END") }
	const copied = ` AS SELECT * FROM staged`
	made := func(setup string, refused ...string) bypass {
		if refused == nil {
			refused = []string{`SELECT f()`}
		}
		return bypass{setup: setup, refused: refused, after: staleWrite, harm: shadowed}
	}
	leads := func(body, after string) bypass {
		return bypass{setup: `CREATE TABLE customers (id int PRIMARY KEY); INSERT INTO customers VALUES (1); ALTER TABLE orders ADD customer int DEFAULT 1 REFERENCES customers ON DELETE CASCADE;` + pl(body), refused: []string{`SELECT f()`}, after: after}
	}
	harmless := func(setup string) bypass { return bypass{setup: setup, passes: []string{`SELECT f()`}} }
	checkBypasses(t, shadowSchema, map[string]bypass{
		"temporary table":          made(pl(`CREATE TEMP TABLE orders` + copied)),
		"temporary table in SQL":   made(function("sql", `CREATE TEMP TABLE orders`+copied)),
		"temporary table, columns": made(pl(`CREATE TEMPORARY TABLE IF NOT EXISTS "orders" (LIKE staged); INSERT INTO pg_temp.orders SELECT * FROM staged`)),
		"in pg_temp":               made(pl(`CREATE TABLE pg_temp.orders` + copied)),
		"dropped at the end":       made(pl(`CREATE LOCAL TEMP TABLE orders ON COMMIT DROP` + copied)),
		"table of another schema":  made(pl(`CREATE TABLE app.orders` + copied)),
		"unlogged":                 made(pl(`CREATE UNLOGGED TABLE app.orders` + copied)),
		"with the schema":          made(pl(`CREATE SCHEMA new CREATE TABLE orders (id bigint); DROP SCHEMA new CASCADE; CREATE TABLE app.orders` + copied)),
		"temporary view":           made(pl(`CREATE TEMP VIEW orders AS SELECT * FROM staged`)),
		"view, replaced":           made(pl(`CREATE OR REPLACE TEMPORARY VIEW orders AS SELECT * FROM staged`)),
		"view of another schema":   made(pl(`CREATE VIEW app.orders AS SELECT * FROM staged`)),
		"SELECT INTO":              made(function("sql", `SELECT * INTO TEMP orders FROM staged`)),
		"SELECT INTO, unlogged":    made(function("sql", `SELECT * INTO UNLOGGED TABLE app.orders FROM staged`)),
		"SELECT INTO, plain":       made(function("sql", `SELECT s.* INTO app.orders FROM staged s`)),
		"renamed":                  made(pl(`CREATE TEMP TABLE mine` + copied + `; ALTER TABLE mine RENAME TO orders`)),
		"view, renamed":            made(pl(`CREATE VIEW app.mine AS SELECT * FROM staged; ALTER VIEW app.mine RENAME TO orders`)),
		"moved":                    made(`CREATE TABLE other.orders` + copied + `; ` + pl(`ALTER TABLE other.orders SET SCHEMA app`)),
		"view, moved":              made(`CREATE VIEW other.orders` + copied + `; ` + pl(`ALTER VIEW IF EXISTS other.orders SET SCHEMA app`)),
		"schema, renamed": {setup: `CREATE TABLE other.orders` + copied + `; ` + pl(`ALTER SCHEMA public RENAME TO former; ALTER SCHEMA other RENAME TO public`), refused: []string{`SELECT f()`},
			after: staleWrite, harm: `SELECT EXISTS (SELECT FROM public.orders WHERE n = 7) AND EXISTS (SELECT FROM former.orders WHERE n = 9)`},
		"partition":            made(pl(`CREATE TABLE app.orders PARTITION OF parted FOR VALUES IN (0, 7); INSERT INTO parted SELECT * FROM staged`)),
		"EXECUTE":              made(pl(`EXECUTE 'CREATE TEMP TABLE orders` + copied + `'`)),
		"EXECUTE, format":      made(pl(`EXECUTE format('CREATE TEMP TABLE %I` + copied + `', 'orders')`)),
		"EXECUTE, continued":   made(pl("EXECUTE 'CREATE TEMP TABLE ord'\n'ers" + copied + "'")),
		"nested":               made(pl(`CREATE TEMP TABLE orders`+copied)+`CREATE FUNCTION g() RETURNS void LANGUAGE sql AS 'SELECT f()'`, `SELECT g()`, `SELECT f()`),
		"procedure":            made(`CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE orders`+copied+`; END $$`, `CALL p()`),
		"trigger":              made(`CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE orders`+copied+`; RETURN NEW; END $$; CREATE TRIGGER t AFTER UPDATE ON fires FOR EACH ROW EXECUTE FUNCTION t()`, `UPDATE fires SET i = 2`),
		"default":              made(`CREATE FUNCTION d() RETURNS int LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE orders`+copied+`; RETURN 1; END $$; ALTER TABLE fires ADD j int; ALTER TABLE fires ALTER j SET DEFAULT d()`, `INSERT INTO fires VALUES (5)`),
		"rule":                 made(pl(`CREATE TEMP TABLE orders`+copied)+`CREATE RULE r AS ON UPDATE TO fires DO ALSO SELECT f()`, `UPDATE fires SET i = 3`),
		"DO":                   made(``, `DO $$ BEGIN CREATE TEMP TABLE orders AS SELECT * FROM staged; END $$`),
		"a view over it":       leads(`CREATE TEMP VIEW recent AS SELECT * FROM orders`, `UPDATE recent SET n = 99`),
		"a view over a parent": leads(`CREATE VIEW buyers AS SELECT * FROM customers`, `DELETE FROM buyers`),
		"a child of it": {
			setup: function("sql", `CREATE TABLE child () INHERITS (orders)`), refused: []string{`SELECT f()`}, after: `INSERT INTO child VALUES (2)`,
			harm: `SELECT EXISTS (SELECT FROM orders WHERE id = 2 AND last_token = 0)`,
		},
		"a partition of it": {setup: `DROP TABLE orders; CREATE TABLE orders (id bigint, code text, n int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id); CREATE TABLE first PARTITION OF orders FOR VALUES IN (1);` + function("sql", `CREATE TABLE second PARTITION OF orders FOR VALUES IN (2)`),
			refused: []string{`SELECT f()`}, after: `INSERT INTO second VALUES (2)`, harm: `SELECT EXISTS (SELECT FROM orders WHERE id = 2 AND last_token = 0)`},
		"a function, renamed": leads(`ALTER FUNCTION empties() RENAME TO harmless`, `SELECT harmless()`).with(emptiesOrders),
		"a function, moved":   leads(`ALTER ROUTINE empties() SET SCHEMA other`, `SELECT other.empties()`).with(emptiesOrders),
		"an aggregate of it":  leads(`CREATE AGGREGATE counted(int) (SFUNC = steps, STYPE = int, INITCOND = 0)`, `SELECT counted(1)`).with(emptiesOrders),
		"an operator of it":   leads(`CREATE OPERATOR @#@ (FUNCTION = steps, LEFTARG = int, RIGHTARG = int)`, `SELECT 1 @#@ 2`).with(emptiesOrders),
		"the schema of it": {
			setup:   `CREATE SCHEMA keeps; CREATE TABLE keeps.orders AS TABLE orders; ` + pl(`DROP SCHEMA public CASCADE; ALTER SCHEMA keeps RENAME TO public`),
			refused: []string{`SELECT f()`}, after: `UPDATE public.orders SET n = 7`,
		},
		"another name":              harmless(pl(`CREATE TEMP TABLE mine AS SELECT * FROM orders; CREATE INDEX ON mine (id)`)),
		"a variable":                harmless(function("plpgsql", `DECLARE orders bigint; BEGIN SELECT count(*) INTO orders FROM staged; RAISE NOTICE 'written into orders: %', orders; END`)),
		"a column, an index, words": harmless(pl(`CREATE TEMP TABLE t (orders int); CREATE INDEX ON t (orders); RAISE NOTICE 'no orders here'`)),
	})
}
