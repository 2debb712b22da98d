package reach

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// attackSchema is what closureAttacks share; v and w of orders follow other
// tables.
const attackSchema = `
CREATE TABLE area (id int PRIMARY KEY, region text UNIQUE, "Name" text UNIQUE, n text, b bool);
CREATE TABLE orders (id bigint PRIMARY KEY, v text REFERENCES area (region) ON UPDATE CASCADE, w text REFERENCES area ("Name") ON UPDATE CASCADE, last_token bigint NOT NULL DEFAULT 0);
CREATE TABLE plain (id bigint PRIMARY KEY, v text);
CREATE FUNCTION touch(b bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET v = 'x' WHERE id = 1; RETURN b; END $$;
CREATE FUNCTION itouch(b bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM touch(b); RETURN b; END $$;
CREATE FUNCTION tt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET v = 'x'; RETURN NEW; END $$;
CREATE FUNCTION nop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
`

// body makes a function f with that body.
func body(language, code string) string {
	return "CREATE FUNCTION f() RETURNS void LANGUAGE " + language + " AS $body$" + code + "$body$"
}

var closureAttacks = map[string]struct {
	setup        string
	refuse, pass []string
}{
	"trigger condition": {`CREATE TRIGGER t BEFORE UPDATE ON plain FOR EACH ROW WHEN (touch(NEW.id) > 0) EXECUTE FUNCTION nop()`,
		[]string{`UPDATE plain SET v = 'z'`}, []string{`INSERT INTO plain VALUES (2)`, `DELETE FROM plain`}},
	"rule condition": {`CREATE TABLE lg (i bigint); CREATE RULE r AS ON INSERT TO lg WHERE touch(NEW.i) > 0 DO ALSO NOTHING; CREATE RULE r AS ON UPDATE TO plain WHERE touch(NEW.id) > 0 DO ALSO INSERT INTO lg VALUES (1)`,
		[]string{`INSERT INTO lg VALUES (1)`, `UPDATE plain SET v = 'q'`}, []string{`DELETE FROM lg`, `INSERT INTO plain VALUES (2)`}},
	"rule that alone names the table": {`CREATE TABLE ruled (i bigint); CREATE RULE r AS ON DELETE TO ruled DO ALSO UPDATE orders SET v = 'x'; CREATE VIEW rv AS SELECT * FROM ruled;
		DROP FUNCTION touch CASCADE; DROP FUNCTION itouch CASCADE; DROP FUNCTION tt CASCADE;` + body("sql", `DELETE FROM rv`), []string{`SELECT f()`, `DELETE FROM ruled`}, []string{`INSERT INTO ruled VALUES (1)`}},
	"partition key": {`CREATE TABLE pk (id bigint) PARTITION BY RANGE ((itouch(id)))`, []string{`INSERT INTO pk VALUES (1)`}, nil},
	"system schema": {`CREATE FUNCTION information_schema.f() RETURNS void LANGUAGE sql AS 'UPDATE public.orders SET v = 1'`, []string{`SELECT information_schema.f()`}, nil},

	"IS DISTINCT FROM":    {body("sql", `UPDATE area SET b = n IS DISTINCT FROM 'x', region = 'H'`), []string{`SELECT f()`}, nil},
	"escape string":       {body("sql", `UPDATE area SET n = E'it\'s', region = 'H'`), []string{`SELECT f()`}, nil},
	"dollar quotes":       {body("sql", `UPDATE area SET n = $x$it's$x$, region = 'H'`), []string{`SELECT f()`}, nil},
	"semicolon in string": {body("sql", `INSERT INTO area VALUES (1, 'x', 'a;b') ON CONFLICT (id) DO UPDATE SET region = 'H'`), []string{`SELECT f()`}, nil},
	"quoted column":       {body("sql", `UPDATE area SET "Name" = 'H'`), []string{`SELECT f()`, `UPDATE area SET "Name" = 'x'`}, nil},
	"other columns":       {body("sql", `UPDATE area SET b = n IS NOT DISTINCT FROM E'region''s', n = 'x; region' WHERE region = 'x'`), nil, []string{`SELECT f()`, `UPDATE area SET n = 'x'`}},
	"dynamic cascade":     {body("plpgsql", `BEGIN EXECUTE format('UPDATE %I SET region = %L', 'area', 1); END`), []string{`SELECT f()`}, nil},
	"dynamic, referenced": {
		`CREATE TABLE ref (id int PRIMARY KEY); ALTER TABLE orders ADD r int REFERENCES ref; ` + body("plpgsql", `BEGIN EXECUTE 'DELETE FROM ref'; END`), nil,
		[]string{`SELECT f()`},
	},
	"unicode name":            {`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("sql", `UPDATE U&"\006frders" SET v = 'x'`), []string{`SELECT f()`}, nil},
	"unicode name, escape":    {body("sql", `UPDATE U&"!006frders" UESCAPE '!' SET v = 'x'`), []string{`SELECT f()`}, nil},
	"escapes in dynamic":      {`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("plpgsql", `BEGIN EXECUTE E'UPDATE\norder\x73 SET v = 1'; END`), []string{`SELECT f()`}, nil},
	"comment to a CR":         {body("sql", "SELECT 1; -- c\r UPDATE orders SET v = 'x'"), []string{`SELECT f()`}, nil},
	"comment to a CR, quoted": {body("plpgsql", "BEGIN EXECUTE 'SELECT 1 -- c\r; UPDATE orders SET v = 1'; END"), []string{`SELECT f()`}, nil},
	"escape behind a comment": {`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("sql", `UPDATE U&"!006frders" /* a /* b */ */ UESCAPE -- c
		'!' SET v = 'x'`), []string{`SELECT f()`}, nil},
	"backslash in string": {body("plpgsql", `DECLARE e text := '\'; BEGIN UPDATE orders SET v = 'x'; e := e '\'; END`), []string{`SELECT f()`}, nil},

	"string continued": {
		`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("plpgsql", "BEGIN EXECUTE 'UPD'\n\t'ATE ord' -- it's\n\n'ers SET v = 1'; END"),
		[]string{`SELECT f()`}, nil,
	},
	"escape string continued": {`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("plpgsql", "BEGIN EXECUTE E'UPDATE ord'\n'e\\x72s SET v = 1'; END"), []string{`SELECT f()`}, nil},
	"unicode string continued": {
		`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("plpgsql", "BEGIN EXECUTE U&'UPDATE ord'\n'!0065rs SET v = 1' UESCAPE '!'; END"),
		[]string{`SELECT f()`}, nil,
	},
	"string continued in a string": {
		`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("plpgsql", "BEGIN EXECUTE 'DO ''BEGIN UPDATE ord''\n''ers SET v = 1; END'''; END"),
		[]string{`SELECT f()`}, nil,
	},
	"string continued, another": {`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; ` + body("plpgsql", "BEGIN EXECUTE 'UPDATE pl'\n'ain SET v = 1'; END"), nil, []string{`SELECT f()`}},

	"like operators": {body("sql", `SELECT 'a' !~~ 'b' AND ~ 1 > 2`), nil, []string{`SELECT f()`}},
	"row notation": {
		`CREATE FUNCTION prow(plain) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM touch(1); RETURN 1; END $$;` + body("sql", `SELECT p.prow FROM plain p`),
		[]string{`SELECT f()`}, nil,
	},
	"argument default": {`CREATE FUNCTION g(a bigint DEFAULT touch(1)) RETURNS bigint LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION i() RETURNS bigint LANGUAGE sql AS 'SELECT g()';
		CREATE FUNCTION j(t regclass DEFAULT 'orders') RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %s SET v = 1', t); END $$`,
		[]string{`SELECT g()`, `SELECT i()`, `SELECT j()`}, nil},
	"trigger arguments": {`DROP FUNCTION touch CASCADE; DROP FUNCTION tt CASCADE; CREATE TABLE other (id int); CREATE FUNCTION gen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = 1', TG_ARGV[1]); RETURN NEW; END $$;
		CREATE FUNCTION run(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = 1', t); END $$; CREATE FUNCTION passes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM run(TG_ARGV[0]); RETURN NEW; END $$;
		CREATE TRIGGER p AFTER DELETE ON plain FOR EACH ROW EXECUTE FUNCTION passes('orders'); CREATE TRIGGER n AFTER INSERT ON plain FOR EACH ROW EXECUTE FUNCTION nop('orders');
		CREATE TRIGGER g AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION gen('a\b', 'orders'); CREATE TRIGGER g AFTER UPDATE ON other FOR EACH ROW EXECUTE FUNCTION gen('x', 'plain2')`,
		[]string{`UPDATE plain SET v = 'x'`, `DELETE FROM plain`, `UPDATE other SET id = 5`}, []string{`INSERT INTO plain VALUES (1)`}},

	"views that call": {`CREATE VIEW called AS SELECT touch(id) AS t, id FROM plain; CREATE VIEW filtered AS SELECT * FROM plain WHERE touch(id) > 0; CREATE VIEW above AS SELECT * FROM filtered;
		CREATE MATERIALIZED VIEW mv AS SELECT touch(id) FROM plain WITH NO DATA; CREATE MATERIALIZED VIEW mv2 AS SELECT t FROM called WITH NO DATA; CREATE MATERIALIZED VIEW mv3 AS SELECT id FROM orders;` + body("plpgsql", `BEGIN REFRESH MATERIALIZED VIEW CONCURRENTLY mv2; END`),
		[]string{`REFRESH MATERIALIZED VIEW mv`, `REFRESH MATERIALIZED VIEW mv2`, `SELECT * FROM called`, `UPDATE filtered SET v = '1'`, `DELETE FROM above`, `INSERT INTO filtered VALUES (5, 'x')`, `SELECT f()`},
		[]string{`REFRESH MATERIALIZED VIEW mv3`, `UPDATE plain SET v = 'x'`}},
	"disabled trigger and rule": {`CREATE TRIGGER tt AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION tt(); ALTER TABLE plain DISABLE TRIGGER tt; CREATE TABLE ruled (i bigint);
		CREATE RULE r AS ON DELETE TO ruled DO ALSO UPDATE orders SET v = 'x'; ALTER TABLE ruled DISABLE RULE r; CREATE TABLE other (i bigint); CREATE TRIGGER n BEFORE UPDATE ON other FOR EACH ROW EXECUTE FUNCTION nop()`,
		[]string{`ALTER TABLE plain ENABLE TRIGGER tt`, `ALTER TABLE plain ENABLE TRIGGER ALL`, `ALTER TABLE ruled ENABLE RULE r`},
		[]string{`UPDATE plain SET v = 'x'`, `DELETE FROM ruled`, `ALTER TABLE other ENABLE TRIGGER n`}},
	"like": {`CREATE TABLE d (id bigint DEFAULT touch(1), x int); CREATE TABLE queue (i int); CREATE TRIGGER tt AFTER UPDATE ON queue FOR EACH ROW EXECUTE FUNCTION tt()`,
		[]string{`CREATE TEMP TABLE z (LIKE d INCLUDING ALL)`, `CREATE TABLE z (LIKE d INCLUDING DEFAULTS)`}, []string{`CREATE TABLE z (LIKE queue INCLUDING ALL)`, `CREATE TABLE z (LIKE plain INCLUDING ALL)`}},
	"event trigger": {`CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET v = 'x'; END $$; CREATE EVENT TRIGGER e1 ON ddl_command_end EXECUTE FUNCTION et()`,
		[]string{`CREATE TABLE made (a int)`, `CREATE TEMP TABLE made AS SELECT 1`, `SELECT 1 INTO made`, `DROP TABLE plain`}, []string{`SELECT 1`, `INSERT INTO plain VALUES (1)`, `SET application_name = 'x'`, `BEGIN`}},
	"other event trigger": {
		`CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO plain VALUES (1); END $$; CREATE EVENT TRIGGER e1 ON ddl_command_end EXECUTE FUNCTION et()`,
		nil, []string{`CREATE TABLE made (a int)`},
	},
	"off the path": {`CREATE SCHEMA bill; CREATE FUNCTION bill.log(t text) RETURNS void LANGUAGE sql AS 'UPDATE public.orders SET v = 1'`,
		[]string{`SELECT bill.log('x')`, `SELECT log('x')`, `SELECT log(10.0)`}, []string{`SELECT pg_catalog.log(10.0)`}},
}

// Whatever the catalog shows beyond tables and functions is followed.
func TestClosureAttacks(t *testing.T) {
	tables := closureTables()[:1]
	for name, c := range closureAttacks {
		t.Run(name, func(t *testing.T) {
			p := policyFrom(t, readingOf(t, attackSchema+c.setup, tables), tables)
			for _, sql := range c.refuse {
				require.ErrorIs(t, p.Plan(sql).Refusal(), check.ErrRefused, sql)
			}
			for _, sql := range c.pass {
				require.NoError(t, p.Plan(sql).Refusal(), sql)
			}
		})
	}
}
