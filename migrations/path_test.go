package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// A role's own operators, functions and types, before pg_catalog on its path.
func TestHostileSearchPath(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	exec(t, admin, `CREATE SCHEMA mine;
		CREATE FUNCTION mine.no(name, name) RETURNS bool LANGUAGE sql AS 'SELECT false';
		CREATE FUNCTION mine.no(text, text) RETURNS bool LANGUAGE sql AS 'SELECT false';
		CREATE FUNCTION mine.no(int8, int8) RETURNS bool LANGUAGE sql AS 'SELECT false';
		CREATE FUNCTION mine.no(oid, oid) RETURNS bool LANGUAGE sql AS 'SELECT false';
		CREATE OPERATOR mine.= (LEFTARG = name, RIGHTARG = name, FUNCTION = mine.no);
		CREATE OPERATOR mine.= (LEFTARG = text, RIGHTARG = text, FUNCTION = mine.no);
		CREATE OPERATOR mine.= (LEFTARG = int8, RIGHTARG = int8, FUNCTION = mine.no);
		CREATE OPERATOR mine.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = mine.no);
		CREATE OPERATOR mine.< (LEFTARG = int8, RIGHTARG = int8, FUNCTION = mine.no);
		CREATE OPERATOR mine.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = mine.no);
		CREATE FUNCTION mine.nextval(regclass) RETURNS int8 LANGUAGE sql AS 'SELECT 4711::int8';
		CREATE FUNCTION mine.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT '-infinity'::timestamptz$$;
		CREATE FUNCTION mine.pg_control_system(OUT system_identifier int8) LANGUAGE sql AS 'SELECT 1::int8';
		CREATE FUNCTION mine.set_config(text, text, bool) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
		CREATE FUNCTION mine.pg_logical_emit_message(bool, text, text) RETURNS pg_lsn LANGUAGE sql AS 'SELECT NULL::pg_lsn';
		CREATE DOMAIN mine.text AS pg_catalog.int4; CREATE DOMAIN mine.regclass AS pg_catalog.int4;
		CREATE DOMAIN mine.int8 AS pg_catalog.float8; CREATE DOMAIN mine.bigint AS pg_catalog.float8;
		CREATE TABLE mine.orders (id int); CREATE TABLE orders (id int)`)
	hostile := with(dsn, "search_path", "mine, pg_catalog, public")

	// by goose, because Up's own connection has another path
	_, err := gooseProvider(t, hostile).Up(t.Context())
	require.NoError(t, err)
	require.Empty(t, get[[]string](t, admin, `SELECT array_remove(array_agg(pg_describe_object(classid, objid, objsubid)), NULL) FROM pg_depend d
		WHERE refobjid IN (SELECT oid FROM pg_proc WHERE pronamespace = 'mine'::regnamespace UNION SELECT oid FROM pg_operator WHERE oprnamespace = 'mine'::regnamespace
			UNION SELECT oid FROM pg_type WHERE typnamespace = 'mine'::regnamespace)
		AND pg_identify_object(classid, objid, objsubid)::pg_catalog.text LIKE '%fencing.%'`), "nothing of fencing rests on mine")

	conn := open(t, hostile)
	exec(t, conn,
		"CREATE FUNCTION pg_temp.nextval(regclass) RETURNS int8 LANGUAGE sql AS 'SELECT 4712::int8'; CREATE TEMP TABLE incarnation (tli int8, sysid int8)")
	for want := int64(1); want <= 3; want++ {
		require.Equal(t, want, get[int64](t, conn, "SELECT fencing.next_token()"))
	}
	require.NoError(t, migrations.Register(t.Context(), hostile, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	require.Equal(t, []entry{{"mine.orders", "mine", "orders", "last_token", "lease", "-", "fencing.write_epoch"}}, registry(t, admin))
	require.True(t,
		get[bool](t, admin,
			"SELECT atttypid = 20 AND attnotnull FROM pg_attribute WHERE attrelid = 'mine.orders'::regclass AND attname = 'last_token'"))
	require.NoError(t, migrations.SetLevel(t.Context(), hostile, "orders", migrations.Report))
	require.Equal(t, "report", level(t, admin, "mine.orders"))
	require.NoError(t, migrations.Unregister(t.Context(), hostile, "orders"))
	require.Empty(t, registry(t, admin))

	// and Up itself, with its version table
	exec(t, conn, "DROP SCHEMA fencing CASCADE; DROP TABLE mine.fencing_db_version")
	require.NoError(t, migrations.Up(t.Context(), hostile))
	require.NoError(t, migrations.Up(t.Context(), hostile))
	require.False(t, get[bool](t, admin, "SELECT bool_or(tstamp = '-infinity') FROM fencing.goose_db_version"))
	require.NoError(t, migrations.Down(t.Context(), hostile))
}
