package driver_test

import "testing"

// What PostgreSQL takes for one variable is one, and what it takes for another is not.
func TestBodiesWithNamesOfVariables(t *testing.T) {
	g := func(parameter, body string) string {
		return `CREATE FUNCTION g(` + parameter + `) RETURNS void LANGUAGE plpgsql AS $$ ` + body + ` $$`
	}
	requireBodiesRefused(t, "", map[string]bodyCase{
		"$1":               {g(`t text`, `BEGIN t := 'ord' || 'ers'; EXECUTE 'UPDATE ' || $1 || ' SET v = ''HIT'''; END`), `SELECT g('plain')`},
		"$1 is set":        {g(`t text`, `BEGIN $1 := 'ord' || 'ers'; EXECUTE 'UPDATE ' || t || ' SET v = ''HIT'''; END`), `SELECT g('plain')`},
		"$1, INTO":         {g(`t text`, `BEGIN SELECT cfg.t INTO $1 FROM cfg; EXECUTE 'UPDATE ' || g.t || ' SET v = ''HIT'''; END`), `SELECT g('plain')`},
		"an alias":         {g(`t text`, `DECLARE a ALIAS FOR $1; BEGIN a := 'ord' || 'ers'; EXECUTE 'UPDATE ' || t || ' SET v = ''HIT'''; END`), `SELECT g('plain')`},
		"two aliases":      {g(`text`, `DECLARE a ALIAS FOR $1; b ALIAS FOR $1; BEGIN SELECT t INTO a FROM cfg; EXECUTE 'UPDATE ' || b || ' SET v = ''HIT'''; END`), `SELECT g('plain')`},
		"a cursor's":       {g(`q text`, `DECLARE c CURSOR (q text) FOR SELECT run(q); x int; BEGIN OPEN c('UPDATE ord' || 'ers SET v = 1'); FETCH c INTO x; END`), `SELECT g('SELECT 1')`},
		"a cursor's, 2":    {plpgsqlBody(`DECLARE q text := 'SELECT 1'; x int; BEGIN DECLARE c NO SCROLL CURSOR (n int, q text) FOR SELECT run(q); BEGIN OPEN c(q := 'UPDATE ord' || 'ers SET v = 1', n := 1); FETCH c INTO x; END; END`), ``},
		"a record":         {g(`t text`, `<<b>> DECLARE g cfg; BEGIN SELECT * INTO g FROM cfg; EXECUTE format('UPDATE %I SET v = ''HIT''', g.t); END`), `SELECT g('plain')`},
		"a loop's record":  {g(`t text`, `<<b>> DECLARE g record; BEGIN FOR g IN SELECT * FROM cfg LOOP EXECUTE format('UPDATE %I SET v = ''HIT''', g.t); END LOOP; END`), `SELECT g('plain')`},
		"a FROM item":      {g(`x text`, `BEGIN PERFORM purge(g.t) FROM cfg g; END`), `SELECT g('plain')`},
		"a FROM item, too": {`CREATE FUNCTION g(t text) RETURNS void LANGUAGE sql AS $$ SELECT purge(g.t) FROM cfg AS g $$`, `SELECT g('plain')`},
	})
	requireBodiesAllowed(t, "", map[string]bodyCase{
		"$1":       {g(`t text`, `BEGIN EXECUTE 'UPDATE ' || $1 || ' SET v = 1'; END`), `SELECT g('plain')`},
		"an alias": {g(`text`, `DECLARE a ALIAS FOR $1; BEGIN EXECUTE format('UPDATE %I SET v = 1', a); END`), `SELECT g('plain')`},
		"its own":  {g(`t text`, `BEGIN EXECUTE format('UPDATE %I SET v = 1', g.t); END`), `SELECT g('plain')`},
		"a cursor": {g(`t text`, `DECLARE c CURSOR (k text) FOR SELECT k; BEGIN OPEN c('x'); CLOSE c; EXECUTE format('UPDATE %I SET v = 1', t); END`), `SELECT g('plain')`},
	})
}
