package driver_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// textsSchema has a protected table orders, and much that could name it.
const textsSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 'new', 9);
CREATE TABLE plain (id bigint, v text); CREATE TABLE audit (id bigint, v text); CREATE TABLE plain_audit (id bigint, v text); CREATE TABLE orders_audit (id bigint, v text);
CREATE TABLE cfg (t text, q text); INSERT INTO cfg VALUES ('orders', 'UPDATE orders SET v = ''HIT''');
CREATE TABLE queue (t text); CREATE TABLE queue_2 (t text);
CREATE FUNCTION name_of() RETURNS text LANGUAGE sql AS $$ SELECT 'or' || 'ders' $$;
CREATE FUNCTION purge(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', t); END $$;
CREATE FUNCTION run(q text, n int DEFAULT 0) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN n; END $$;
CREATE FUNCTION run_on(prefix text, t text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE q text := 'UPDATE '; BEGIN q := q || prefix || t; q := q || ' SET v = ''HIT'''; EXECUTE q; END $$;
CREATE FUNCTION run_two(t text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE u text := t; BEGIN PERFORM purge(u); END $$;
`

// untoldNames make the name of orders, or all of the text, in q. Each has its own
// declarations.
var untoldNames = map[string][2]string{
	"a catalog, FOR":         {`r record`, `FOR r IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'order_' LOOP q := format('UPDATE %I SET v = ''HIT''', r.tablename); END LOOP;`},
	"a catalog, INTO":        {`t name`, `SELECT relname INTO t FROM pg_class WHERE relname LIKE 'order_'; q := 'UPDATE ' || quote_ident(t) || ' SET v = ''HIT''';`},
	"a catalog, inline":      {``, `q := format('UPDATE %I SET v = ''HIT''', (SELECT relname FROM pg_class WHERE relname LIKE 'order_'));`},
	"information_schema":     {`t text`, `t := (SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'order_'); q := concat('UPDATE ', t, ' SET v = ''HIT''');`},
	"a regclass":             {`t regclass`, `SELECT oid INTO t FROM pg_class WHERE relname LIKE 'order_'; q := format('UPDATE %s SET v = ''HIT''', t::regclass);`},
	"a table":                {`n text`, `SELECT t INTO STRICT n FROM cfg; q := format('UPDATE %I SET v = ''HIT''', n);`},
	"a table, whole text":    {``, `q := (SELECT cfg.q FROM cfg);`},
	"a cursor":               {`c CURSOR FOR SELECT t FROM cfg; n text`, `OPEN c; FETCH c INTO n; CLOSE c; q := format('UPDATE %I SET v = ''HIT''', n);`},
	"a record":               {`r cfg`, `SELECT * INTO r FROM cfg; q := 'UPDATE ' || r.t || ' SET v = ''HIT''';`},
	"a row type":             {`r cfg%ROWTYPE`, `r.t := 'or' || chr(100) || 'ers'; q := 'UPDATE ' || r.t || ' SET v = ''HIT''';`},
	"a function's result":    {``, `q := 'UPDATE ' || name_of() || ' SET v = ''HIT''';`},
	"a variable of a result": {`n text := name_of()`, `q := format('UPDATE %s SET v = ''HIT''', n);`},
	"chr":                    {``, `q := 'UPDATE ' || chr(111) || 'rders SET v = ''HIT''';`},
	"convert_from":           {``, `q := convert_from('\x555044415445206f726465727320534554207620202020203d202748495427', 'UTF8');`},
	"replace":                {``, `q := format('UPDATE %I SET v = ''HIT''', replace('orXders', 'X', ''));`},
	"substr":                 {``, `q := substr('xxUPDATE ', 3) || substr('xorders SET v = ''HIT''', 2);`},
	"pieces":                 {``, `q := 'UPDATE or' || 'ders SET v = ''HIT''';`},
	"pieces, variables":      {`a text := 'UPDATE or'; b text := 'ders SET v = ''HIT'''`, `q := a || b;`},
	"pieces, format":         {``, `q := format('UPDATE %sders SET v = ''HIT''', 'or');`},
	"grown":                  {``, `q := 'UPDATE '; q := q || (SELECT t FROM cfg); q := q || ' SET v = ''HIT''';`},
	"grown of pieces":        {``, `q := 'UPDATE or'; IF false THEN q := q || 'x'; END IF; q := q || 'ders SET v = ''HIT''';`},
	"an array of a query":    {`a text[]; n text`, `a := ARRAY(SELECT t FROM cfg); FOREACH n IN ARRAY a LOOP q := format('UPDATE %I SET v = ''HIT''', n); END LOOP;`},
	"an array of constants":  {`n text`, `FOREACH n IN ARRAY '{plain,orders}'::text[] LOOP q := format('UPDATE %I SET v = ''HIT''', n); END LOOP;`},
	"a loop's variable":      {`i text := name_of()`, `FOR i IN 1..2 LOOP END LOOP; q := format('UPDATE %I SET v = ''HIT''', i);`},
	"a variable within":      {`k int`, `DECLARE k text := name_of(); BEGIN q := format('UPDATE %I SET v = ''HIT''', k); END;`},
	"a declared record":      {`r record; n text := 'plain'`, `FOR r IN SELECT t FROM cfg LOOP n := r.t; END LOOP; q := format('UPDATE %I SET v = ''HIT''', n);`},
	"EXECUTE INTO":           {`n text`, `EXECUTE 'SELECT t FROM cfg' INTO n; q := format('UPDATE %I SET v = ''HIT''', n);`},
	"string_agg":             {``, `SELECT string_agg(format('UPDATE %I SET v = ''HIT''', t), ';') INTO q FROM cfg;`},
	"a setting":              {``, `PERFORM set_config('app.t', 'or' || 'ders', true); q := 'UPDATE ' || current_setting('app.t') || ' SET v = ''HIT''';`},
	"a label":                {`q2 text`, `<<blk>> DECLARE n text; BEGIN blk.n := (SELECT t FROM cfg); q := format('UPDATE %I SET v = ''HIT''', n); END;`},
	"code in a literal":      {``, `q := 'DO ' || quote_literal(format('BEGIN UPDATE %I SET v = ''HIT''; END', (SELECT t FROM cfg)));`},
}

// textRuns run what is in q.
var textRuns = map[string]string{
	"EXECUTE":              `EXECUTE q;`,
	"RETURN QUERY EXECUTE": `RETURN QUERY EXECUTE q || ' RETURNING 1';`,
	"FOR IN EXECUTE":       `FOR x IN EXECUTE q || ' RETURNING 1' LOOP END LOOP;`,
	"EXECUTE INTO":         `EXECUTE q || ' RETURNING 1' INTO x;`,
	"EXECUTE DO":           `EXECUTE 'DO $d$ BEGIN ' || q || '; END $d$';`,
	"another function":     `PERFORM run(q);`,
	"named notation":       `PERFORM run(n => 1, q => q);`,
}

// textWays reach a function f() that runs a text.
var textWays = map[string]string{
	"call":           `SELECT f()`,
	"from":           `SELECT 1 FROM f()`,
	"trigger":        `INSERT INTO queue VALUES ('x')`,
	"default":        `INSERT INTO defaulted (i) VALUES (1)`,
	"view":           `SELECT * FROM viewed`,
	"procedure":      `CALL p()`,
	"DO":             `DO $$ BEGIN PERFORM f(); END $$`,
	"another":        `SELECT g()`,
	"rule":           `INSERT INTO ruled VALUES (1)`,
	"a domain":       `SELECT 5::checked`,
	"an operator":    `SELECT 1 @@@@ 2`,
	"by a statement": `WITH x AS MATERIALIZED (SELECT f()) SELECT * FROM x`,
}

const textObjects = `
CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM f(); RETURN NEW; END $$; CREATE TRIGGER t AFTER INSERT ON queue FOR EACH ROW EXECUTE FUNCTION fired();
CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT count(*)::int FROM f()';
CREATE TABLE defaulted (i int, j int DEFAULT g()); CREATE VIEW viewed AS SELECT g(); CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN PERFORM f(); END $$;
CREATE TABLE ruled (i int); CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT g();
CREATE FUNCTION g_2(int, int) RETURNS int LANGUAGE sql AS 'SELECT g()'; CREATE OPERATOR @@@@ (FUNCTION = g_2, LEFTARG = int, RIGHTARG = int); CREATE DOMAIN checked AS int CHECK (g_2(VALUE, 1) >= 0);
`

// textFunction makes f() of a way to make a text and one to run it.
func textFunction(makes [2]string, runs string) string {
	declared := makes[0]
	if declared != "" {
		declared += "; "
	}
	return `CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $f$ DECLARE q text; x int; ` + declared + `BEGIN ` + makes[1] + ` ` + runs + ` END $f$;` + textObjects
}

func openTexts(t *testing.T, setup string, opts ...driver.Option) (*sql.DB, *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, textsSchema, setup)
	db, err := driver.Open(dsn, append(opts, driver.Protect("orders", rewrite.Lease))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close(context.Background()) })
	return db, plain
}

// requireTextRefused shows that a statement writes orders, and that it is refused.
func requireTextRefused(t *testing.T, db *sql.DB, plain *pgx.Conn, statement string, args ...any) {
	t.Helper()
	state := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}) (s string) {
		require.NoError(t, q.QueryRow(t.Context(), `SELECT string_agg(o::text, ',') FROM orders o`).Scan(&s))
		return s
	}
	_, err := db.ExecContext(t.Context(), statement, args...)
	var v *rewrite.Violation
	require.ErrorAs(t, err, &v, statement)
	require.Contains(t, []rewrite.Rule{rewrite.UnsafeFunction, rewrite.IndirectWrite, rewrite.HiddenCode}, v.Rule, statement)
	require.Equal(t, "(1,new,9)", state(plain))
	tx, err := plain.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	_, err = tx.Exec(t.Context(), statement, args...)
	require.NoError(t, err, statement)
	require.NotEqual(t, "(1,new,9)", state(tx), "the bypass is real: %s", statement)
}

// A function whose SQL names tables in a way that can't be told may write any.
func TestUntoldNames(t *testing.T) {
	for name, makes := range untoldNames {
		t.Run(name, func(t *testing.T) {
			db, plain := openTexts(t, textFunction(makes, textRuns["EXECUTE"]))
			for _, use := range textWays {
				requireTextRefused(t, db, plain, use)
			}
		})
	}
	for name, runs := range textRuns {
		t.Run(name, func(t *testing.T) {
			db, plain := openTexts(t, textFunction(untoldNames["a table"], runs))
			requireTextRefused(t, db, plain, `SELECT f()`)
			requireTextRefused(t, db, plain, `INSERT INTO queue VALUES ('x')`)
		})
	}
}

// What a function is given is followed: through variables and other functions, and
// from triggers, and where the catalog has it.
func TestGivenTexts(t *testing.T) {
	trigger := func(on, body, args string) string {
		return `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ ` + body + ` $f$; CREATE TRIGGER t AFTER INSERT OR UPDATE ON ` + on + ` FOR EACH ROW WHEN (pg_trigger_depth() < 1) EXECUTE FUNCTION f(` + args + `)`
	}
	const insert = `INSERT INTO queue VALUES ('orders')`
	for name, c := range map[string]struct {
		setup, use string
		args       []any
	}{
		"a literal":                 {``, `SELECT purge('orders')`, nil},
		"a literal, cast":           {``, `SELECT purge('orders'::text)`, nil},
		"a placeholder":             {``, `SELECT purge($1)`, []any{"orders"}},
		"a column":                  {``, `SELECT purge(t) FROM cfg`, nil},
		"an expression":             {``, `SELECT purge('or' || 'ders')`, nil},
		"a whole text":              {``, `SELECT run('UPDATE orders SET v = ''HIT''')`, nil},
		"a text that makes one":     {``, `SELECT run('DO $d$ BEGIN EXECUTE ''UPDATE or'' || ''ders SET v = 1''; END $d$')`, nil},
		"a text that calls":         {``, `SELECT run('SELECT purge(chr(111) || ''rders'')')`, nil},
		"a whole text, $1":          {``, `SELECT run($1)`, []any{`UPDATE orders SET v = 'HIT'`}},
		"a name in a piece":         {``, `SELECT run_on('or', 'ders')`, nil},
		"named notation":            {``, `SELECT run(n => 1, q => (SELECT q FROM cfg))`, nil},
		"through two":               {``, `SELECT run_two('orders')`, nil},
		"through two, $1":           {``, `SELECT run_two($1)`, []any{"orders"}},
		"CALL":                      {`CREATE PROCEDURE p(t text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', t); END $$`, `CALL p('orders')`, nil},
		"$1 in a body":              {`CREATE FUNCTION f(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE ' || $1 || ' SET v = 1'; END $$`, `SELECT f('orders')`, nil},
		"an alias":                  {`CREATE FUNCTION f(text) RETURNS void LANGUAGE plpgsql AS $$ DECLARE t ALIAS FOR $1; BEGIN EXECUTE 'UPDATE ' || t || ' SET v = 1'; END $$`, `SELECT f('orders')`, nil},
		"the function's own name":   {`CREATE FUNCTION f(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE ' || f.t || ' SET v = 1'; END $$`, `SELECT f('orders')`, nil},
		"OUT before":                {`CREATE FUNCTION f(OUT a int, t text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE ' || t || ' SET v = 1'; END $$`, `SELECT f('orders')`, nil},
		"VARIADIC":                  {`CREATE FUNCTION f(VARIADIC t text[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE ' || t[2] || ' SET v = 1'; END $$`, `SELECT f('plain', 'orders', 'plain')`, nil},
		"a caller's constant":       {`CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT purge('orders') $$`, `SELECT f()`, nil},
		"a caller's text":           {`CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT run('UPDATE orders SET v = 1') $$`, `SELECT f()`, nil},
		"a caller's variable":       {`CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ DECLARE n text := 'orders'; BEGIN PERFORM purge(n); END $$`, `SELECT f()`, nil},
		"a caller's column":         {`CREATE FUNCTION f(t text) RETURNS void LANGUAGE sql AS $$ SELECT purge(t) FROM cfg $$`, `SELECT f('plain')`, nil},
		"a caller's column, over":   {"CREATE FUNCTION f(t text) RETURNS void LANGUAGE plpgsql AS $$\n#variable_conflict use_column\nBEGIN PERFORM purge(t) FROM cfg; END $$", `SELECT f('plain')`, nil},
		"an atomic body":            {`CREATE FUNCTION f() RETURNS void LANGUAGE sql BEGIN ATOMIC SELECT purge('orders'); END`, `SELECT f()`, nil},
		"a default":                 {`CREATE TABLE d (i int, j int DEFAULT run('UPDATE orders SET v = 1'))`, `INSERT INTO d (i) VALUES (1)`, nil},
		"a check":                   {`CREATE TABLE d (i int CHECK (run('UPDATE orders SET v = 1') = 0))`, `INSERT INTO d VALUES (1)`, nil},
		"a view":                    {`CREATE VIEW d AS SELECT run('UPDATE orders SET v = 1')`, `SELECT * FROM d`, nil},
		"a rule":                    {`CREATE RULE r AS ON INSERT TO queue DO ALSO SELECT purge('orders')`, insert, nil},
		"a rule, NEW":               {`CREATE RULE r AS ON INSERT TO queue DO ALSO SELECT purge(NEW.t)`, insert, nil},
		"a condition":               {`CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER t AFTER INSERT ON queue FOR EACH ROW WHEN (run('UPDATE orders SET v = 1') = 0) EXECUTE FUNCTION f()`, insert, nil},
		"a parameter's default":     {`CREATE FUNCTION f(q text DEFAULT current_setting('app.q')) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; END $$; CREATE FUNCTION h() RETURNS void LANGUAGE sql AS $$ SELECT set_config('app.q', 'UPDATE ord' || 'ers SET v = 1', true); SELECT f() $$`, `SELECT h()`, nil},
		"an aggregate":              {`CREATE FUNCTION step(int, text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN run($2); END $$; CREATE AGGREGATE runs(text) (SFUNC = step, STYPE = int, INITCOND = 0)`, `SELECT runs(q) FROM cfg`, nil},
		"an operator":               {`CREATE OPERATOR @@@@ (FUNCTION = run, LEFTARG = text, RIGHTARG = int)`, `SELECT q @@@@ 1 FROM cfg`, nil},
		"a row's field":             {`CREATE FUNCTION f(c cfg) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE c.q; END $$`, `SELECT c.f FROM cfg c`, nil},
		"NEW":                       {trigger(`queue`, `BEGIN EXECUTE format('UPDATE %I SET v = 1', NEW.t); RETURN NEW; END`, ``), insert, nil},
		"TG_ARGV":                   {trigger(`queue`, `DECLARE n text := TG_ARGV[1]; BEGIN EXECUTE format('UPDATE %I SET v = 1', n); RETURN NEW; END`, `'plain', 'orders'`), insert, nil},
		"TG_ARGV, glued":            {trigger(`queue`, `BEGIN EXECUTE 'UPDATE ord' || TG_ARGV[0] || ' SET v = 1'; RETURN NEW; END`, `'ers'`), insert, nil},
		"TG_ARGV, all":              {trigger(`queue`, `DECLARE n text; BEGIN FOREACH n IN ARRAY TG_ARGV LOOP EXECUTE format('UPDATE %I SET v = 1', n); END LOOP; RETURN NEW; END`, `'plain', 'orders'`), insert, nil},
		"TG_ARGV, handed on":        {trigger(`queue`, `BEGIN PERFORM run_on('or', TG_ARGV[0]); RETURN NEW; END`, `'ders'`), insert, nil},
		"TG_TABLE_NAME, a suffix":   {`CREATE TABLE ord (i int);` + trigger(`ord`, `BEGIN EXECUTE format('UPDATE %Iers SET v = 1', TG_TABLE_NAME); RETURN NEW; END`, ``), `INSERT INTO ord VALUES (1)`, nil},
		"TG_TABLE_NAME, a suffix 2": {`CREATE TABLE ord (i int);` + trigger(`ord`, `BEGIN EXECUTE 'UPDATE ' || quote_ident(TG_RELNAME || 'ers') || ' SET v = 1'; RETURN NEW; END`, ``), `INSERT INTO ord VALUES (1)`, nil},
		"TG_TABLE_NAME, cut":        {trigger(`orders_audit`, `BEGIN EXECUTE format('UPDATE %I SET v = 1', replace(TG_TABLE_NAME, '_audit', '')); RETURN NEW; END`, ``), `INSERT INTO orders_audit VALUES (1)`, nil},
		"scs off":                   {`CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql SET standard_conforming_strings = off AS $$ BEGIN EXECUTE 'UPDATE \157rders SET v = 1'; END $$`, `SELECT f()`, nil},
		"scs off, static":           {`CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql SET standard_conforming_strings = off SET escape_string_warning = off AS $$ DECLARE x text; BEGIN x := '\' -- '; UPDATE orders SET v = 'x'; RETURN x; END $$`, `SELECT f()`, nil},
		"scs off, the caller's":     {`CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE \157rders SET v = 1'; END $$; CREATE FUNCTION h() RETURNS void LANGUAGE plpgsql SET standard_conforming_strings = off AS $$ BEGIN PERFORM f(); END $$`, `SELECT h()`, nil},
		"query_to_xml":              {`CREATE FUNCTION f() RETURNS xml LANGUAGE sql AS $$ SELECT query_to_xml('SELECT purge(''orders'')', true, true, '') $$`, `SELECT f()`, nil},
		"query_to_xml, a table's":   {`UPDATE cfg SET q = 'SELECT purge(t) FROM cfg'; CREATE FUNCTION f() RETURNS xml LANGUAGE sql AS $$ SELECT query_to_xml((SELECT q FROM cfg), true, true, '') $$`, `SELECT f()`, nil},
		"ts_stat":                   {`CREATE FUNCTION v() RETURNS tsvector LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET v = 1; RETURN 'a'; END $$; CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM ts_stat('SELECT ' || chr(118) || '()') $$`, `SELECT f()`, nil},
		"table_to_xml":              {`CREATE VIEW ww AS SELECT run('UPDATE orders SET v = 1'); CREATE FUNCTION f() RETURNS xml LANGUAGE sql AS $$ SELECT table_to_xml((SELECT oid FROM pg_class WHERE relname LIKE 'w_'), true, true, '') $$`, `SELECT f()`, nil},
		"schema_to_xml":             {`CREATE VIEW ww AS SELECT run('UPDATE orders SET v = 1'); CREATE FUNCTION f() RETURNS xml LANGUAGE sql AS $$ SELECT schema_to_xml('public', true, true, '') $$`, `SELECT f()`, nil},
		"database_to_xml":           {`CREATE VIEW ww AS SELECT run('UPDATE orders SET v = 1'); CREATE FUNCTION f() RETURNS xml LANGUAGE sql AS $$ SELECT database_to_xml(true, true, '') $$`, `SELECT f()`, nil},
		"a view's name":             {`CREATE VIEW ww AS SELECT run('UPDATE orders SET v = 1'); CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ DECLARE n text; BEGIN FOR n IN SELECT relname FROM pg_class WHERE relname LIKE 'w_' LOOP EXECUTE format('SELECT * FROM %I', n); END LOOP; END $$`, `SELECT f()`, nil},
		"a function's name":         {`CREATE FUNCTION h() RETURNS void LANGUAGE sql AS 'UPDATE orders SET v = 1'; CREATE FUNCTION f(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('SELECT %I()', n); END $$`, `SELECT f($1)`, []any{"h"}},
		"a function's name, raw":    {`CREATE FUNCTION h() RETURNS int LANGUAGE sql AS 'UPDATE orders SET v = 1 RETURNING 1'; CREATE FUNCTION f(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT count(*) FROM ' || n; END $$`, `SELECT f($1)`, []any{"h()"}},
		"a prefix":                  {`CREATE FUNCTION f(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = 1', 'ord' || n); END $$`, `SELECT f($1)`, []any{"ers"}},
		"a date as a suffix":        {`CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE order' || to_char(now(), 's') || ' SET v = 1'; END $$`, `SELECT f()`, nil},
		"an attached partition":     {`CREATE TABLE whole (id bigint NOT NULL, v text, last_token bigint NOT NULL) PARTITION BY LIST (v); ALTER TABLE orders DROP CONSTRAINT orders_pkey; CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('ALTER TABLE whole ATTACH PARTITION %I DEFAULT', (SELECT t FROM cfg)); UPDATE whole SET v = 'x'; END $$`, `SELECT f()`, nil},
		"a column in RETURNING":     {`CREATE FUNCTION f(q text) RETURNS int LANGUAGE sql AS $$ UPDATE cfg SET t = t RETURNING run(q) $$`, `SELECT f('UPDATE plain SET v = 1')`, nil},
		"a view over a name":        {`CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('CREATE TEMP VIEW seen AS SELECT * FROM %I', (SELECT t FROM cfg)); UPDATE seen SET v = 1; END $$`, `SELECT f()`, nil},
		"cast between":              {`CREATE FUNCTION f(n text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %s SET v = 1', n::regclass); END $$`, `SELECT f($1)`, []any{"orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			db, plain := openTexts(t, c.setup)
			requireTextRefused(t, db, plain, c.use, c.args...)
		})
	}
}

// A trigger of the protected table itself may write it, by what names its table.
func TestOwnTableTexts(t *testing.T) {
	const insert = `INSERT INTO orders (id, v, last_token) VALUES (2, 'x', $1)`
	for name, q := range map[string]string{
		"TG_TABLE_NAME":   `format('UPDATE %I SET v = ''HIT'', last_token = 0', TG_TABLE_NAME)`,
		"TG_RELNAME":      `'UPDATE ' || TG_RELNAME || ' SET last_token = 0'`,
		"TG_RELID":        `format('UPDATE %s SET last_token = 0', TG_RELID::regclass)`,
		"TG_TABLE_SCHEMA": `format('UPDATE %I.%I SET last_token = 0', TG_TABLE_SCHEMA, TG_TABLE_NAME)`,
		"quote_ident":     `'UPDATE ' || quote_ident(TG_TABLE_SCHEMA) || '.' || quote_ident(TG_TABLE_NAME) || ' SET last_token = 0'`,
		"a place":         `format('UPDATE %1$I.%2$I SET last_token = %3$L', TG_TABLE_SCHEMA, TG_TABLE_NAME, 0)`,
		"replace":         `format('UPDATE %I SET last_token = 0', replace(TG_TABLE_NAME, '_hist', ''))`,
	} {
		for how, runs := range map[string]string{"EXECUTE": `EXECUTE ` + q, "a variable": `q := ` + q + `; EXECUTE q`, "another": `PERFORM run(` + q + `)`} {
			t.Run(name+", "+how, func(t *testing.T) {
				db, plain := openTexts(t, `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ DECLARE q text; BEGIN `+runs+`; RETURN NULL; END $f$;
					CREATE TRIGGER t AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f()`)
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
}

// Code that runs SQL which it makes stays usable where it is told what that writes, or it
// writes nothing.
func TestToldTexts(t *testing.T) {
	function := func(body string) string {
		return `CREATE FUNCTION f(t text DEFAULT 'plain', n int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS $f$ DECLARE q text; r record; k bigint; BEGIN ` + body + ` END $f$`
	}
	trigger := func(body, args string) string {
		return `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ DECLARE q text; BEGIN ` + body + ` RETURN NULL; END $f$; CREATE TRIGGER t AFTER INSERT OR UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION f(` + args + `);
			CREATE TRIGGER t AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION f(` + args + `)`
	}
	const insert, call = `INSERT INTO plain VALUES (1, 'x')`, `SELECT f()`
	for name, c := range map[string]struct {
		setup, use string
		args       []any
	}{
		"a constant":               {function(`EXECUTE 'UPDATE plain SET v = $1' USING t;`), `SELECT f($1)`, []any{"orders"}},
		"a value":                  {function(`EXECUTE format('UPDATE plain SET v = %L WHERE v = ', t) || quote_literal(t);`), `SELECT f($1)`, []any{"orders"}},
		"a column":                 {function(`EXECUTE format('UPDATE plain SET %I = 1', t);`), `SELECT f($1)`, []any{"v"}},
		"a literal":                {``, `SELECT purge('plain')`, nil},
		"a literal, two":           {``, `SELECT run_two('plain')`, nil},
		"a text":                   {``, `SELECT run('UPDATE plain SET v = 1')`, nil},
		"a number given":           {`CREATE FUNCTION f(n bigint, d date) RETURNS void LANGUAGE plpgsql AS $$ DECLARE k int; BEGIN SELECT count(*) INTO k FROM cfg; EXECUTE 'UPDATE plain SET v = 1 WHERE id = ' || n || ' AND id < ' || k || ' AND DATE ''' || d || ''' > now()'; END $$`, `SELECT f($1, $2)`, []any{5, "2020-01-01"}},
		"a name of a number":       {`CREATE FUNCTION f(n bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'CREATE TABLE logs_' || n || ' (i int)'; END $$`, `SELECT f($1)`, []any{5}},
		"a value beside":           {``, `SELECT run('UPDATE plain SET v = 1', $1)`, []any{5}},
		"a default":                {function(`EXECUTE format('UPDATE %I SET v = 1', t);`), call, nil},
		"a variable":               {function(`q := 'plain'; EXECUTE 'UPDATE ' || q || ' SET v = ' || n;`), `SELECT f()`, nil},
		"a condition":              {function(`q := 'UPDATE plain SET v = 1 WHERE true'; IF n = 1 THEN q := q || format(' AND v = %L', t); END IF; q := q || ' AND id = 5'; EXECUTE q;`), `SELECT f($1)`, []any{"orders"}},
		"a list":                   {function(`FOREACH q IN ARRAY ARRAY['plain', 'audit'] LOOP EXECUTE format('UPDATE %I SET v = 1', q); END LOOP;`), call, nil},
		"a date":                   {function(`EXECUTE format('CREATE TABLE IF NOT EXISTS %I (i int)', 'logs_' || to_char(now(), 'YYYY_MM'));`), call, nil},
		"a number":                 {function(`FOR i IN 1..2 LOOP EXECUTE format('CREATE TABLE IF NOT EXISTS logs_%s (i int)', i); END LOOP;`), call, nil},
		"a reading function":       {`CREATE FUNCTION f(x text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM ' || quote_ident(x) INTO n; RETURN n; END $$; DROP FUNCTION purge CASCADE; DROP FUNCTION run CASCADE; DROP FUNCTION run_on; DROP FUNCTION run_two`, `SELECT f($1)`, []any{"plain"}},
		"reading all":              {function(`FOR r IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP EXECUTE format('SELECT count(*) FROM %I WHERE $1', r.tablename) INTO k USING true; END LOOP;`), call, nil},
		"a search path":            {function(`EXECUTE 'SET search_path = ' || quote_ident(t);`), `SELECT f($1)`, []any{"public"}},
		"another schema":           {`CREATE SCHEMA s; CREATE TABLE s.log (i int);` + function(`EXECUTE format('INSERT INTO %I.log VALUES (1)', t);`), `SELECT f($1)`, []any{"s"}},
		"TG_TABLE_NAME, a suffix":  {trigger(`EXECUTE format('INSERT INTO %I VALUES (1, %L)', TG_TABLE_NAME || '_audit', TG_OP);`, ``), insert, nil},
		"TG_TABLE_NAME, format":    {trigger(`EXECUTE format('INSERT INTO %I_audit VALUES ($1, $2)', TG_TABLE_NAME) USING 1, 'x';`, ``), insert, nil},
		"TG_TABLE_NAME, on orders": {trigger(`q := 'INSERT INTO ' || TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME || '_audit VALUES (1)'; EXECUTE q;`, ``), `INSERT INTO orders (id, v, last_token) VALUES (7, 'x', $1)`, []any{tokenctx.Arg}},
		"TG_ARGV":                  {trigger(`EXECUTE format('INSERT INTO %I SELECT 1, %L', TG_ARGV[0], TG_ARGV[1]);`, `'audit', 'orders'`), insert, nil},
		"a static trigger":         {trigger(`INSERT INTO audit VALUES (1, TG_TABLE_NAME);`, ``), insert, nil},
		"a guarded one":            {strings.Replace(function(`EXECUTE (SELECT 'UPDATE plain SET v = 1' FROM cfg);`), "f(", "f_guarded(", 1), `SELECT f_guarded()`, nil},
		"a static one":             {`CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM cfg LOOP INSERT INTO audit VALUES (1, r.t); END LOOP; END $$`, call, nil},
		"backslashes":              {function(`EXECUTE E'UPDATE plain SET v = \'x\'';`), call, nil},
		"table_to_xml":             {`CREATE FUNCTION f() RETURNS xml LANGUAGE sql AS $$ SELECT table_to_xml('plain', true, true, '') $$`, call, nil},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := openTexts(t, c.setup, driver.WithGuardedFunctions("f_guarded"))
			_, err := db.ExecContext(tokenctx.With(t.Context(), 12), c.use, c.args...)
			require.NoError(t, err)
		})
	}
}

// What is refused says why, and what to do.
func TestUntoldSaysWhatToDo(t *testing.T) {
	db, _ := openTexts(t, textFunction(untoldNames["a table"], textRuns["EXECUTE"])+`; DROP DOMAIN IF EXISTS checked; DROP OPERATOR IF EXISTS @@@@ (int, int)`)
	for use, says := range map[string]string{
		`SELECT f()`:                     `runs SQL that it makes, with names that cannot be told; write the names as constants in the function and quote all else that it puts in (by %I and %L of format), put up the wall`,
		`SELECT g()`:                     `it, or what it calls, runs SQL that it makes`,
		`INSERT INTO queue VALUES ('x')`: `as function "f" does, counts for every table without a wall`,
		`SELECT purge(t) FROM cfg`:       `runs SQL that it makes of what it is given, and which table that writes cannot be told here: give it a literal`,
		`SELECT purge('orders')`:         `names what the protection rests on`,
	} {
		_, err := db.Exec(use)
		require.ErrorContains(t, err, says, use)
	}
}
