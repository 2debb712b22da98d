package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// actSchema has a function, act, whose body the tests choose, beside one that writes
// orders.
const actSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 0, 9);
CREATE TABLE plain (id bigint, v text); INSERT INTO plain VALUES (1, 'x');
CREATE TABLE points (p point); INSERT INTO points VALUES ('(1,2)');
CREATE TYPE mood AS ENUM ('ok'); CREATE TABLE moods (m mood); INSERT INTO moods VALUES ('ok');
CREATE FUNCTION bad() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET n = n + 1; RETURN 1; END $$;
`

// acts are what a function does that it must not: its body in PL/pgSQL.
var acts = map[string]string{
	"a table":   `UPDATE public.orders SET n = n + 1;`,
	"fencing":   `RESET fencing.session; UPDATE fencing.registry SET driver_level = 'off';`,
	"an object": `EXECUTE 'CREATE OR REPLACE VIEW public.made AS SELECT * FROM public.' || (SELECT relname FROM pg_class WHERE oid = 'public.orders'::regclass);`,
	"nothing":   `PERFORM 1;`,
}

// actState is what none of these may change.
const actState = `SELECT concat((SELECT string_agg(o::text, ',' ORDER BY id) FROM public.orders o), (SELECT string_agg(r::text, ',') FROM fencing.registry r),
	(SELECT last_value < 1000 FROM fencing.write_epoch), to_regclass('public.made'), (SELECT string_agg(l::text, ',') FROM fencing.lease l))`

// noRelation are objects that belong to no relation, and statements that run act by
// one of them.
var noRelation = map[string]struct {
	setup string
	uses  []string
}{
	"cast between built-in types": {`CREATE FUNCTION p2i(point) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 1; END $$; CREATE CAST (point AS int) WITH FUNCTION p2i(point)`,
		[]string{`SELECT p::int4 FROM points`, `SELECT p::integer FROM points`, `SELECT p::int FROM points`, `SELECT CAST(p AS int) FROM points`, `SELECT p::"int4" FROM points`, `DO $$ BEGIN PERFORM p::int FROM points; END $$`,
			`INSERT INTO plain SELECT p::integer FROM points`}},
	"cast to other spellings": {`CREATE FUNCTION p2b(point) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$; CREATE CAST (point AS boolean) WITH FUNCTION p2b(point);
		CREATE FUNCTION p2d(point) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 1; END $$; CREATE CAST (point AS float8) WITH FUNCTION p2d(point);
		CREATE FUNCTION p2t(point) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN now(); END $$; CREATE CAST (point AS timestamptz) WITH FUNCTION p2t(point)`,
		[]string{`SELECT p::boolean FROM points`, `SELECT p::double precision FROM points`, `SELECT p::timestamp with time zone FROM points`, `SELECT CAST(p AS float(50)) FROM points`}},
	"cast from one's own type": {`CREATE FUNCTION m2i(mood) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 1; END $$; CREATE CAST (mood AS int) WITH FUNCTION m2i(mood)`,
		[]string{`SELECT m::int4 FROM moods`, `SELECT x.m::int FROM (SELECT * FROM moods) x`}},
	"domain": {`CREATE FUNCTION checks(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$; CREATE DOMAIN d AS text CHECK (checks(VALUE)); CREATE TABLE typed (i int, d d); CREATE TABLE arrays (arr d[]); INSERT INTO arrays VALUES ('{}'); CREATE TYPE has AS (d d);
		CREATE TABLE rows_of (r has)`,
		[]string{`SELECT 'x'::d`, `INSERT INTO typed VALUES (1, 'x')`, `SELECT array_append(arr, 'x') FROM arrays`, `SELECT coalesce(NULL::d[], '{x}')`, `SELECT array_cat(arr, '{x}') FROM arrays`, `SELECT arr FROM arrays UNION ALL SELECT '{x}'`,
			`SELECT jsonb_populate_record(NULL::typed, '{"d": "x"}')`, `DO $$ DECLARE r typed; BEGIN r.d := 'x'; END $$`, `DO $$ DECLARE r typed; BEGIN SELECT 1, 'x' INTO r; END $$`, `DO $$ DECLARE r typed; BEGIN FOR r IN SELECT 1, 'x' LOOP END LOOP; END $$`,
			`DO $$ DECLARE r rows_of; BEGIN r.r := ROW('x'); END $$`, `UPDATE arrays SET arr = '{x}'`}},
	"domain's default": {`CREATE FUNCTION text_of() RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 'x'; END $$; CREATE DOMAIN d AS text DEFAULT text_of(); CREATE TABLE typed (i int, d d)`,
		[]string{`INSERT INTO typed (i) VALUES (1)`, `CREATE TABLE more (i int, d d); INSERT INTO more (i) VALUES (1)`, `ALTER TABLE plain ADD COLUMN d d`}},
	"operator": {`CREATE FUNCTION compares(int, int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 1; END $$; CREATE OPERATOR <=> (FUNCTION = compares, LEFTARG = int, RIGHTARG = int); CREATE OPERATOR === (FUNCTION = compares, LEFTARG = int, RIGHTARG = int)`,
		[]string{`SELECT 1 <=> 1`, `SELECT 1 <=>-1`, `SELECT 1===+1`, `SELECT 1 <=>/**/ 1`, "SELECT 1 <=>-- x\n 1", `SELECT 1 OPERATOR(public.<=>) 1`, `DO $$ BEGIN PERFORM 1 <=>-1; END $$`, `DO $$ DECLARE i int := 1===+1; BEGIN END $$`}},
	"range": {`CREATE FUNCTION differ(float8, float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.act(); RETURN 1; END $$; CREATE TYPE span AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = differ); CREATE TABLE spans (s span); INSERT INTO spans SELECT span(i, i + 1) FROM generate_series(1, 300) i`,
		[]string{`CREATE INDEX ON spans USING gist (s)`, `ANALYZE spans`, `DO $$ BEGIN ANALYZE; END $$`}},
	"aggregate of an operator class": {`CREATE FUNCTION json_cmp(json, json) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 0; END $$; CREATE FUNCTION json_any(json, json) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT false';
		CREATE OPERATOR #< (FUNCTION = json_any, LEFTARG = json, RIGHTARG = json); CREATE OPERATOR #= (FUNCTION = json_any, LEFTARG = json, RIGHTARG = json); CREATE OPERATOR CLASS json_ops DEFAULT FOR TYPE json USING btree AS OPERATOR 1 #<, OPERATOR 3 #=, FUNCTION 1 json_cmp(json, json)`,
		[]string{`SELECT DISTINCT to_json(i) FROM generate_series(1, 3) i`, `DO $$ BEGIN PERFORM to_json(i) FROM generate_series(1, 3) i ORDER BY 1; END $$`}},
	"wrapper's validator": {`CREATE FUNCTION valid(text[], oid) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); END $$; CREATE FOREIGN DATA WRAPPER w VALIDATOR valid`,
		[]string{`CREATE SERVER s FOREIGN DATA WRAPPER w OPTIONS (a 'b')`, `ALTER FOREIGN DATA WRAPPER w OPTIONS (a 'b')`}},
}

// actCase is a database in which something runs what it must not.
type actCase struct {
	setup string
	uses  []string
	ok    []string // what stays usable
}

// Code that belongs to no relation and that no text need name isn't run, whatever it
// does and however it is come to. An object that makes another runs, and what
// it has made is known.
func TestCodeOfNoRelation(t *testing.T) {
	for kind, c := range noRelation {
		for act, does := range acts {
			t.Run(kind+", "+act, func(t *testing.T) {
				t.Parallel()
				one := actCase{setup: `CREATE FUNCTION act() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ` + does + ` END $$; ` + c.setup, uses: c.uses}
				switch act {
				case "nothing":
					one.uses, one.ok = nil, c.uses
				case "an object":
					requireKnown(t, one)
					return
				}
				requireNoWay(t, one)
			})
		}
	}
}

// actTemplate is a database with actSchema, whose table orders is registered.
var actTemplate = fencetest.InstalledWith("act", func(ctx context.Context, dsn string) error {
	if err := fencetest.Exec(ctx, dsn, actSchema); err != nil {
		return err
	}
	return migrations.Register(ctx, dsn, migrations.Table{Name: "orders", Mode: migrations.Lease})
})

const actReset = `SELECT setval('fencing.write_epoch', 1000); UPDATE fencing.registry SET driver_level = 'enforce'; DROP VIEW IF EXISTS made`

// acted makes a database with the case's objects, and a plain connection that has what
// tells the driver's sessions.
func acted(t *testing.T, c actCase) (string, *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t, actTemplate)
	run(t, dsn, c.setup, actReset) // what the setup makes may have run
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { plain.Close(context.Background()) })
	return dsn, plain
}

func stateOf(t *testing.T, plain *pgx.Conn) (state string) {
	t.Helper()
	require.NoError(t, plain.QueryRow(t.Context(), actState).Scan(&state))
	return state
}

// requireWay shows that a statement is a way past the check: over a plain connection it
// does what it must not.
func requireWay(t *testing.T, plain *pgx.Conn, use string) {
	t.Helper()
	before := stateOf(t, plain)
	for _, text := range []string{`BEGIN`, `SELECT set_config('fencing.session', 'driver', false)`, use} {
		_, err := plain.PgConn().Exec(t.Context(), text).ReadAll()
		require.NoError(t, err, text)
	}
	require.NotEqual(t, before, stateOf(t, plain), "no way: %s", use)
	_, err := plain.Exec(t.Context(), `ROLLBACK; SELECT setval('fencing.write_epoch', 1000)`)
	require.NoError(t, err)
}

func requireNoWay(t *testing.T, c actCase) {
	t.Helper()
	dsn, plain := acted(t, c)
	for _, use := range c.uses {
		requireWay(t, plain, use)
	}
	before := stateOf(t, plain)
	db := openReset(t, dsn, "nobody")
	for _, use := range c.uses {
		if _, err := db.Exec(use); !errors.Is(err, rewrite.ErrRefused) {
			t.Errorf("not refused: %s: %v", use, err)
		}
	}
	for _, use := range c.ok {
		_, err := db.Exec(use)
		require.NoError(t, err, use)
	}
	require.True(t, before == stateOf(t, plain) || t.Failed())
}

// requireKnown has the handle run a statement that makes an object, which is then
// known to what follows in the same transaction.
func requireKnown(t *testing.T, c actCase) {
	t.Helper()
	dsn, plain := acted(t, c)
	for _, use := range c.uses {
		requireWay(t, plain, use)
	}
	db := openReset(t, dsn, "nobody")
	for _, use := range c.uses {
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		if _, err = tx.ExecContext(t.Context(), use); !errors.Is(err, rewrite.ErrRefused) {
			require.NoError(t, err, use)
			_, err = tx.ExecContext(t.Context(), `UPDATE made SET n = 5`)
		}
		require.ErrorIs(t, err, rewrite.ErrRefused, use)
		require.NoError(t, tx.Rollback())
	}
}

// Expressions in the database that run what they are given, or what schema fencing has,
// are told from others: each where it may stand, with what uses it and what doesn't.
var expressionPlaces = map[string]struct {
	setup string // %s stands for a call that returns text
	uses  []string
	ok    []string
}{
	"default":          {`CREATE TABLE at (i int, t text DEFAULT %s)`, []string{`INSERT INTO at (i) VALUES (1)`, `DO $$ BEGIN INSERT INTO at (i) VALUES (1); END $$`}, []string{`SELECT * FROM plain`}},
	"check":            {`CREATE TABLE at (i int CHECK (i IS NOT NULL AND (%s) IS DISTINCT FROM 'no'))`, []string{`INSERT INTO at VALUES (1)`, `WITH x AS (INSERT INTO at VALUES (1) RETURNING 1) SELECT * FROM x`}, []string{`INSERT INTO plain VALUES (2)`}},
	"condition":        {`CREATE TABLE at (i int); CREATE FUNCTION nop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER t BEFORE INSERT ON at FOR EACH ROW WHEN ((%s) IS NULL) EXECUTE FUNCTION nop()`, []string{`INSERT INTO at VALUES (1)`}, []string{`DELETE FROM plain`}},
	"view":             {`CREATE VIEW at AS SELECT %s AS x; CREATE VIEW above AS SELECT * FROM at; CREATE FUNCTION reads() RETURNS bigint LANGUAGE sql AS 'SELECT count(x) FROM above'`, []string{`SELECT * FROM at`, `SELECT x FROM above`, `SELECT reads()`}, []string{`SELECT id FROM plain`}},
	"stored":           {`CREATE MATERIALIZED VIEW at AS SELECT %s AS x WITH NO DATA`, []string{`REFRESH MATERIALIZED VIEW at`}, []string{`ANALYZE plain`}},
	"rule":             {`CREATE TABLE at (i int); CREATE RULE r AS ON INSERT TO at DO ALSO INSERT INTO plain (v) VALUES (%s)`, []string{`INSERT INTO at VALUES (1)`}, []string{`INSERT INTO plain VALUES (2)`}},
	"domain":           {`CREATE DOMAIN at AS text CHECK (VALUE IS NOT NULL AND (%s) IS DISTINCT FROM 'no')`, []string{`SELECT 'x'::at`, `SELECT array_append(NULL::at[], 'x')`}, nil},
	"domain's default": {`CREATE DOMAIN d AS text DEFAULT %s; CREATE TABLE at (i int, d d)`, []string{`INSERT INTO at (i) VALUES (1)`}, nil},
}

// expressionCalls are what stands there: whether it is a way past the check.
var expressionCalls = map[string]struct {
	call  string
	isWay bool
}{
	"SQL as a constant":         {`query_to_xml('SELECT public.bad()', true, false, '')::text`, true},
	"SQL of a table":            {`query_to_xml((SELECT 'SELECT public.' || s FROM public.given()), true, false, '')::text`, true},
	"SQL of words":              {`(SELECT count(*)::text FROM ts_stat('SELECT to_tsvector(public.bad()::text)'))`, true},
	"a rewriting query":         {`ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, (''b'' || public.bad())::tsquery')::text`, true},
	"a schema":                  {`schema_to_xml('app', true, false, '')::text`, true},
	"a function of fencing":     {`concat(set_config('fencing.session', '', false), fencing.driver_level('public.orders', 'off'))`, true},
	"the sequence":              {`setval('fencing.write_epoch', 1)::text`, true},
	"the sequence by a name":    {`setval(('fencing.' || 'write_epoch')::regclass, 1)::text`, true},
	"another alias":             {`public.given_xml('SELECT public.bad()', true, false, '')::text`, true},
	"SQL that reads":            {`query_to_xml('SELECT id FROM public.plain', true, false, '')::text`, false},
	"another sequence":          {`setval('public.numbers', 7)::text`, false},
	"the next of a sequence":    {`nextval('public.numbers')::text`, false},
	"what an application calls": {`fencing.next_token()::text`, false},
	"a setting":                 {`set_config('app.name', 'x', true)`, false},
	"what computes":             {`upper('select')`, false},
}

// expressionSchema has what these call.
const expressionSchema = `CREATE SEQUENCE numbers; CREATE FUNCTION given(OUT s text) LANGUAGE plpgsql AS $$ BEGIN s := 'ba' || 'd()'; END $$; CREATE SCHEMA app; CREATE VIEW app.calls AS SELECT public.bad();
	CREATE FUNCTION given_xml(text, boolean, boolean, text) RETURNS xml LANGUAGE internal AS 'query_to_xml';`

func TestExpressionsThatRunWhatTheyAreGiven(t *testing.T) {
	for place, p := range expressionPlaces {
		for what, c := range expressionCalls {
			if strings.Contains(c.call, "(SELECT") && !slices.Contains([]string{"view", "stored", "rule"}, place) {
				continue // no subquery may stand there
			}
			t.Run(place+", "+what, func(t *testing.T) {
				t.Parallel()
				one := actCase{setup: expressionSchema + fmt.Sprintf(p.setup, c.call), uses: p.uses, ok: p.ok}
				if !c.isWay {
					one.uses, one.ok = nil, append(slices.Clone(p.uses), p.ok...)
				}
				requireNoWay(t, one)
			})
		}
	}
}
