package migrations_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// allowedNow lists the functions that are allowed, as the driver asks.
const allowedNow = `SELECT coalesce(array_agg(p.proname || '(' || oidvectortypes(p.proargtypes) || ')'), '{}')
	FROM fencing.allowed_functions() f JOIN pg_proc p ON p.oid = f`

// run is a function that somebody may want to allow.
const run = `CREATE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE q; END'`

// A function is allowed while its definition is the one that was allowed.
func TestAllowedWhileItStays(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, run+`; SELECT fencing.allow_function('run(text)', 'only reports')`)
	for _, tt := range []struct {
		name, sql string
		want      []string
	}{
		{"as it was", "SELECT", []string{"run(text)"}},
		{"made again as it was", "DROP FUNCTION run; " + run, []string{"run(text)"}},
		{"replaced by the same", "CREATE OR REPLACE" + strings.TrimPrefix(run, "CREATE"), []string{"run(text)"}},
		{"renamed there and back", "ALTER FUNCTION run RENAME TO other; ALTER FUNCTION other RENAME TO run", []string{"run(text)"}},
		{"commented, and of another owner", "COMMENT ON FUNCTION run(text) IS 'x'; ALTER FUNCTION run(text) OWNER TO pg_monitor", []string{"run(text)"}},
		{"replaced", "CREATE OR REPLACE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE q ; END'", nil},
		{"made again with another body", "DROP FUNCTION run; CREATE FUNCTION run(q text) RETURNS void LANGUAGE sql AS 'SELECT'", nil},
		{"in another language", "SET check_function_bodies = off; DROP FUNCTION run; CREATE FUNCTION run(q text) RETURNS void LANGUAGE sql AS 'BEGIN EXECUTE q; END'", nil},
		{"another default", "CREATE OR REPLACE FUNCTION run(q text DEFAULT 'x') RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE q; END'", nil},
		{"another setting", "ALTER FUNCTION run SET search_path = mine", nil},
		{"the rights of its owner", "ALTER FUNCTION run SECURITY DEFINER", nil},
		{"renamed", "ALTER FUNCTION run RENAME TO other", nil},
		{"renamed, and another by the name", "ALTER FUNCTION run RENAME TO other; CREATE FUNCTION run(q text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE q || q; END'", nil},
		{"moved", "CREATE SCHEMA s; ALTER FUNCTION run SET SCHEMA s", nil},
		{"its schema renamed", "ALTER SCHEMA public RENAME TO other", nil},
		{"dropped", "DROP FUNCTION run", nil},
		{"an overload", "CREATE FUNCTION run(q varchar) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE q; END'", []string{"run(text)"}},
		{"the same in another schema", "CREATE SCHEMA s; SET search_path = s; " + run + "; SET search_path = public", []string{"run(text)"}},
		{"disallowed", "SELECT fencing.disallow_function('run(text)')", nil},
		{"the overload disallowed", "CREATE FUNCTION run(q varchar) RETURNS void LANGUAGE sql AS ''; SELECT fencing.disallow_function('run(varchar)')", []string{"run(text)"}},
		{"replaced and allowed again", "ALTER FUNCTION run STABLE; SELECT fencing.allow_function('run(text)', 'read again')", []string{"run(text)"}},
		{"under other settings", `SET quote_all_identifiers = on; SET search_path = pg_catalog, fencing, public; SET datestyle = 'German, DMY'; SET standard_conforming_strings = off`, []string{`run("text")`}},
	} {
		exec(t, conn, "BEGIN; CREATE SCHEMA mine; "+tt.sql)
		require.ElementsMatch(t, tt.want, get[[]string](t, conn, allowedNow), tt.name)
		exec(t, conn, "ROLLBACK")
	}
}

func TestAllowRefuses(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, run+`; CREATE AGGREGATE agg(int) (sfunc = int4pl, stype = int); CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE TABLE t (id int PRIMARY KEY); SELECT fencing.register('t', 'lease'), fencing.wall('t')`)
	ofWall := get[string](t, conn, "SELECT min(tgfoid::regprocedure::text) FROM pg_trigger WHERE tgrelid = 't'::regclass AND NOT tgisinternal")
	for _, tt := range []struct {
		call, state string
		words       []string
	}{
		{"allow_function('run(text)', NULL)", "22023", []string{"no reason given to allow public.run(text)", "kept in fencing.allowed_function"}},
		{"allow_function('run(text)', '')", "22023", []string{"no reason given"}},
		{"allow_function('run(text)', E' \\n')", "22023", []string{"no reason given"}},
		{"allow_function(NULL, 'why')", "42883", []string{"no function given to allow", "types of its arguments"}},
		{"allow_function(1, 'why')", "42883", []string{"no function given to allow"}},
		{"allow_function('fencing.unregister(regclass)', 'why')", "42809", []string{"fencing.unregister(regclass) is a function of fencing itself"}},
		{"allow_function('" + ofWall + "', 'why')", "42809", []string{"a function of fencing itself", "of your own"}},
		{"allow_function('query_to_xml(text, bool, bool, text)', 'why')", "42809", []string{"a function of the system"}},
		{"allow_function('information_schema._pg_truetypid(pg_attribute, pg_type)', 'why')", "42809", []string{"a function of the system"}},
		{"allow_function('pg_temp.f()', 'why')", "42809", []string{"a temporary function"}},
		{"allow_function('agg(int)', 'why')", "42809", []string{"an aggregate", "the functions that it is made of"}},
		{"disallow_function(NULL)", "42883", []string{"no function given to disallow"}},
		{"disallow_function(1)", "42883", []string{"can be deleted"}},
	} {
		_, err := conn.Exec(t.Context(), "SELECT fencing."+tt.call)
		require.Error(t, err, tt.call)
		requireHint(t, err, tt.state, tt.words...)
	}
	require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM fencing.allowed_function"))

	// what got into the table in another way is not allowed all the same
	exec(t, conn, `INSERT INTO fencing.allowed_function (schema_name, function_name, arguments, digest, reason)
		SELECT n.nspname, p.proname, oidvectortypes(p.proargtypes), coalesce(fencing.function_digest(p.oid), ''), 'why'
		  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE proname IN ('unregister', 'agg', 'query_to_xml')`)
	require.Equal(t, int64(3), get[int64](t, conn, "SELECT count(*) FROM fencing.allowed_function"))
	require.Empty(t, get[[]string](t, conn, allowedNow))
}

func TestAllowFunction(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, run+`; CREATE PROCEDURE "My Proc"(IN a int, INOUT b timestamptz) LANGUAGE sql BEGIN ATOMIC SELECT now() - interval '1 day'; END`)
	before := generation(t, conn)
	require.NoError(t, migrations.AllowFunction(t.Context(), dsn, "run(text)", "only reports"))
	require.Equal(t, before+1, generation(t, conn))
	require.NoError(t, migrations.AllowFunction(t.Context(), dsn, "public.run(pg_catalog.text)", "only reports"))
	require.Equal(t, before+1, generation(t, conn), "nothing has changed")
	require.NoError(t, migrations.AllowFunction(t.Context(), dsn, "run(text)", "still only reports"))
	require.Equal(t, before+2, generation(t, conn))
	require.NoError(t, migrations.AllowFunction(t.Context(), dsn, `"My Proc"(int, timestamptz)`, "it is plain"))
	require.Equal(t, []string{"public My Proc integer, timestamp with time zone it is plain", "public run text still only reports"}, get[[]string](t, conn,
		`SELECT array_agg(concat_ws(' ', schema_name, function_name, arguments, reason) ORDER BY function_name)
		   FROM fencing.allowed_function WHERE allowed_by = session_user AND allowed_at BETWEEN now() - interval '1 h' AND clock_timestamp()`))
	require.Len(t, get[[]string](t, conn, allowedNow), 2)

	require.NoError(t, migrations.DisallowFunction(t.Context(), dsn, `"My Proc"(int, timestamptz)`))
	require.NoError(t, migrations.DisallowFunction(t.Context(), dsn, `"My Proc"(int, timestamptz)`), "a second time")
	require.Equal(t, before+4, generation(t, conn))
	require.Equal(t, []string{"run(text)"}, get[[]string](t, conn, allowedNow))

	role, roleDSN := newRole(t, dsn)
	requireRefused(t, migrations.AllowFunction(t.Context(), roleDSN, "public.run(text)", "x"), "42501", "allow public.run(text)", "USAGE on schema fencing")
	exec(t, conn, documentedGrants(t, "app", role))
	requireRefused(t, migrations.AllowFunction(t.Context(), roleDSN, "public.run(text)", "x"), "42501", "EXECUTE on the functions of schema fencing")
	requireRefused(t, migrations.DisallowFunction(t.Context(), roleDSN, "public.run(text)"), "42501", "on fencing.allowed_function")
	exec(t, conn, documentedGrants(t, "deploy", role))
	require.NoError(t, migrations.AllowFunction(t.Context(), roleDSN, "public.run(text)", "deployed"))
	require.NoError(t, migrations.DisallowFunction(t.Context(), roleDSN, "public.run(text)"))

	const nowhere = "host=/nonexistent"
	require.ErrorContains(t, migrations.AllowFunction(t.Context(), nowhere, "run", "x"), "allow run: the types of the arguments are missing")
	require.ErrorContains(t, migrations.AllowFunction(t.Context(), nowhere, "16384", "x"), "the types of the arguments are missing")
	require.ErrorContains(t, migrations.AllowFunction(t.Context(), nowhere, "run(text)", " "), "allow run(text): no reason given")
	require.ErrorContains(t, migrations.DisallowFunction(t.Context(), nowhere, ""), "the types of the arguments are missing")
	require.ErrorContains(t, migrations.AllowFunction(t.Context(), dsn, "run(int)", "x"), "allow run(int): there is no such function: correct the name")
	require.ErrorContains(t, migrations.DisallowFunction(t.Context(), dsn, "run(int)"), "delete its row from fencing.allowed_function")
	requireNotForDriver(t, migrations.AllowFunction(t.Context(), asDriver(dsn), "run(text)", "x"), "AllowFunction")
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.ErrorIs(t, migrations.AllowFunction(t.Context(), dsn, "run(text)", "x"), migrations.ErrNotInstalled)
}
