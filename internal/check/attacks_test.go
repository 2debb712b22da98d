package check

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

// attacks are texts that got a write, a setting or a change of structure past
// the check at one time. Each kind stays here.
var attacks = map[string]string{
	"a body with an escaped identifier":  `DO $a$ BEGIN UPDATE U&"prot\0065cted_rows" SET value='x'; END $a$`,
	"with an escape sign of its own":     `DO $a$ BEGIN UPDATE U&"prot!0065cted_rows" UESCAPE '!' SET value='x'; END $a$`,
	"an SQL function so":                 `CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $a$ UPDATE U&"prot\0065cted_rows" SET value='x' $a$`,
	"a function of that name":            `DO $a$ BEGIN PERFORM U&"s\0065t_config"('role','postgres',false); END $a$`,
	"a body in a body":                   `DO $a$ BEGIN DO U&'BEGIN UPDATE prot\0065cted_rows SET value = 1; END'; END $a$`,
	"a body in pieces":                   "DO $a$ BEGIN DO 'BEGIN UPDATE prot'\n'ected_rows SET value = 1; END'; END $a$",
	"a schema dropped in a body's body":  `DO $a$ BEGIN DO $b$ BEGIN DROP SCHEMA app CASCADE; END $b$; END $a$`,
	"the path set there":                 `DO $a$ BEGIN DO $b$ BEGIN SET SCHEMA 'app'; END $b$; END $a$`,
	"a body in another language":         `DO $a$ BEGIN DO LANGUAGE plpgsql 'BEGIN NULL; END'; END $a$`,
	"a quoted setting":                   `DO $a$ BEGIN SET "role" = 'app'; END $a$`,
	"a quoted setting, reset":            `DO $a$ BEGIN RESET "Role"; END $a$`,
	"a local one":                        `DO $a$ BEGIN SET LOCAL SESSION AUTHORIZATION x; END $a$`,
	"a variable called function":         `DO $$ DECLARE function text := 'x'; BEGIN EXECUTE function; END $$`,
	"a function called function":         `DO $$ BEGIN EXECUTE function ('x'); END $$`,
	"execute after a trigger":            `DO $$ BEGIN CREATE TRIGGER t BEFORE UPDATE ON jobs EXECUTE FUNCTION f(); EXECUTE procedure; END $$`,
	"return query execute":               `CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE function; END $$`,
	"the path first, then the write":     `SET search_path TO app; UPDATE accounts SET balance = 0`,
	"the path by a call":                 `SELECT set_config('search_path', 'app', false); DELETE FROM accounts`,
	"the path in a transaction":          `BEGIN; SET LOCAL search_path TO app; DELETE FROM accounts; COMMIT`,
	"the path, then TRUNCATE":            `SET SCHEMA 'app'; TRUNCATE accounts`,
	"the path, then ALTER":               `SET search_path = app; ALTER TABLE accounts DISABLE TRIGGER ALL`,
	"a setting's name cut short":         `SELECT set_config('session_replication_roleZ'::varchar(24), 'replica', false)`,
	"the path's name cut short":          `SELECT set_config('search_pathX'::varchar(11), 'app', false)`,
	"setval with white space":            `SELECT setval(E'\twrite_epoch', 1)`,
	"setval by oid":                      `SELECT setval('16460', 1)`,
	"setval by oid, cast":                `SELECT setval('16460'::regclass, 1)`,
	"setval cut short":                   `SELECT setval('write_epochX'::varchar(11)::regclass, 1)`,
	"setval quoted":                      `SELECT setval('"write_epoch"', 1)`,
	"setval by its table":                `SELECT setval(pg_get_serial_sequence('fencing.tokens', 'n'), 1)`,
	"setval in a default":                `ALTER TABLE jobs ADD COLUMN a bigint DEFAULT setval('16460', 1)`,
	"a new built-in comparison":          `CREATE OR REPLACE FUNCTION pg_catalog.int8lt(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'`,
	"the built-in operator moved":        `ALTER OPERATOR pg_catalog.<(bigint, bigint) SET SCHEMA other`,
	"without its schema":                 `ALTER OPERATOR <(bigint, bigint) SET SCHEMA other`,
	"its function renamed":               `ALTER FUNCTION int8lt(bigint, bigint) RENAME TO x`,
	"an operator in pg_catalog":          `CREATE OPERATOR pg_catalog.< (LEFTARG = bigint, RIGHTARG = text, FUNCTION = f)`,
	"catalogs made writable":             `SET allow_system_table_mods = on`,
	"a table in pg_catalog":              `CREATE TABLE pg_catalog.foo (id int)`,
	"SQL in an argument":                 `SELECT * FROM xpath_table('id', 'value', 'jobs', '/a', 'true; DELETE FROM x') AS t(id int)`,
	"SQL in crosstab":                    `SELECT * FROM crosstab('SELECT 1') AS t(id int)`,
	"SQL for later":                      `SELECT cron.schedule('x', '* * * * *', 'DELETE FROM x')`,
	"a trigger's argument":               `CREATE TRIGGER t AFTER DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION check_foreign_key(1, 'cascade', 'id', 'public.protected_rows', 'id')`,
	"a foreign table's program":          `CREATE FOREIGN TABLE ft (x text) SERVER f OPTIONS (program 'touch x')`,
	"set_config as an aggregate":         `CREATE AGGREGATE flip(text, boolean) (SFUNC = set_config, STYPE = text, INITCOND = 'role')`,
	"dblink as an operator":              `CREATE OPERATOR === (FUNCTION = dblink_exec, LEFTARG = text, RIGHTARG = text)`,
	"setval as an operator":              `CREATE OPERATOR === (FUNCTION = setval, LEFTARG = regclass, RIGHTARG = bigint)`,
	"lo_import as a cast":                `CREATE CAST (text AS oid) WITH FUNCTION lo_import(text)`,
	"set_config under another name":      `ALTER FUNCTION set_config(text, text, boolean) RENAME TO sc`,
	"dblink in another schema":           `ALTER FUNCTION dblink_exec(text, text) SET SCHEMA other`,
	"a path stored in a function":        `CREATE FUNCTION f() RETURNS text BEGIN ATOMIC SELECT set_config('search_path', 'app', false); END`,
	"a path stored in a view":            `CREATE VIEW pv AS SELECT set_config('search_path', 'app', false)`,
	"a path stored in a default":         `ALTER TABLE users ALTER name SET DEFAULT set_config('search_path', 'app', false)`,
	"a path stored in a rule":            `CREATE RULE r AS ON INSERT TO jobs DO ALSO SELECT set_config('search_path', 'app', false)`,
	"a foreign table of the same name":   `CREATE FOREIGN TABLE other.accounts (id bigint) SERVER loop OPTIONS (schema_name 'app')`,
	"a trigger with arguments in a body": `DO $a$ BEGIN CREATE TRIGGER t BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION check_foreign_key(1, E'prot\x65cted_rows'); END $a$`,
	"a foreign table in a body":          `DO $a$ BEGIN CREATE FOREIGN TABLE ft (a int) SERVER loop OPTIONS (table_name E'prot\x65cted_rows'); END $a$`,
	"a user's setting in a body":         `DO $$ BEGIN ALTER USER postgres SET "role" = none; END $$`,
	"a type's tables in a body":          `DO $$ BEGIN ALTER TYPE rowtype DROP ATTRIBUTE a CASCADE; END $$`,
	"every right in a body":              `DO $$ BEGIN GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC; END $$`,
	"a catalog written in a body":        `DO $$ BEGIN UPDATE pg_catalog.pg_class SET relname = 'x'; END $$`,
	"a row killed":                       `SELECT heap_force_kill('protected_rows'::regclass, ARRAY['(0,1)']::tid[])`,
	"a server file copied to":            `COPY (SELECT 1) TO 'x.conf'`,
	"a server file written":              `SELECT pg_file_write('x.conf', 'x', true)`,
	"a schema that comes first":          `ALTER SCHEMA other RENAME TO postgres`,
	"an index that takes the name":       `ALTER TABLE jobs RENAME CONSTRAINT jobs_pkey TO protected_rows`,
	"a command of the server":            `ALTER SYSTEM SET archive_command = 'x'`,
	"a language renamed":                 `ALTER LANGUAGE plpgsql RENAME TO sql2`,
	"a foreign table's program, later":   `ALTER FOREIGN TABLE ft OPTIONS (ADD program 'touch x')`,
	"a type and its tables":              `ALTER TYPE rowtype ALTER ATTRIBUTE last_token TYPE float4 CASCADE`,
	"a type's attribute and its tables":  `ALTER TYPE rowtype RENAME ATTRIBUTE last_token TO x CASCADE`,
	"a constraint that takes the name":   `CREATE TEMP TABLE x (id int CONSTRAINT protected_rows PRIMARY KEY)`,
	"rights on every table":              `GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC`,
	"a function's setting":               `ALTER FUNCTION f() SET session_replication_role = replica`,
	"libraries of later sessions":        `ALTER ROLE app SET session_preload_libraries = 'x'`,
	"a call in a check":                  `ALTER TABLE jobs ADD CONSTRAINT c CHECK (bump_row(id, 'x') IS NULL)`,
	"a call as a field":                  `ALTER TABLE jobs ADD CONSTRAINT c CHECK (jobs.bump_row = 'x')`,
	"a call in a trigger's condition":    `CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.bump_row = 'x') EXECUTE FUNCTION f()`,
	"a call in a domain":                 `CREATE DOMAIN d AS int CHECK (bump_row(VALUE, 'x') IS NULL)`,
	"a hexadecimal token":                `INSERT INTO protected_rows (id, last_token) SELECT 9, 0x8`,
	"a token with an underscore":         `UPDATE protected_rows SET last_token = 1_0 WHERE last_token < 1_0`,
	"a table that cascades, renamed":     `ALTER TABLE app.accounts RENAME TO x`,
	"a trigger dropped by its table":     `DROP TRIGGER guard_trg ON protected_rows`,
	"execute behind explain":             `EXPLAIN ANALYZE EXECUTE p`,
	"execute behind a table":             `CREATE TABLE x AS EXECUTE p`,
}

func TestAttacksAreRefused(t *testing.T) {
	p := casesPolicy(t, Strict)
	for name, sql := range attacks {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, p.Plan(sql).Refusal(), ErrRefused) })
	}
	require.ErrorIs(t, p.Plan(`DO $$ BEGIN UPDATE `+strings.Repeat("x", 64)+` SET v = 5; END $$`).Refusal(), ErrRefused)
	odd, err := NewPolicy(Table{Schema: "public", Name: `odd"`, Mode: Strict})
	require.NoError(t, err)
	require.ErrorIs(t, odd.Plan(`DO $$ BEGIN UPDATE "odd""" SET v = 5; END $$`).Refusal(), ErrRefused)
	// a name of 63 bytes is what a longer identifier is cut to
	long := "a b2345678901234567890123456789012345678901234567890123456789012"
	require.Len(t, long[:63], 63)
	q, err := NewPolicy(Table{Name: long[:63], Mode: Strict})
	require.NoError(t, err)
	require.ErrorIs(t, q.Plan(`UPDATE "`+long[:63]+`zz" SET value = 1`).Refusal(), ErrRefused)
}

// A closure reaches through every door that an expression or a type is.
func TestClosureReaches(t *testing.T) {
	base, err := NewPolicy(Table{Name: "metrics", Mode: Strict})
	require.NoError(t, err)
	public := func(name string) Name { return Name{"public", name} }
	p, err := base.ForPath("public").WithClosure(Closure{
		Relatives:      []Relative{{public("metrics_1"), public("metrics")}, {public("metrics_1a"), public("metrics")}},
		InsertTriggers: []TokenTrigger{{Name: public("metrics_1a"), Trigger: "t", Function: public("f")}},
		Functions:      []Name{public("json_array")},
		Writers:        []Writer{{Name: public("jobs"), Into: public("metrics"), Events: []string{"UPDATE", "TRUNCATE"}}},
	})
	require.NoError(t, err)
	const upsert = ` (id, last_token) VALUES (1, 8) ON CONFLICT (id) DO UPDATE SET last_token = EXCLUDED.last_token WHERE t.last_token < EXCLUDED.last_token`
	for _, sql := range []string{
		`INSERT INTO metrics AS t` + upsert, `INSERT INTO metrics_1 AS t` + upsert,
		`SELECT json_array(1)`,
		`UPDATE jobs SET a = 1`, `TRUNCATE jobs`, `TRUNCATE jobs CASCADE`, `ALTER TABLE jobs SET SCHEMA other`,
	} {
		require.ErrorIs(t, p.Plan(sql).Refusal(), ErrRefused, sql)
	}
	for _, sql := range []string{`INSERT INTO jobs VALUES (1)`, `DELETE FROM jobs`, `SELECT 1 FROM jobs`} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
}

// Ordinary texts that were refused without need at one time.
func TestOrdinaryTextsPass(t *testing.T) {
	p := casesPolicy(t, Lease)
	for _, sql := range []string{
		`CREATE TEMP TABLE x WITH (fillfactor = 70) AS SELECT 1 AS a`,
		`EXPLAIN CREATE TABLE x AS SELECT 1`,
		`EXPLAIN DECLARE c CURSOR FOR SELECT 1`,
		`CREATE RULE r AS ON INSERT TO jobs DO ALSO NOTIFY jobs`,
		`DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_type WHERE typname = 'mood') THEN CREATE TYPE mood AS ENUM ('ok'); END IF; END $$`,
		`DO $$ BEGIN UPDATE users SET role = 'admin', name = E'a\nb' WHERE id = 1 ORDER BY 1; END $$`,
		`DO $$ BEGIN SET LOCAL work_mem = '8MB'; END $$`,
		`DO $$ BEGIN CREATE TRIGGER t BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION touch(); GRANT EXECUTE ON FUNCTION touch() TO app; END $$`,
		`CREATE FUNCTION f() RETURNS SETOF jobs LANGUAGE sql AS 'SELECT * FROM jobs ORDER BY id'`,
		`DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_name = 'users') THEN UPDATE users SET name = 'x'; PERFORM pg_advisory_unlock_all(); END IF; END $$`,
		`CREATE TEMP TABLE staging (LIKE protected_rows INCLUDING ALL)`,
		`WITH v(id, k) AS (VALUES (1, 8::bigint)) INSERT INTO protected_rows (id, last_token) SELECT v.id, v.k FROM v`,
		`CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT 1'`,
		`SELECT set_config('app.' || $1, $2, true)`,
		`SELECT schedule(1)`,
		"SELECT 1 FROM protected_rows -- " + strings.Repeat("=", 300) + "\n/*" + strings.Repeat("*", 300) + "*/",
		`ALTER TABLE users DROP COLUMN metrics`,
		`ALTER TABLE users RENAME COLUMN metrics TO m`,
		`COMMENT ON COLUMN users.metrics IS 'x'`,
		`CREATE TABLE other.protected_rows (id int)`,
		`ALTER TABLE accounts ADD COLUMN a int`,
		`DROP TABLE other.protected_rows`,
		`INSERT INTO protected_rows (id, last_token) SELECT v.id, v.tok FROM (VALUES (1, 8::bigint)) v(id, tok)`,
		`MERGE INTO protected_rows t USING (VALUES (1, 8::bigint)) v(id, tok) ON v.id = t.id WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (v.id, v.tok)`,
		`SELECT setval('users_id_seq', 5)`, `SELECT setval('"users_id_seq"'::regclass, 5)`, `SELECT setval(pg_get_serial_sequence('users', 'id'), 5)`,
	} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
}

// A common ancestor of tables of two resources needs the tokens of both.
func TestSharedAncestor(t *testing.T) {
	p, err := NewPolicy(Table{Name: "a", Mode: Strict, Resource: "a"}, Table{Name: "b", Mode: Strict, Resource: "b"}, Table{Name: "c", Mode: Strict, Resource: "a"})
	require.NoError(t, err)
	relative := func(name, of string) Relative {
		return Relative{Name: Name{Schema: "public", Name: name}, Of: Name{Schema: "public", Name: of}}
	}
	p, err = p.WithClosure(Closure{Relatives: []Relative{relative("ab", "a"), relative("ab", "b"), relative("ac", "a"), relative("ac", "c")}})
	require.NoError(t, err)
	const guarded = `UPDATE %s SET last_token = $1 WHERE last_token < $1`
	for table, ok := range map[string]bool{"ab": false, "ac": true, "a": true} {
		plan := p.Plan(strings.Replace(guarded, "%s", table, 1))
		require.NoError(t, plan.Refusal())
		ctx := tokenctx.WithResource(tokenctx.WithResource(t.Context(), "a", 7), "b", 8)
		_, err := plan.BindAll(ctx, []driver.NamedValue{{Ordinal: 1, Value: tokenctx.Arg}})
		require.Equal(t, ok, err == nil, "%s: %v", table, err)
	}
}
