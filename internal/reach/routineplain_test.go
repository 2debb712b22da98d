package reach

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plainBodies are ordinary bodies in PL/pgSQL.
var plainBodies = map[string]string{
	"an upsert":            `BEGIN INSERT INTO a (id, n) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n; END`,
	"a label":              `<<outer>> DECLARE n int; BEGIN <<inner>> LOOP EXIT inner WHEN n > 5; CONTINUE outer; END LOOP inner; END outer`,
	"an option":            "\n#variable_conflict use_column\n#print_strict_params on\nBEGIN RETURN; END;",
	"a loop":               `DECLARE r record; BEGIN FOR r IN SELECT * FROM a WHERE n IN (1, 2) LOOP UPDATE b SET n = r.n WHERE id = r.id; END LOOP; FOR i IN REVERSE 10..1 BY 2 LOOP NULL; END LOOP; WHILE x < 5 LOOP x := x + 1; END LOOP; END`,
	"a loop over writes":   `BEGIN FOR r IN DELETE FROM a RETURNING * LOOP INSERT INTO b SELECT r.*; END LOOP; FOR r IN WITH d AS (DELETE FROM a RETURNING *) SELECT * FROM d LOOP NULL; END LOOP; END`,
	"FOREACH":              `BEGIN FOREACH x SLICE 1 IN ARRAY ARRAY[1, 2] LOOP s := s + x; END LOOP; FOR a, b.c IN SELECT 1, 2 LOOP NULL; END LOOP; END`,
	"CASE":                 `BEGIN x := CASE WHEN a THEN 1 ELSE CASE b WHEN 2 THEN 3 END END; CASE x WHEN 1, 2 THEN UPDATE a SET n = CASE WHEN n > 1 THEN 2 ELSE 3 END; ELSE NULL; END CASE; CASE WHEN x > 1 THEN DELETE FROM a; END CASE; END`,
	"IF":                   `BEGIN IF TG_OP = 'DELETE' THEN RETURN OLD; ELSIF x IS NULL OR (CASE WHEN y THEN true ELSE false END) THEN RETURN NULL; ELSEIF z THEN NULL; ELSE UPDATE a SET n = 1; END IF; END`,
	"exceptions":           `BEGIN BEGIN INSERT INTO a VALUES (1); EXCEPTION WHEN unique_violation OR SQLSTATE '23514' THEN GET STACKED DIAGNOSTICS m = MESSAGE_TEXT; RAISE; WHEN OTHERS THEN NULL; END; EXCEPTION WHEN OTHERS THEN RAISE WARNING 'it: % %', SQLERRM, m; END`,
	"RAISE":                `BEGIN RAISE EXCEPTION 'insert into % failed; drop it', x USING ERRCODE = 'P0001', HINT = 'execute ' || y; RAISE NOTICE USING MESSAGE = 'x'; ASSERT x > 1, 'small'; END`,
	"GET DIAGNOSTICS":      `DECLARE n int; BEGIN UPDATE a SET n = 1; GET DIAGNOSTICS n = ROW_COUNT; IF NOT FOUND THEN RETURN; END IF; END`,
	"RETURN QUERY":         `DECLARE query text := 'x'; BEGIN RETURN QUERY SELECT * FROM a; RETURN QUERY (SELECT 1); RETURN QUERY DELETE FROM a RETURNING *; RETURN QUERY EXECUTE 'SELECT * FROM a WHERE id = $1' USING x; RETURN NEXT r; RETURN query; END`,
	"cursors":              `DECLARE c CURSOR (k int, l text) FOR SELECT * FROM a WHERE id = k; d NO SCROLL CURSOR IS SELECT 1; e refcursor; BEGIN OPEN c(1, 'x'); FETCH NEXT FROM c INTO x, y; MOVE FORWARD 2 FROM c; UPDATE a SET n = 1 WHERE CURRENT OF c; CLOSE c; OPEN e FOR SELECT 1; OPEN e NO SCROLL FOR EXECUTE 'SELECT 1' USING x; FOR r IN c(2, 'y') LOOP NULL; END LOOP; FOR r IN d LOOP NULL; END LOOP; END`,
	"temporary tables":     `BEGIN CREATE TEMP TABLE IF NOT EXISTS t (id bigserial PRIMARY KEY, n numeric(10, 2) NOT NULL DEFAULT -1.5, s text DEFAULT '', at timestamptz DEFAULT now() NOT NULL, b bool DEFAULT false) ON COMMIT DROP; CREATE TEMPORARY TABLE u AS SELECT * FROM a WHERE v LIKE 'x%'; CREATE UNIQUE INDEX ON t (lower(s)); CREATE SEQUENCE s; ANALYZE t; DROP TABLE IF EXISTS t, u; DROP INDEX i; DROP SEQUENCE s RESTRICT; END`,
	"EXECUTE of constants": `BEGIN EXECUTE 'UPDATE a SET n = $1, m = ''x; y''' USING x; EXECUTE $q$ DELETE FROM a; INSERT INTO b SELECT 1 $q$ INTO x USING y; FOR r IN EXECUTE 'SELECT 1' LOOP NULL; END LOOP; EXECUTE E'TRUNCATE a' INTO STRICT y; END`,
	"an audit trigger":     `BEGIN IF TG_OP = 'INSERT' THEN INSERT INTO audit SELECT TG_TABLE_NAME, TG_OP, to_jsonb(NEW); RETURN NEW; END IF; INSERT INTO audit (t, op, old) VALUES (TG_TABLE_NAME::text, TG_OP, row_to_json(OLD)); RETURN OLD; END`,
	"updated_at":           `BEGIN NEW.updated_at = now(); NEW.v := coalesce(NEW.v, 'x'); NEW."Name" = 1; RETURN NEW; END;`,
	"arrays":               `DECLARE a int[] DEFAULT '{}'; r rec; BEGIN a[1:2] := ARRAY[1, 2]; a[f(1)] = 3; r.x[2].y := 5; $1 := 7; a := a || 4; x =-1; END`,
	"declarations":         `DECLARE x CONSTANT int NOT NULL := 5; y a.n%TYPE; z a%ROWTYPE; v varchar(10) COLLATE "C" DEFAULT 'a;b'; w ALIAS FOR $1; DECLARE u numeric(10, 2) = 1; open int; close int; comment text; BEGIN close := open; comment = 'x'; END`,
	"comments":             "-- EXECUTE x; DROP TABLE orders\nBEGIN /* BEGIN /* ; */ CREATE TRIGGER */ NULL; -- ALTER TABLE a\nEND -- end",
	"names in quotes":      `DECLARE "end" timestamptz; "when" int := 1; copy int; BEGIN "end" := now(); copy := "when"; IF "when" > 1 THEN copy = 2; END IF; RETURN QUERY SELECT "end", "into" FROM a WHERE a."then" > "when"; END`,
	"names":                `BEGIN PERFORM execute_it(x), p.set_config FROM "insert" p; UPDATE "drop" SET "alter" = 1; SELECT r.update, r.delete INTO x, y FROM r; END`,
	"locks":                `BEGIN LOCK TABLE a IN SHARE MODE; PERFORM 1 FROM a FOR UPDATE OF a SKIP LOCKED; SELECT 1 INTO x FROM a FOR NO KEY UPDATE; PERFORM pg_advisory_xact_lock(1); NOTIFY c, 'x'; PERFORM pg_notify('c', x); LISTEN c; UNLISTEN *; END`,
	"settings":             `BEGIN SET LOCAL work_mem = '1GB'; PERFORM set_config('app.t', x, true); RESET work_mem; SET LOCAL search_path TO a, b; SET TRANSACTION READ ONLY; SET CONSTRAINTS ALL DEFERRED; END`,
	"grants":               `BEGIN GRANT SELECT, INSERT, UPDATE ON a TO b; REVOKE EXECUTE ON FUNCTION f(int) FROM PUBLIC; COMMENT ON TABLE a IS 'execute'; END`,
	"MERGE":                `BEGIN MERGE INTO a USING b ON a.id = b.id WHEN MATCHED AND b.n > 1 THEN UPDATE SET n = 1 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (b.id); END`,
	"writes in WITH":       `BEGIN WITH d AS (DELETE FROM a RETURNING *), u AS MATERIALIZED (UPDATE b SET n = 1 RETURNING id) INSERT INTO c SELECT * FROM d; RETURN; END`,
	"COPY":                 `BEGIN COPY a (x) FROM '/x'; COPY (SELECT * FROM a) TO '/y'; COPY a TO '/z'; TRUNCATE TABLE a, ONLY (b) RESTART IDENTITY CASCADE; REFRESH MATERIALIZED VIEW CONCURRENTLY s.v; END`,
	"transactions":         `BEGIN FOR i IN 1..3 LOOP CALL p(i); COMMIT; ROLLBACK AND CHAIN; END LOOP; END`,
	"VALUES and TABLE":     `BEGIN RETURN QUERY VALUES (1), (2); RETURN QUERY TABLE a; VALUES (1) INTO x; END`,
}

// plainSQLBodies are ordinary bodies in SQL.
var plainSQLBodies = map[string]string{
	"a query": `SELECT 1`, "several": `UPDATE a SET n = 1; DELETE FROM b;; SELECT $1 + 1;`, "brackets": `(SELECT 1) UNION (SELECT 2)`, "nothing": ``, "into": `SELECT 1 AS x INTO made`,
	"atomic": `BEGIN ATOMIC UPDATE a SET n = CASE WHEN (n > 1) THEN 1 ELSE 2 END; SELECT f(1); RETURN 5; END`, "return": `RETURN (a.b + 1)`, "a procedure": `CALL p(1); INSERT INTO a VALUES (';')`,
}

func TestPlainBodies(t *testing.T) {
	for name, body := range plainBodies {
		require.Empty(t, readRoutine("plpgsql", body).unread, name)
		require.Empty(t, readRoutine("plpgsql", body).isLost, name)
	}
	for name, body := range plainSQLBodies {
		require.Empty(t, readRoutine("sql", body).unread, name)
	}
	require.Empty(t, readRoutine("internal", "public.f( public.g(").unread)
}

// What isn't plain is told why.
func TestUnreadBodies(t *testing.T) {
	for body, why := range map[string]string{
		`BEGIN EXECUTE x; END`: "runs SQL that it makes (EXECUTE of what is no constant)", `BEGIN EXECUTE 'a' || x; END`: "runs SQL that it makes", `BEGIN EXECUTE format('SELECT 1'); END`: "runs SQL that it makes", `BEGIN EXECUTE ('SELECT 1'); END`: "runs SQL that it makes",
		`BEGIN FOR r IN EXECUTE x LOOP NULL; END LOOP; END`: "runs SQL that it makes", `BEGIN RETURN QUERY EXECUTE x USING y; END`: "runs SQL that it makes", `BEGIN OPEN c FOR EXECUTE x; END`: "runs SQL that it makes",
		`BEGIN EXECUTE E'SELECT \x31'; END`: "runs SQL that it makes", `BEGIN EXECUTE 'SELECT b\141d()'; END`: "runs a constant with a backslash",
		`BEGIN UPDATE U&"!006frders" UESCAPE E'!' SET v = 1; END`: "has names or strings with UESCAPE", `BEGIN PERFORM U&"!0062ad" UESCAPE $$!$$ (); END`: "has names or strings with UESCAPE", `BEGIN EXECUTE U&'SELECT 1'; END`: "runs SQL that it makes", `BEGIN EXECUTE 'SELECT 1'::text; END`: "runs SQL that it makes", `BEGIN EXECUTE 'EXECUTE p'; END`: "has the statement EXECUTE", `BEGIN CREATE TABLE x AS EXECUTE p; END`: "runs SQL that it makes (EXECUTE)",
		`BEGIN EXECUTE 'DO $d$ BEGIN END $d$'; END`: "has the statement DO", `BEGIN DO 'BEGIN END'; END`: "has the statement DO", `BEGIN ALTER TABLE a RENAME TO b; END`: "has the statement ALTER TABLE", `BEGIN IF x THEN ALTER SEQUENCE s RESTART; END IF; END`: "has the statement ALTER SEQUENCE",
		`BEGIN CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; END`: "has the statement CREATE FUNCTION", `BEGIN CREATE TEMP VIEW v AS SELECT 1; END`: "has the statement CREATE VIEW", `BEGIN DROP VIEW v; END`: "has the statement DROP VIEW", `BEGIN DROP TABLE a CASCADE; END`: "has DROP with CASCADE",
		`BEGIN CREATE TABLE a (LIKE b); END`: "makes a table with LIKE", `BEGIN CREATE TABLE a PARTITION OF b DEFAULT; END`: "makes a table with PARTITION", `BEGIN CREATE TABLE a (i int DEFAULT f()); END`: "makes a table with DEFAULT", `BEGIN CREATE TABLE a (i int CHECK (f())); END`: "makes a table with CHECK", `BEGIN CREATE TABLE a (i int DEFAULT 1 + f()); END`: "makes a table with DEFAULT",
		`BEGIN PREPARE p AS DELETE FROM a; END`: "has the statement PREPARE", `BEGIN IMPORT FOREIGN SCHEMA s FROM SERVER x INTO y; END`: "has the statement IMPORT", `BEGIN SET standard_conforming_strings = off; END`: "sets standard_conforming_strings", `BEGIN COPY a FROM PROGRAM 'x'; END`: "runs a program",
		`BEGIN PERFORM dblink_exec('x'); END`: "calls dblink_exec, which runs SQL that it is given", `BEGIN x := query_to_xml(y, true, true, ''); END`: "calls query_to_xml", `BEGIN PERFORM cron.schedule('x', 'y'); END`: "calls schedule",
		`BEGIN FOR r IN EXPLAIN ANALYZE DELETE FROM a LOOP NULL; END LOOP; END`: "goes through EXPLAIN", `BEGIN FOR r IN EXPLAIN (ANALYZE) UPDATE a SET n = (1) LOOP NULL; END LOOP; END`: "goes through EXPLAIN", `BEGIN RETURN QUERY EXPLAIN ANALYZE DELETE FROM a; END`: "goes through EXPLAIN", `BEGIN EXPLAIN ANALYZE DELETE FROM a; END`: "has the statement EXPLAIN",
		`BEGIN UPDATE a b c d e f SET x = 1; END`: "has UPDATE of a table that cannot be told", `BEGIN WITH x AS (UPDATE a b c d e f SET x = 1) SELECT 1; END`: "has UPDATE of a table that cannot be told", `BEGIN TRUNCATE a; TRUNCATE; END`: "has TRUNCATE of a table that cannot be told", `BEGIN INSERT a VALUES (1); END`: "has INSERT of a table that cannot be told",
		`DECLARE insert text; BEGIN END`: `has a variable or parameter that is called "insert"`, `DECLARE c CURSOR (x int, merge text) FOR SELECT 1; BEGIN END`: `is called "merge"`, `BEGIN FOR update IN 1..2 LOOP END LOOP; END`: `is called "update"`,
		`SELECT 1`: "cannot be followed", `BEGIN NULL`: "ends within a statement", `BEGIN x := (1; END`: "cannot be followed", `BEGIN NULL; END; NULL;`: "cannot be followed", `BEGIN IF x THEN NULL; END; END`: "cannot be followed", `BEGIN x := 1$a$; DELETE FROM a$a$; END`: "has a number",
		`BEGIN VACUUM a; END`: "has the statement VACUUM", `BEGIN SECURITY LABEL ON TABLE a IS 'x'; END`: "has the statement SECURITY", `BEGIN DROP OWNED BY x; END`: "has the statement DROP OWNED", `BEGIN CLUSTER a; END`: "has the statement CLUSTER", `BEGIN REINDEX TABLE a; END`: "has the statement REINDEX",
	} {
		require.Contains(t, readRoutine("plpgsql", body).unread, why, body)
	}
	for body, why := range map[string]string{
		`BEGIN ATOMIC SELECT 1; DO 'x'; END`: "has the statement DO", `CREATE VIEW v AS SELECT 1`: "has the statement CREATE VIEW", `SELECT 1; EXECUTE p`: "has the statement EXECUTE", `SELECT (1; DELETE FROM a`: "cannot be followed", `RETURN dblink('x')`: "calls dblink",
	} {
		require.Contains(t, readRoutine("sql", body).unread, why, body)
	}
	for _, language := range []string{"plpython3u", "plperl", "java", givenLanguage} {
		require.NotEmpty(t, readRoutine(language, "").unread, language)
	}
	require.Contains(t, (&catalogRoutine{Language: "plpgsql", Source: `BEGIN NULL; END`, ArgNames: []string{"x", "Merge"}}).read().unread, `is called "merge"`)
	require.Empty(t, (&catalogRoutine{Language: "plpgsql", Source: `BEGIN NULL; END`, ArgNames: []string{"start", "end", "when", "copy"}}).read().unread)
	require.Contains(t, (&catalogRoutine{Language: "sql", Defaults: `dblink('x')`}).read().unread, "calls dblink")
	require.Contains(t, (&catalogRoutine{Language: "sql", Settings: []string{"standard_conforming_strings=off"}}).read().unread, "sets standard_conforming_strings")
}

// A plain body into which any statement of an unknown word is put isn't plain.
func TestUnknownStatementsAreUnread(t *testing.T) {
	var bodies []string
	for _, name := range slices.Sorted(maps.Keys(plainBodies)) {
		if name != "comments" { // in one it would be none
			bodies = append(bodies, plainBodies[name])
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		body := rapid.SampledFrom(bodies).Draw(r, "body")
		word := rapid.StringMatching(`[a-z][a-z_]{2,12}`).Filter(func(w string) bool {
			return !plainSQL[w] && !plainStatements[w] && !reservedWords[w] && !misleadingNames[w] && w != "open" && w != "return"
		}).Draw(r, "word")
		rest := rapid.SampledFrom([]string{` TABLE orders`, ` x`, `(1)`, ``, ` 'a string; x'`, ` a AS b`}).Draw(r, "rest")
		statement := " " + rapid.SampledFrom([]string{word, strings.ToUpper(word)}).Draw(r, "case") + rest + "; "
		var places []int
		upper := strings.ToUpper(body)
		for i := range upper {
			if strings.HasPrefix(upper[i:], " END") && len(upper[i:]) <= len(" END OUTER ;-- END") {
				places = append(places, i) // behind the last statement
			}
		}
		place := rapid.SampledFrom(places).Draw(r, "place")
		if source := body[:place] + statement + body[place:]; readRoutine("plpgsql", source).unread == "" {
			r.Fatalf("is taken for plain: %s", source)
		}
	})
}

// What sets the way in which strings are read may be called by a quoted name, or be an
// update of a view.
func TestBodiesThatMaySetHowStringsAreRead(t *testing.T) {
	for _, body := range []string{
		`BEGIN PERFORM "set_config"('standard_conforming_' || 'strings', 'off', true); END`, `BEGIN PERFORM pg_catalog."set_config"(x, y, z); END`, `BEGIN PERFORM set_config(x, y, z); END`,
	} {
		require.True(t, readRoutine("plpgsql", body).has(stringsSetting), body)
	}
	require.False(t, readRoutine("plpgsql", `BEGIN PERFORM set_config('app.x', y, z); END`).has(stringsSetting))
	b := closureBuilder{facts: &catalog{SystemViews: []catalogRelation{{Schema: "public", Name: "My_settings"}}}}
	require.True(t, b.setsBySystemView(readRoutine("plpgsql", `BEGIN UPDATE pg_settings SET setting = 'off'; END`)))
	require.True(t, b.setsBySystemView(readRoutine("plpgsql", `BEGIN UPDATE public.my_settings SET setting = 'off'; END`)))
	require.False(t, b.setsBySystemView(readRoutine("plpgsql", `BEGIN UPDATE jobs SET n = 1; END`)))
}

// A row that a trigger's function returns isn't told by its name if a variable has that name.
func TestChangesUnderNamesOfTheTriggersOwn(t *testing.T) {
	require.False(t, readChange(`BEGIN IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END`, true).whole)
	require.True(t, readChange(`DECLARE old orders := ROW(2, 'x', 0); BEGIN IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END`, true).whole)
	require.True(t, readChange(`DECLARE tg_op text := 'DELETE'; BEGIN IF tg_op = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END`, true).whole)
	require.True(t, readChange(`DECLARE new orders; BEGIN RETURN NEW; END`, true).whole)
}
