package migrations_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// Operators, functions and casts of the writer's own come first on its
// search_path, and don't reach the checks.
func TestWallWithAHostileSearchPath(t *testing.T) {
	for _, mode := range []string{"strict", "lease"} {
		for _, level := range []string{"enforce", "attested"} {
			dsn, conn := walled(t, mode, level)
			exec(t, conn, `CREATE SCHEMA mine;
				CREATE FUNCTION mine.yes(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
				CREATE FUNCTION mine.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
				CREATE FUNCTION mine.yes(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true';
				CREATE FUNCTION mine.ltrim(text, text) RETURNS text LANGUAGE sql AS $f$SELECT ''::pg_catalog.text$f$;
				CREATE FUNCTION mine.octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT 1';
				CREATE FUNCTION mine.flip(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 60::bigint';
				CREATE OPERATOR mine.~ (RIGHTARG = bigint, FUNCTION = mine.flip);
				CREATE FUNCTION mine.current_setting(text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''60''';
				CREATE FUNCTION mine.pg_sequence_last_value(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 9223372036854775807';
				CREATE DOMAIN mine.int8 AS int4; CREATE DOMAIN mine.text AS varchar(1);
				GRANT USAGE ON SCHEMA mine TO PUBLIC; GRANT SELECT, UPDATE, INSERT, DELETE ON t TO PUBLIC`)
			for _, op := range []string{"<", "<=", ">", ">=", "=", "<>"} {
				exec(t, conn,
					fmt.Sprintf("CREATE OPERATOR mine.%s (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = mine.yes); "+
						"CREATE OPERATOR mine.%[1]s (LEFTARG = text, RIGHTARG = text, FUNCTION = mine.yes);"+
						"CREATE OPERATOR mine.%[1]s (LEFTARG = int, RIGHTARG = int, FUNCTION = mine.yes)", op))
			}
			_, roleDSN := newRole(t, dsn)
			writer := open(t, with(roleDSN, "search_path", "mine, pg_catalog, public"))
			require.True(t, get[bool](t, writer, "SELECT 1::bigint > 2::bigint"), "the hostile operator is in force")
			for _, sql := range []string{
				"UPDATE public.t SET v = 'new', last_token = 49 WHERE public.t.id OPERATOR(pg_catalog.=) 1",
				"UPDATE public.t SET v = 'new', last_token = 101 WHERE public.t.id OPERATOR(pg_catalog.=) 1",
				"UPDATE public.t SET v = 'new' WHERE public.t.id OPERATOR(pg_catalog.=) 1",
				"INSERT INTO public.t VALUES (3, 'new')", "INSERT INTO public.t VALUES (3, 'new', 101)", "DELETE FROM public.t",
				"SET LOCAL fencing.token = '49'; DELETE FROM public.t", "SET LOCAL fencing.token = '101'; DELETE FROM public.t",
				"SET LOCAL fencing.token = '060'; DELETE FROM public.t", "SET LOCAL fencing.token = '6x'; DELETE FROM public.t",
			} {
				require.Regexp(t, "^FN00[1-4] ", refusal(t, inTx(t, writer, sql)), sql)
			}
			require.NoError(t, inTx(t, writer, "SET LOCAL fencing.token = '60'; UPDATE public.t SET v = 'new', last_token = 60 WHERE id OPERATOR(pg_catalog.=) 1"))
		}
	}
}

func TestWallAgainstReplicaRole(t *testing.T) {
	_, conn := walled(t, "lease", "enforce")
	for sql, want := range map[string]string{
		"UPDATE t SET v = 'new'":          "FN002 ~fencing_update - 50",
		"UPDATE t SET last_token = 49":    "FN001 ~fencing_update 49 50",
		"DELETE FROM t":                   "FN002 ~fencing_delete - 50",
		"TRUNCATE t":                      "FN004 ~fencing_truncate - -",
		"INSERT INTO t VALUES (3, 'new')": "FN002 ~fencing_insert 0 -",
	} {
		_, err := try(t, conn, "SET LOCAL session_replication_role = replica;"+sql)
		require.Equal(t, want, refusal(t, err), sql)
	}
}

// Triggers of the user's own that change the token, before, between and after
// the wall's.
func TestWallAndOtherTriggers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body    string
		sql           string
		strict, lease string
	}{
		{"zz", "NEW.last_token := 40", "UPDATE t SET last_token = 60 WHERE id = 1", "FN001 ~fencing_update 40 50", "FN001 ~fencing_update 40 50"},
		{"~zz", "NEW.last_token := 40", "UPDATE t SET last_token = 60 WHERE id = 1", "FN004 ~fencing_late 40 50", "FN004 ~fencing_late 40 50"},
		{"~zz", "NEW.last_token := -40", "UPDATE t SET last_token = 60 WHERE id = 1", "FN004 ~fencing_late -40 50", "FN004 ~fencing_late -40 50"},
		{"~zz", "NEW.last_token := OLD.last_token", "UPDATE t SET last_token = 60 WHERE id = 1", "FN004 ~fencing_late 50 50", "FN004 ~fencing_late 50 50"},
		{" first", "NEW.last_token := 40", "UPDATE t SET last_token = 60 WHERE id = 1", "FN001 ~fencing_update 40 50", "FN001 ~fencing_update 40 50"},
		{"zz", "NEW.v := 'changed'", "UPDATE t SET last_token = 60 WHERE id = 1", "", ""},
		{"zz", "NEW.v := 'changed'", "UPDATE t SET v = 'x' WHERE id = 1", "FN001 ~fencing_update 50 50", "FN002 ~fencing_update - 50"},
		{"~zz", "NEW.last_token := 0", "INSERT INTO t VALUES (3, '', 60)", "FN004 ~fencing_late_insert 0 -", "FN004 ~fencing_late_insert 0 -"},
		{"zz", "NEW.last_token := 0", "INSERT INTO t VALUES (3, '', 60)", "FN002 ~fencing_insert 0 -", "FN002 ~fencing_insert 0 -"},
	} {
		for mode, want := range map[string]string{"strict": tt.strict, "lease": tt.lease} {
			_, conn := walled(t, mode, "enforce")
			exec(t, conn, fmt.Sprintf(`CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN %s; RETURN NEW; END$$;
				CREATE TRIGGER %q BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION theirs()`, tt.body, tt.name))
			require.Equal(t, want, refusal(t, inTx(t, conn, tt.sql)), "%s: %q %s", mode, tt.name, tt.body)
		}
	}
}

// The owner of a table, who doesn't own schema fencing, can't have the trigger
// functions, which run as the owner of the schema, run code of its own: a
// column of another type is not looked at.
func TestWallRunsNoCodeOfTheTableOwner(t *testing.T) {
	for _, mode := range []string{"strict", "lease"} {
		dsn := localpg.Database(t, installed)
		admin := open(t, dsn)
		role, roleDSN := newRole(t, dsn)
		exec(t, admin, "CREATE SCHEMA app AUTHORIZATION "+role+";"+documentedGrants(t, "deploy", role))
		conn := open(t, roleDSN)
		exec(t, conn, "CREATE TABLE app.t (id int, v text); INSERT INTO app.t VALUES (1)")
		require.NoError(t, migrations.Register(t.Context(), roleDSN, migrations.Table{Name: "app.t", Mode: migrations.Mode(mode)}))
		require.NoError(t, migrations.Wall(t.Context(), roleDSN, "app.t", migrations.WallEnforce))
		exec(t, conn, `CREATE TYPE app.evil AS (x int);
			CREATE TABLE app.ran_as (who name); GRANT ALL ON app.ran_as TO PUBLIC; GRANT USAGE ON SCHEMA app TO PUBLIC;
			CREATE FUNCTION app.spy(app.evil) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN INSERT INTO app.ran_as VALUES (current_user); RETURN 5; END';
			CREATE CAST (app.evil AS bigint) WITH FUNCTION app.spy(app.evil) AS IMPLICIT;
			ALTER TABLE app.t RENAME last_token TO was; ALTER TABLE app.t ADD last_token app.evil`)
		for _, sql := range []string{
			"UPDATE app.t SET v = 'x', was = 7, last_token = ROW(1)", "INSERT INTO app.t VALUES (2, 'x', 7, ROW(1))", "SET LOCAL fencing.token = '7'; DELETE FROM app.t",
		} {
			got := refusal(t, inTx(t, conn, sql))
			if mode == "lease" && sql[0] == 'U' {
				require.Contains(t, got, "42804", "the mark, as the writer")
			} else {
				require.Contains(t, got, "FN004 ~fencing_", sql)
			}
		}
		require.Empty(t, get[[]string](t, admin, "SELECT coalesce(array_agg(who::text), '{}') FROM app.ran_as"))
		// nor can it be had at report, where the write goes through
		exec(t, conn,
			"DO $$ DECLARE f text; BEGIN FOR f IN SELECT replace(pg_get_triggerdef(oid), '''enforce''', '''report''') FROM "+
				"pg_trigger WHERE tgrelid = 'app.t'::regclass AND tgname ~ '^~fencing_(update|insert|delete|late)' LOOP EXECUTE "+
				"replace(f, 'CREATE TRIGGER', 'CREATE OR REPLACE TRIGGER'); END LOOP; END $$")
		if mode == "strict" {
			exec(t, conn, "UPDATE app.t SET v = 'x', was = 7, last_token = ROW(1)")
		}
		exec(t, conn, "INSERT INTO app.t VALUES (2, 'x', 7, ROW(1)); DELETE FROM app.t")
		require.Empty(t, get[[]string](t, admin, "SELECT coalesce(array_agg(who::text), '{}') FROM app.ran_as"))
	}
}

// A writer needs no right on anything of fencing, neither to be let through nor
// to be told; and none of those it has lets it disarm the wall.
func TestWallRights(t *testing.T) {
	dsn, admin := walled(t, "lease", "attested")
	app, appDSN := newRole(t, dsn)
	exec(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON t TO "+app)
	check := func() {
		t.Helper()
		conn := open(t, appDSN)
		require.Equal(t, "FN002 ~fencing_update - 50", refusal(t, inTx(t, conn, "UPDATE t SET v = 'x' WHERE id = 1")))
		require.Equal(t, "FN002 ~fencing_delete - 50", refusal(t, inTx(t, conn, "DELETE FROM t WHERE id = 1")))
		require.Equal(t, "FN002 ~fencing_insert 0 -", refusal(t, inTx(t, conn, "INSERT INTO t VALUES (3)")))
		require.Equal(t, "FN003 ~fencing_update 101 50", refusal(t, inTx(t, conn, "UPDATE t SET last_token = 101 WHERE id = 1")))
		require.Equal(t, "FN004 ~fencing_truncate - -", refusal(t, inTx(t, conn, "TRUNCATE t")))
		require.NoError(t,
			inTx(t, conn,
				"SET LOCAL fencing.token = '50'; UPDATE t SET v = 'x', last_token = 50 WHERE id = 1; INSERT INTO t VALUES (3, '', 50); DELETE FROM t WHERE id = 3"))
	}
	check()
	exec(t, admin, documentedGrants(t, "app", app))
	check()
	conn := open(t, appDSN)
	functions := get[[]string](t, admin, "SELECT array_agg(oid::regprocedure::text) FROM pg_proc WHERE proname ~ '^wall_[0-9a-f]{16}_'")
	require.NotEmpty(t, functions)
	for _, f := range functions {
		require.False(t, get[bool](t, admin, "SELECT has_function_privilege($1, $2, 'EXECUTE')", app, f), f)
	}
	for _, sql := range []string{
		"SELECT fencing.wall('t', 'off')", "SELECT fencing.wall_apply('t', 'off', 'last_token', 'lease', NULL, NULL)", "SELECT fencing.wall_sweep()",
		"SELECT fencing.wall_functions('last_token', 'lease', NULL, NULL)", "SELECT fencing.is_repair(0, 0, 0)",
		"SELECT fencing.fail('stale', 'report', 0, '', '', '', '', '', 0, 0)",
		"UPDATE fencing.registry SET wall_level = 'off'", `DROP TRIGGER "~fencing_update" ON t`, "ALTER TABLE t DISABLE TRIGGER ALL",
		"SET session_replication_role = replica", "SELECT setval('fencing.write_epoch', 1000)",
		"CREATE OR REPLACE FUNCTION fencing.is_repair(rel oid, token bigint, current bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
	} {
		requireRefused(t, inTx(t, conn, sql), "42501")
	}
	check()
}

// A deploying role that owns its tables and not the schema puts walls on them,
// and takes them off, but not those of others.
func TestWallByTheDeployingRole(t *testing.T) {
	dsn, admin := walled(t, "lease", "enforce")
	role, roleDSN := newRole(t, dsn)
	exec(t, admin, "CREATE SCHEMA app AUTHORIZATION "+role+";"+documentedGrants(t, "deploy", role))
	exec(t, open(t, roleDSN), "CREATE TABLE app.orders (id int PRIMARY KEY)")
	require.NoError(t, migrations.Register(t.Context(), roleDSN, migrations.Table{Name: "app.orders", Mode: migrations.Strict, Resource: "r"}))
	for _, level := range []migrations.WallLevel{migrations.WallReport, migrations.WallAttested, migrations.WallOff, migrations.WallEnforce} {
		require.NoError(t, migrations.Wall(t.Context(), roleDSN, "app.orders", level))
	}
	require.Equal(t, int64(1), get[int64](t, admin, "SELECT count(DISTINCT proowner) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace"))
	requireRefused(t, migrations.Wall(t.Context(), roleDSN, "public.t", migrations.WallOff), "42501", "must be owner of relation t")
	requireRefused(t, migrations.Unregister(t.Context(), roleDSN, "public.t"), "42501", "must be owner of relation t")
	require.NoError(t, migrations.Unregister(t.Context(), roleDSN, "app.orders"))
	require.Equal(t, triggersOn("lease", "t"), wallTriggers(t, admin))
}

// A sequence of another owner bounds the tokens if the owner of the schema may
// read it.
func TestWallWithASequenceOfAnother(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	exec(t, admin, "CREATE SCHEMA fencing AUTHORIZATION "+role+"; CREATE SCHEMA app AUTHORIZATION "+role+"; CREATE SEQUENCE seq")
	require.NoError(t, migrations.Up(t.Context(), roleDSN))
	conn := open(t, roleDSN)
	exec(t, conn, "CREATE TABLE app.t (id int); SELECT fencing.register('app.t', 'strict', issued_by => 'public.seq')")
	_, err := conn.Exec(t.Context(), "SELECT fencing.wall('app.t')")
	requireHint(t, err, "42501", "can't read sequence public.seq", "GRANT SELECT ON SEQUENCE public.seq TO "+role)
	exec(t, admin, "GRANT SELECT ON SEQUENCE seq TO "+role+"; SELECT setval('seq', 7)")
	exec(t, conn, "SELECT fencing.wall('app.t'); INSERT INTO app.t VALUES (1, 7)")
	require.Equal(t, "FN003 ~fencing_insert 8 -", refusal(t, inTx(t, conn, "INSERT INTO app.t VALUES (1, 8)")))
	require.NoError(t, migrations.Down(t.Context(), roleDSN))
}

// What foreign keys do by themselves are writes like others.
func TestWallAndForeignKeys(t *testing.T) {
	_, conn := walled(t, "lease", "enforce")
	exec(t, conn, `CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2); SELECT fencing.wall('t', 'off');
		ALTER TABLE t ADD a int DEFAULT 1 REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE; SELECT fencing.wall('t')`)
	require.Equal(t, "FN002 ~fencing_update - 50", refusal(t, inTx(t, conn, "UPDATE parent SET id = 3 WHERE id = 1")))
	require.Equal(t, "FN002 ~fencing_delete - 50", refusal(t, inTx(t, conn, "DELETE FROM parent WHERE id = 1")))
	require.Equal(t, "FN001 ~fencing_delete 49 50", refusal(t, inTx(t, conn, "SET LOCAL fencing.token = '49'; DELETE FROM parent WHERE id = 1")))
	require.NoError(t, inTx(t, conn, "SET LOCAL fencing.token = '50'; DELETE FROM parent WHERE id = 1"))
	require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM t"))
}

// A sequence or a column of another name: nothing is written unchecked, and the
// table registered anew takes writes again.
func TestWallAfterRenames(t *testing.T) {
	dsn, conn := walled(t, "lease", "enforce")
	exec(t, conn, "CREATE SEQUENCE a; SELECT setval('a', 100); SELECT fencing.register('t', 'lease', issued_by => 'a'); ALTER SEQUENCE a RENAME TO b")
	fresh := open(t, dsn)
	require.Contains(t, refusal(t, inTx(t, fresh, "UPDATE t SET last_token = 60")), "42P01")
	exec(t, conn, "SELECT fencing.wall('t')")
	require.NoError(t, inTx(t, fresh, "UPDATE t SET last_token = 60"))
	require.Equal(t, "FN003 ~fencing_update 101 60", refusal(t, inTx(t, fresh, "UPDATE t SET last_token = 101")))
	exec(t, conn, "ALTER TABLE t RENAME last_token TO fence")
	require.Contains(t, refusal(t, inTx(t, fresh, "UPDATE t SET fence = 70")), "42703")
	exec(t, conn, "SELECT fencing.unregister('t'), fencing.register('t', 'lease', 'fence'); SELECT fencing.wall('t')")
	require.NoError(t, inTx(t, fresh, "UPDATE t SET fence = 70"))
	exec(t, conn, "ALTER TABLE t RENAME TO u")
	require.Equal(t, "FN001 ~fencing_update 69 70", refusal(t, inTx(t, fresh, "UPDATE u SET fence = 69")))
}
