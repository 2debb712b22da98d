package driver_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// unnamedSchema has functions that write orders, and an ordinary type to which
// comparisons can be given.
const unnamedSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0);
CREATE TABLE plain (id bigint, v text); INSERT INTO plain SELECT i, 'x' FROM generate_series(1, 3) i;
CREATE FUNCTION touch(b bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET n = 99; RETURN b; END $$;
CREATE FUNCTION itouch(b bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(b); RETURN b; END $$;
CREATE TYPE pair AS (a bigint);
CREATE TABLE pairs (k pair, i int);
INSERT INTO pairs SELECT ROW(g)::pair, g FROM generate_series(1, 4) g;
CREATE FUNCTION pair_lt(pair, pair) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1.a < $2.a';
CREATE FUNCTION pair_le(pair, pair) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1.a <= $2.a';
CREATE FUNCTION pair_eq(pair, pair) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1.a = $2.a';
CREATE FUNCTION pair_ge(pair, pair) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1.a >= $2.a';
CREATE FUNCTION pair_gt(pair, pair) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1.a > $2.a';
CREATE FUNCTION pair_cmp(pair, pair) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT CASE WHEN $1.a < $2.a THEN -1 WHEN $1.a = $2.a THEN 0 ELSE 1 END';
CREATE FUNCTION pair_hash(pair) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION pair_writes(pair, pair) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN true; END $$;
CREATE OPERATOR #< (FUNCTION = pair_lt, LEFTARG = pair, RIGHTARG = pair);
CREATE OPERATOR #<= (FUNCTION = pair_le, LEFTARG = pair, RIGHTARG = pair);
CREATE OPERATOR #= (FUNCTION = pair_eq, LEFTARG = pair, RIGHTARG = pair, MERGES, HASHES);
CREATE OPERATOR #>= (FUNCTION = pair_ge, LEFTARG = pair, RIGHTARG = pair);
CREATE OPERATOR #> (FUNCTION = pair_gt, LEFTARG = pair, RIGHTARG = pair);
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'unnamed_app') THEN CREATE ROLE unnamed_app; END IF; END $$; GRANT ALL ON ALL TABLES IN SCHEMA public TO unnamed_app; GRANT CREATE ON SCHEMA public TO unnamed_app;
`

const unnamedRow = `TRUNCATE orders; INSERT INTO orders VALUES (1, 0, 9)`

const (
	writingCompare = `CREATE OR REPLACE FUNCTION pair_cmp(pair, pair) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
		$$ BEGIN PERFORM public.touch(1); RETURN CASE WHEN $1.a < $2.a THEN -1 WHEN $1.a = $2.a THEN 0 ELSE 1 END; END $$;`
	writingHash  = `CREATE OR REPLACE FUNCTION pair_hash(pair) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN 1; END $$;`
	pairOrder    = `CREATE OPERATOR CLASS pair_ops DEFAULT FOR TYPE pair USING btree AS OPERATOR 1 #<, OPERATOR 2 #<=, OPERATOR 3 #=, OPERATOR 4 #>=, OPERATOR 5 #>, FUNCTION 1 pair_cmp(pair, pair);`
	pairHash     = `CREATE OPERATOR CLASS pair_hash_ops DEFAULT FOR TYPE pair USING hash AS OPERATOR 1 #=, FUNCTION 1 pair_hash(pair);`
	pairOwnEqual = `CREATE OPERATOR = (FUNCTION = pair_writes, LEFTARG = pair, RIGHTARG = pair);`
	byApp        = `SET ROLE unnamed_app;`
	withPolicies = `ALTER TABLE plain ENABLE ROW LEVEL SECURITY;`
)

// unnamedWays are the ways by which a statement runs a function that it doesn't
// name, nor anything of which its text shows that.
var unnamedWays = map[string]struct {
	setup  string
	asRole string // of the plain connection
	runs   []string
	passes []string
}{
	"order of a type": {pairOrder + writingCompare, ``, []string{`SELECT * FROM pairs ORDER BY k`, `SELECT DISTINCT k FROM pairs`, `SELECT k FROM pairs GROUP BY k`, `SELECT k FROM pairs UNION SELECT k FROM pairs`,
		`SELECT row_number() OVER (ORDER BY k) FROM pairs`, `SELECT * FROM pairs ORDER BY ARRAY[k]`, `SELECT * FROM pairs ORDER BY k USING #<`, `ANALYZE pairs`, `ANALYZE`,
		`SELECT array_agg(k ORDER BY k) FROM pairs`, `UPDATE plain SET v = 'y' FROM (SELECT DISTINCT k FROM pairs) p`, `WITH p AS (SELECT k FROM pairs) SELECT count(DISTINCT k) FROM p`,
		`CREATE INDEX ON pairs (k)`}, nil},
	"order of an index": {pairOrder + `CREATE TABLE indexed (k pair); CREATE INDEX at ON indexed (k); INSERT INTO indexed SELECT k FROM pairs;` + writingCompare, ``,
		[]string{`INSERT INTO indexed SELECT k FROM pairs`, `REINDEX TABLE indexed`, `REINDEX INDEX at`, `CLUSTER indexed USING at`}, nil},
	"order of another class": {`CREATE OPERATOR CLASS other_ops FOR TYPE pair USING btree AS OPERATOR 1 #<, OPERATOR 2 #<=, OPERATOR 3 #=, OPERATOR 4 #>=, OPERATOR 5 #>, FUNCTION 1 pair_cmp(pair, pair);` + writingCompare, ``,
		[]string{`SELECT * FROM pairs ORDER BY k USING #<`}, nil},
	"a class of a built-in type": {`CREATE FUNCTION json_cmp(json, json) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN 0; END $$; CREATE FUNCTION json_any(json, json) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT false';
		CREATE OPERATOR #< (FUNCTION = json_any, LEFTARG = json, RIGHTARG = json); CREATE OPERATOR #= (FUNCTION = json_any, LEFTARG = json, RIGHTARG = json); CREATE OPERATOR CLASS json_ops DEFAULT FOR TYPE json USING btree AS OPERATOR 1 #<, OPERATOR 3 #=, FUNCTION 1 json_cmp(json, json);
		CREATE TABLE docs (d json); INSERT INTO docs VALUES ('1'), ('2')`, ``, []string{`SELECT DISTINCT d FROM docs`, `SELECT to_json(id) FROM plain ORDER BY 1`}, nil},
	"added to a family": {pairOrder + `CREATE FUNCTION pair_range(pair, pair, int, bool, bool) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN true; END $$;
		ALTER OPERATOR FAMILY pair_ops USING btree ADD FUNCTION 3 (pair, int) pair_range(pair, pair, int, bool, bool)`, ``, []string{`SELECT count(*) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM pairs`}, nil},
	"hash of a type": {
		pairOrder + pairHash + writingHash, `SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_sort = off`,
		[]string{`SELECT DISTINCT k FROM pairs`, `SELECT k FROM pairs EXCEPT SELECT k FROM pairs`}, nil,
	},
	"partitions by hash": {pairHash + `CREATE FUNCTION pair_hash8(pair, bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN 1; END $$; ALTER OPERATOR FAMILY pair_hash_ops USING hash ADD FUNCTION 2 (pair, pair) pair_hash8(pair, bigint);
		CREATE TABLE parts (k pair) PARTITION BY HASH (k); CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0)`, ``, []string{`INSERT INTO parts SELECT k FROM pairs`}, nil},
	"equality of its own": {
		pairOwnEqual, ``,
		[]string{`SELECT k IN (SELECT b.k FROM pairs b) FROM pairs`, `SELECT CASE k WHEN k THEN 1 END FROM pairs`, `SELECT NULLIF(k, k) FROM pairs`, `SELECT count(*) FROM pairs a JOIN pairs b USING (k)`, `SELECT count(*) FROM pairs a NATURAL JOIN pairs b`, `SELECT k IS DISTINCT FROM k FROM pairs`, `SELECT k IN (k, k) FROM pairs`},
		nil,
	},
	"order of its own": {
		`CREATE OPERATOR >= (FUNCTION = pair_writes, LEFTARG = pair, RIGHTARG = pair); CREATE OPERATOR <= (FUNCTION = pair_writes, LEFTARG = pair, RIGHTARG = pair)`,
		``, []string{`SELECT k BETWEEN k AND k FROM pairs`}, nil,
	},
	"LIKE of its own": {`CREATE OPERATOR ~~ (FUNCTION = pair_writes, LEFTARG = pair, RIGHTARG = pair)`, ``, []string{`SELECT k LIKE k FROM pairs`}, nil},
	"<> of its own":   {`CREATE OPERATOR <> (FUNCTION = pair_writes, LEFTARG = pair, RIGHTARG = pair)`, ``, []string{`SELECT k != k FROM pairs`}, nil},
	"a negator": {`CREATE OPERATOR ### (FUNCTION = pair_writes, LEFTARG = pair, RIGHTARG = pair); CREATE FUNCTION pair_not(pair, pair) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN false; END $$; CREATE OPERATOR #! (FUNCTION = pair_not, LEFTARG = pair, RIGHTARG = pair, NEGATOR = ###)`, ``,
		[]string{`SELECT NOT (k OPERATOR(public.#!) k) FROM pairs`}, nil},

	"policy for SELECT": {
		withPolicies + `CREATE POLICY p ON plain FOR SELECT USING (touch(id) > 0)`, byApp,
		[]string{`SELECT * FROM plain`, `COPY plain TO STDOUT`, `SELECT (SELECT count(*) FROM plain)`}, []string{`SELECT * FROM pairs`},
	},
	"policy for ALL": {
		withPolicies + `CREATE POLICY p ON plain USING (touch(id) > 0)`, byApp,
		[]string{`SELECT * FROM plain`, `DELETE FROM plain WHERE id = 1`, `UPDATE plain SET v = 'y' WHERE id = 2`, `INSERT INTO plain VALUES (7, 'x')`, `SELECT v FROM plain FOR UPDATE`},
		nil,
	},
	"policy for UPDATE": {
		withPolicies + `CREATE POLICY a ON plain FOR SELECT USING (true); CREATE POLICY p ON plain FOR UPDATE USING (touch(id) > 0)`, byApp,
		[]string{`UPDATE plain SET v = 'y'`, `SELECT v FROM plain FOR UPDATE`}, nil,
	},
	"policy for DELETE": {
		withPolicies + `CREATE POLICY a ON plain FOR SELECT USING (true); CREATE POLICY p ON plain FOR DELETE USING (touch(id) > 0)`, byApp,
		[]string{`DELETE FROM plain WHERE id = 1`, `MERGE INTO plain USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE`},
		[]string{`SELECT * FROM plain`, `INSERT INTO plain VALUES (5, 'x')`},
	},
	"policy for INSERT": {
		withPolicies + `CREATE POLICY p ON plain FOR INSERT WITH CHECK (touch(id) > 0)`, byApp, []string{`INSERT INTO plain VALUES (7, 'x')`},
		[]string{`SELECT * FROM plain`, `DELETE FROM plain`},
	},
	"policy below a view": {withPolicies + `CREATE POLICY p ON plain FOR SELECT USING (touch(id) > 0); ALTER TABLE plain OWNER TO unnamed_app; ALTER TABLE plain FORCE ROW LEVEL SECURITY; CREATE VIEW over AS SELECT * FROM plain; ALTER VIEW over OWNER TO unnamed_app;
		CREATE MATERIALIZED VIEW stored AS SELECT * FROM plain WITH NO DATA; ALTER MATERIALIZED VIEW stored OWNER TO unnamed_app; CREATE FUNCTION counts() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM plain'`, byApp,
		[]string{`SELECT * FROM over`, `REFRESH MATERIALIZED VIEW stored`, `SELECT counts()`}, nil},
	"view that calls": {`CREATE VIEW called AS SELECT touch(id) AS t FROM plain; CREATE VIEW above AS SELECT * FROM called; CREATE FUNCTION counts() RETURNS bigint LANGUAGE sql AS 'SELECT sum(t) FROM above'`, ``, []string{`SELECT * FROM called`, `SELECT t FROM above`, `TABLE called`, `COPY (SELECT * FROM above) TO STDOUT`, `SELECT counts()`,
		`INSERT INTO plain SELECT t FROM called`, `EXPLAIN ANALYZE SELECT * FROM called`, `CREATE TEMP TABLE made AS SELECT * FROM called`}, []string{`SELECT * FROM plain`}},
	"rule for SELECT by an operator": {
		`CREATE OPERATOR ### (FUNCTION = pair_writes, LEFTARG = pair, RIGHTARG = pair); CREATE VIEW called AS SELECT k ### k AS x FROM pairs`, ``,
		[]string{`SELECT x FROM called`}, nil,
	},

	"index expression": {`CREATE INDEX at ON plain (itouch(id))`, ``, []string{`ANALYZE plain`, `ANALYZE`, `VACUUM ANALYZE plain`, `REINDEX TABLE plain`, `REINDEX INDEX at`, `REINDEX SCHEMA public`, `VACUUM FULL plain`, `CLUSTER plain USING at`, `INSERT INTO plain VALUES (5, 'x')`,
		`UPDATE plain SET id = 10 WHERE id = 1`}, []string{`ANALYZE pairs`, `VACUUM pairs`, `SELECT * FROM pairs`}},
	"index predicate": {`CREATE INDEX at ON plain (v) WHERE itouch(id) > 0`, ``, []string{`ANALYZE plain`, `REINDEX TABLE plain`, `INSERT INTO plain VALUES (5, 'x')`}, nil},
	"folded":          {`CREATE INDEX at ON plain ((id + itouch(1)))`, ``, []string{`SELECT * FROM plain WHERE id = 1`}, nil},
	"a summary": {
		`CREATE INDEX at ON plain USING brin ((itouch(id))) WITH (pages_per_range = 1); INSERT INTO plain SELECT i, repeat('x', 500) FROM generate_series(1, 300) i;`,
		``, []string{`SELECT brin_summarize_new_values('at')`}, nil,
	},
	"statistics": {`CREATE STATISTICS st ON (itouch(id)), v FROM plain`, ``, []string{`ANALYZE plain`, `VACUUM ANALYZE`}, []string{`ANALYZE pairs`}},
	"materialized view with an index": {
		`CREATE MATERIALIZED VIEW stored AS SELECT * FROM plain; CREATE INDEX at ON stored (itouch(id))`, ``,
		[]string{`REFRESH MATERIALIZED VIEW stored`, `ANALYZE stored`, `REINDEX TABLE stored`}, []string{`ANALYZE plain`},
	},
	"generated column": {`CREATE TABLE made (id bigint, g bigint GENERATED ALWAYS AS (itouch(id)) STORED)`, ``, []string{`INSERT INTO made VALUES (1)`}, []string{`SELECT * FROM made`}},
	"default of a view": {
		`CREATE VIEW over AS SELECT id, v FROM plain; ALTER VIEW over ALTER id SET DEFAULT touch(1)`, ``, []string{`INSERT INTO over (v) VALUES ('x')`},
		[]string{`SELECT * FROM over`, `INSERT INTO plain (v) VALUES ('x')`},
	},
	"partition key below": {
		`CREATE TABLE parts (id bigint) PARTITION BY LIST ((itouch(id))); CREATE TABLE part PARTITION OF parts FOR VALUES IN (1, 2)`, ``,
		[]string{`INSERT INTO parts VALUES (1)`, `INSERT INTO part VALUES (1)`}, nil,
	},

	"cast on assignment": {
		`CREATE FUNCTION pair_text(pair) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN 'x'; END $$; CREATE CAST (pair AS text) WITH FUNCTION pair_text(pair) AS ASSIGNMENT`,
		``, []string{`INSERT INTO plain (v) SELECT k FROM pairs`, `UPDATE plain SET v = k FROM pairs`}, nil,
	},
	"implicit cast": {
		`CREATE FUNCTION pair_int(pair) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN 1; END $$; CREATE CAST (pair AS bigint) WITH FUNCTION pair_int(pair) AS IMPLICIT`,
		``, []string{`SELECT abs(k) FROM pairs`, `SELECT generate_series(1, k) FROM pairs`}, nil,
	},
	"cast between built-in types": {`CREATE FUNCTION b2m(bigint) RETURNS macaddr LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN '08:00:2b:01:02:03'; END $$; CREATE CAST (bigint AS macaddr) WITH FUNCTION b2m(bigint) AS ASSIGNMENT; CREATE TABLE cards (m macaddr)`, ``,
		[]string{`INSERT INTO cards SELECT id FROM plain`}, nil},
	"cast to json": {
		`CREATE TYPE mood AS ENUM ('ok'); CREATE TABLE moods (m mood); INSERT INTO moods VALUES ('ok'); CREATE FUNCTION mood_json(mood) RETURNS json LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN '1'; END $$; CREATE CAST (mood AS json) WITH FUNCTION mood_json(mood)`,
		``, []string{`SELECT to_json(m) FROM moods`, `SELECT row_to_json(p) FROM moods p`, `SELECT jsonb_agg(m) FROM moods`}, nil,
	},

	"row from json": {`CREATE DOMAIN touched AS bigint CHECK (touch(VALUE) > 0); CREATE TABLE typed (id touched); INSERT INTO typed VALUES (NULL)`, ``,
		[]string{`SELECT jsonb_populate_record(t, '{"id": 5}') FROM typed t`, `SELECT json_populate_record(t, '{"id": 5}') FROM typed t`, `SELECT jsonb_populate_recordset(t, '[{"id": 5}]') FROM typed t`}, nil},
	"variable of a column's type": {
		`CREATE DOMAIN touched AS bigint CHECK (touch(VALUE) > 0); CREATE TABLE typed (id touched); CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ DECLARE x public.typed.id%TYPE; BEGIN x := 5; END $$`,
		``, []string{`SELECT f()`}, nil,
	},
	"domain in a domain's row": {
		`CREATE DOMAIN touched AS bigint CHECK (touch(VALUE) > 0); CREATE TYPE deep AS (x touched); CREATE TABLE deeper (d deep[])`, ``,
		[]string{`INSERT INTO deeper VALUES (ARRAY[ROW(5)]::deep[])`, `INSERT INTO deeper VALUES ('{"(5)"}')`}, nil,
	},
	"range's difference": {`CREATE FUNCTION pair_diff(float8, float8) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN $1 - $2; END $$; CREATE TYPE span AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = pair_diff); CREATE TABLE spans (s span); INSERT INTO spans SELECT span(i, i + 1) FROM generate_series(1, 300) i; `, ``,
		[]string{`ANALYZE spans`, `CREATE INDEX ON spans USING gist (s)`}, nil},
	"range's order": {
		pairOrder + `CREATE TYPE span AS RANGE (SUBTYPE = pair); CREATE TABLE spans (s span); INSERT INTO spans SELECT span(k, k, '[]') FROM pairs;` + writingCompare,
		``, []string{`SELECT s && s FROM spans`, `SELECT isempty(s * s) FROM spans`}, nil,
	},
	"sending of a type": {`CREATE TYPE own; CREATE FUNCTION own_in(cstring) RETURNS own IMMUTABLE STRICT LANGUAGE internal AS 'int4in'; CREATE FUNCTION own_out(own) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out'; CREATE TYPE own (INPUT = own_in, OUTPUT = own_out, LIKE = int4);
		CREATE FUNCTION own_send(own) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN '\x00000001'; END $$; ALTER TYPE own SET (SEND = own_send); CREATE TABLE owns (o own); INSERT INTO owns VALUES ('5')`, ``, []string{`COPY owns TO STDOUT (FORMAT binary)`}, nil},
	"validator of foreign tables": {
		`CREATE FUNCTION valid(text[], oid) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); END $$; CREATE FOREIGN DATA WRAPPER checked VALIDATOR valid`,
		``, []string{`CREATE SERVER far FOREIGN DATA WRAPPER checked OPTIONS (host 'x')`}, nil,
	},
	"wrapper's functions": {
		`CREATE FUNCTION valid(text[], oid) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); END $$; CREATE FOREIGN DATA WRAPPER empty`, ``,
		[]string{`CREATE FOREIGN DATA WRAPPER checked VALIDATOR valid`, `CREATE FOREIGN DATA WRAPPER checked_2 VALIDATOR public.valid OPTIONS (a 'b')`, `ALTER FOREIGN DATA WRAPPER empty VALIDATOR valid OPTIONS (c 'd')`},
		[]string{`CREATE FOREIGN DATA WRAPPER other`, `CREATE FOREIGN DATA WRAPPER other_2 NO VALIDATOR`, `ALTER FOREIGN DATA WRAPPER empty OPTIONS (a 'b')`, `CREATE SERVER far FOREIGN DATA WRAPPER empty`},
	},
	"changes of structure": {`CREATE TABLE checked (id bigint CHECK (id > 0)); INSERT INTO checked VALUES (1); ALTER TABLE checked ADD CONSTRAINT c CHECK (touch(id) > 0) NOT VALID; CREATE TABLE parts (id bigint) PARTITION BY LIST ((itouch(id))); CREATE TABLE part (id bigint); INSERT INTO part VALUES (1)`, ``,
		[]string{`ALTER TABLE checked VALIDATE CONSTRAINT c`, `ALTER TABLE parts ATTACH PARTITION part FOR VALUES IN (1)`, `ALTER TABLE plain ADD COLUMN c bigint DEFAULT touch(1)`, `ALTER TABLE plain ADD CHECK (touch(id) > 0)`, `ALTER TABLE plain ALTER id TYPE bigint USING touch(id)`,
			`CREATE INDEX ON plain (itouch(id))`, `CREATE MATERIALIZED VIEW m AS SELECT touch(1)`, `CREATE TABLE made AS SELECT touch(1)`, `ALTER TABLE plain ADD COLUMN g bigint GENERATED ALWAYS AS (itouch(id)) STORED`}, []string{`ALTER TABLE pairs ADD COLUMN c bigint DEFAULT 1`}},
	"event trigger by a body": {`CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET n = 99; END $$; CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION et();
		CREATE FUNCTION makes() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE made (i int); END $$; CREATE FUNCTION reads() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM plain'`, ``, []string{`SELECT makes()`, `COMMENT ON TABLE plain IS 'x'`, `DO $$ BEGIN CREATE TEMP TABLE made_2 (i int); END $$`, `DO $$ BEGIN COMMENT ON TABLE plain IS 'y'; END $$`, `DO $$ BEGIN IF true THEN GRANT SELECT ON plain TO PUBLIC; END IF; END $$`}, []string{`SELECT reads()`}},
	"aggregate": {`CREATE FUNCTION ends(bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM public.touch(1); RETURN $1; END $$; CREATE AGGREGATE total(bigint) (SFUNC = int8pl, STYPE = bigint, FINALFUNC = ends); CREATE VIEW totals AS SELECT total(id) FROM plain;
		CREATE AGGREGATE moving(bigint) (SFUNC = int8pl, STYPE = bigint, MSFUNC = int8pl, MINVFUNC = int8mi, MSTYPE = bigint, MFINALFUNC = ends)`, ``, []string{`SELECT total(id) FROM plain`, `SELECT * FROM totals`, `SELECT moving(id) OVER (ORDER BY id ROWS 1 PRECEDING) FROM plain`}, []string{`SELECT sum(id) FROM plain`}},
	"maintenance by a body": {
		`CREATE INDEX at ON plain (itouch(id)); CREATE FUNCTION tidies() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ANALYZE; END $$; CREATE FUNCTION rebuilds() RETURNS void LANGUAGE plpgsql AS $$ BEGIN REINDEX INDEX at; END $$`,
		``, []string{`SELECT tidies()`, `SELECT rebuilds()`, `DO $$ BEGIN ANALYZE; END $$`, `DO $$ BEGIN ANALYZE plain; END $$`, `DO $$ BEGIN REINDEX INDEX at; END $$`, `DO $$ BEGIN REINDEX TABLE plain; END $$`}, []string{`DO $$ BEGIN PERFORM 1; END $$`},
	},
}

// Code that a statement runs without naming it doesn't write behind the check.
func TestCodeThatIsNotNamed(t *testing.T) {
	for name, c := range unnamedWays {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, ofSchema(unnamedSchema))
			run(t, dsn, c.setup, unnamedRow)
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			isUntouched := func() (is bool) {
				require.NoError(t, plain.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM public.orders WHERE n = 0)`).Scan(&is))
				return is
			}
			db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			ctx := tokenctx.With(t.Context(), 10)
			for _, sql := range c.runs {
				_, err := db.ExecContext(ctx, sql)
				if !errors.Is(err, rewrite.ErrRefused) {
					t.Errorf("not refused: %s: %v", sql, err)
				}
			}
			for _, sql := range c.passes {
				_, err := db.ExecContext(ctx, sql)
				require.NoError(t, err, sql)
			}
			require.True(t, isUntouched() || t.Failed())
			for _, sql := range c.runs {
				run(t, dsn, unnamedRow)
				_, err := plain.Exec(t.Context(), c.asRole)
				require.NoError(t, err)
				for _, statement := range []string{sql, `RESET ROLE`} {
					_, err = plain.PgConn().Exec(t.Context(), statement).ReadAll()
					require.NoError(t, err, sql)
				}
				if isUntouched() {
					t.Errorf("no way over a plain connection: %s", sql)
				}
			}
		})
	}
}

// What an ordinary database has of such objects keeps nothing from being sent:
// those of extensions, and a user's own whose functions write no protected table.
func TestOrdinaryObjectsStayUsable(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, unnamedSchema, pairOrder, pairHash, `CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION pg_trgm; CREATE EXTENSION btree_gist;
		CREATE TABLE mails (m citext PRIMARY KEY, h hstore, EXCLUDE USING gist ((m::text) WITH =)); CREATE INDEX ON mails USING gin (h); CREATE INDEX ON mails USING gist ((m::text) gist_trgm_ops); INSERT INTO mails VALUES ('A', 'a=>1'), ('b', 'b=>2');
		CREATE VIEW listed AS SELECT DISTINCT m FROM mails; CREATE STATISTICS st ON (lower(v)), id FROM plain; CREATE INDEX ON pairs (k); ALTER TABLE plain ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON plain USING (id > 0);
		CREATE FUNCTION logs() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN INSERT INTO plain VALUES (9, 'x'); RETURN 1; END $$; CREATE VIEW logged AS SELECT logs() AS l;
		CREATE TYPE span AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi); CREATE TABLE spans (s span)`, unnamedRow)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ctx := tokenctx.With(t.Context(), 10)
	for _, sql := range []string{`SELECT * FROM mails ORDER BY m`, `SELECT * FROM listed WHERE m IN ('a', 'B') AND m LIKE 'a%'`, `SELECT h -> 'a' FROM mails WHERE h ? 'a'`, `SELECT DISTINCT k FROM pairs ORDER BY k`, `SELECT * FROM plain ORDER BY v`,
		`INSERT INTO plain VALUES (8, 'x')`, `SELECT l FROM logged`, `ANALYZE`, `REINDEX TABLE pairs`, `VACUUM plain`, `SELECT s * s FROM spans`, `UPDATE orders SET n = 1, last_token = 10 WHERE id = 1 AND last_token <= 10`} {
		_, err := db.ExecContext(ctx, sql)
		require.NoError(t, err, sql)
	}
}
