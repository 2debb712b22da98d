package migrations_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// documentedGrants are the GRANTs of the package comment for one of its two
// roles, with another name put in.
func documentedGrants(t *testing.T, documented, role string) string {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var grants []string
	for line := range strings.Lines(string(doc)) {
		if grant, ok := strings.CutSuffix(strings.TrimSpace(line), " TO "+documented+";"); ok {
			grants = append(grants, strings.TrimPrefix(grant, "//\t")+" TO "+role+";")
		}
	}
	require.NotEmpty(t, grants)
	return strings.Join(grants, "\n")
}

// A role that owns its database, and is no superuser, does it all.
func TestDatabaseOwner(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	exec(t, admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO "+role+"', current_database()); END $$")
	require.NoError(t, migrations.Up(t.Context(), roleDSN))
	conn := open(t, roleDSN)
	require.Equal(t, role, get[string](t, conn, "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = 'fencing'"))
	exec(t, conn, "CREATE SCHEMA app; CREATE TABLE app.orders (id int PRIMARY KEY)")
	require.NoError(t, migrations.Register(t.Context(), roleDSN, migrations.Table{Name: "app.orders", Mode: migrations.Lease}))
	require.Len(t, registry(t, conn), 1)
	require.Equal(t, int64(1), get[int64](t, conn, "SELECT fencing.next_token()"))

	exec(t, admin, "CREATE TABLE public.of_another (id int PRIMARY KEY)")
	err := migrations.Register(t.Context(), roleDSN, migrations.Table{Name: "public.of_another", Mode: migrations.Lease})
	requireRefused(t, err, "42501", "register public.of_another", "must be owner of table of_another", "own the table")
	require.NoError(t, migrations.Down(t.Context(), roleDSN))
}

func TestUpWithoutRights(t *testing.T) {
	dsn := localpg.Database(t)
	_, roleDSN := newRole(t, dsn)
	requireRefused(t, migrations.Up(t.Context(), roleDSN), "42501", "install schema fencing", "the role needs CREATE on the database")
	requireRefused(t, migrations.Up(t.Context(), with(dsn, "default_transaction_read_only", "on")), "25006", "connect to the primary")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	requireRefused(t, migrations.Down(t.Context(), roleDSN), "42501", "remove schema fencing", "permission denied")
	_, err := migrations.Version(t.Context(), roleDSN)
	requireRefused(t, err, "42501", "the role needs USAGE on schema fencing and SELECT on fencing.goose_db_version")
}

// Who owns the schema can replace what is in it.
func TestUpInASchemaOfAnother(t *testing.T) {
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	exec(t, conn, "CREATE SCHEMA fencing AUTHORIZATION "+role)
	requireRefused(t, migrations.Up(t.Context(), dsn), "42501", "belongs to role "+role, "Run the migrations as that role")
	require.NoError(t, migrations.Down(t.Context(), dsn))

	// made for it by the administrator, it does for a role without CREATE on the database
	exec(t, conn, "CREATE SCHEMA IF NOT EXISTS fencing AUTHORIZATION "+role+"; ALTER SCHEMA fencing OWNER TO "+role)
	require.NoError(t, migrations.Up(t.Context(), roleDSN))
}

func TestApplicationRole(t *testing.T) {
	dsn := localpg.Database(t, installed)
	admin := open(t, dsn)
	exec(t, admin, "CREATE TABLE orders (id int PRIMARY KEY); SELECT fencing.register('orders', 'lease'); CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	role, roleDSN := newRole(t, dsn)
	conn := open(t, roleDSN)
	reads := []string{
		"SELECT relid, schema_name, table_name, token_column, mode, resource, issued_by, registered_at, driver_level, driver_rewrite FROM fencing.registry",
		"SELECT value FROM fencing.generation",
		"SELECT pg_sequence_last_value('fencing.write_epoch')",
		"SELECT fencing.allowed_functions()",
		"SELECT token FROM fencing.lease WHERE resource = 'jobs'",
		"SELECT fencing.next_token()",
		"SELECT token FROM fencing.take('jobs', '1min', 'me')",
		"SELECT fencing.renew('jobs', 1, '1min')",
		"SELECT fencing.release('jobs', 1)",
	}
	for _, sql := range reads {
		_, err := conn.Exec(t.Context(), sql)
		require.Error(t, err, sql)
		requireRefused(t, err, "42501")
	}
	requireRefused(t, migrations.Register(t.Context(), roleDSN, migrations.Table{Name: "orders", Mode: migrations.Strict}),
		"42501", "register orders", "USAGE on schema fencing")
	requireRefused(t, migrations.SetLevel(t.Context(), roleDSN, "orders", migrations.Off),
		"42501", "set the level of orders", "USAGE on schema fencing")

	exec(t, admin, documentedGrants(t, "app", role))
	for _, sql := range reads {
		exec(t, conn, sql)
	}
	for _, sql := range []string{
		"INSERT INTO fencing.registry VALUES ('orders', 'public', 'x', 'last_token', 'lease')",
		"UPDATE fencing.registry SET mode = 'strict'",
		"UPDATE fencing.registry SET driver_level = 'off'",
		"DELETE FROM fencing.registry",
		"TRUNCATE fencing.registry",
		"UPDATE fencing.generation SET value = 1",
		"SELECT nextval('fencing.write_epoch')",
		"SELECT setval('fencing.write_epoch', 9223372036854775807)",
		"ALTER SEQUENCE fencing.write_epoch RESTART",
		"SELECT * FROM fencing.incarnation",
		"SELECT fencing.incarnation_now()",
		"UPDATE fencing.lease SET token = 1",
		"INSERT INTO fencing.lease VALUES ('jobs', 'me', 9, 'infinity')",
		"SELECT token FROM fencing.lease FOR UPDATE",
		"DELETE FROM fencing.lease",
		"TRUNCATE fencing.lease",
		"SELECT fencing.lease_ttl('1s')",
		"SELECT fencing.register('orders', 'strict')",
		"SELECT fencing.unregister('orders')",
		"SELECT fencing.driver_level('orders', 'off')",
		"SELECT fencing.driver_rewrite('orders', true)",
		"SELECT * FROM fencing.allowed_function",
		"INSERT INTO fencing.allowed_function VALUES ('public', 'f', '', 'x', 'why')",
		"SELECT fencing.allow_function('mine()', 'why')",
		"SELECT fencing.disallow_function('mine()')",
		"SELECT fencing.claim_name('orders')",
		"CREATE FUNCTION fencing.evil() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE TEMP TABLE t (id int); CREATE TRIGGER t AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION fencing.registry_changed()",
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.Error(t, err, sql)
		requireRefused(t, err, "42501")
	}
	requireRefused(t, migrations.Unregister(t.Context(), roleDSN, "orders"), "42501", "EXECUTE on the functions of schema fencing")
	requireRefused(t, migrations.SetLevel(t.Context(), roleDSN, "orders", migrations.Off), "42501", "EXECUTE on the functions of schema fencing")
	require.Equal(t, "enforce", level(t, admin, "orders"))
}

// Default privileges for new objects must not reach schema fencing, where
// everybody may run the parts of the doctor, ask which functions are allowed, and nothing
// else.
func TestDefaultPrivileges(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	role, _ := newRole(t, dsn)
	for _, kind := range []string{"TABLES", "SEQUENCES", "FUNCTIONS", "SCHEMAS"} {
		exec(t, admin, "ALTER DEFAULT PRIVILEGES GRANT ALL ON "+kind+" TO "+role+", PUBLIC")
	}
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Equal(t, []string{
		"allowed_functions EXECUTE PUBLIC", "doctor_apps EXECUTE PUBLIC", "doctor_around EXECUTE PUBLIC", "doctor_bounds EXECUTE PUBLIC", "doctor_buried EXECUTE PUBLIC",
		"doctor_columns EXECUTE PUBLIC", "doctor_differences EXECUTE PUBLIC", "doctor_family EXECUTE PUBLIC", "doctor_functions EXECUTE PUBLIC", "doctor_given EXECUTE PUBLIC",
		"doctor_kept EXECUTE PUBLIC", "doctor_key_columns EXECUTE PUBLIC", "doctor_key_text EXECUTE PUBLIC", "doctor_less EXECUTE PUBLIC",
		"doctor_manifest EXECUTE PUBLIC", "doctor_mend_first EXECUTE PUBLIC", "doctor_moved EXECUTE PUBLIC", "doctor_nullable EXECUTE PUBLIC", "doctor_objects EXECUTE PUBLIC", "doctor_owner EXECUTE PUBLIC", "doctor_owners EXECUTE PUBLIC",
		"doctor_register EXECUTE PUBLIC", "doctor_registered_less EXECUTE PUBLIC", "doctor_revoke EXECUTE PUBLIC", "doctor_roles EXECUTE PUBLIC",
		"doctor_schema EXECUTE PUBLIC", "doctor_sequences EXECUTE PUBLIC", "doctor_sets EXECUTE PUBLIC", "doctor_settings EXECUTE PUBLIC",
		"doctor_subscriptions EXECUTE PUBLIC", "doctor_tables EXECUTE PUBLIC", "doctor_tokens EXECUTE PUBLIC", "doctor_tombstones EXECUTE PUBLIC",
		"doctor_triggers EXECUTE PUBLIC", "doctor_wall EXECUTE PUBLIC", "doctor_without_wall EXECUTE PUBLIC", "doctor_words EXECUTE PUBLIC", "kept_columns EXECUTE PUBLIC", "registered_above EXECUTE PUBLIC",
		"seal_bodies EXECUTE PUBLIC", "setting_name EXECUTE PUBLIC", "tombstone_bodies EXECUTE PUBLIC", "tombstone_key_bodies EXECUTE PUBLIC",
		"wall_delete_bodies EXECUTE PUBLIC", "wall_insert_bodies EXECUTE PUBLIC", "wall_other_bodies EXECUTE PUBLIC", "wall_update_bodies EXECUTE PUBLIC",
	}, get[[]string](t, admin, `SELECT array_agg(o ORDER BY o) FROM (
		SELECT c.oid::regclass::text || ' ' || a.privilege_type FROM pg_class c, aclexplode(c.relacl) a
		 WHERE c.relnamespace = 'fencing'::regnamespace AND a.grantee <> c.relowner
		UNION ALL SELECT p.proname || ' ' || a.privilege_type || CASE a.grantee WHEN 0 THEN ' PUBLIC' ELSE '' END FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
		 WHERE p.pronamespace = 'fencing'::regnamespace AND a.grantee <> p.proowner
		UNION ALL SELECT 'schema ' || a.privilege_type FROM pg_namespace n, aclexplode(n.nspacl) a
		 WHERE n.nspname = 'fencing' AND a.grantee <> n.nspowner AND a.privilege_type <> 'USAGE') x(o)`))
}

func TestDeployingRole(t *testing.T) {
	dsn := localpg.Database(t, installed)
	admin := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	exec(t, admin, "CREATE SCHEMA app AUTHORIZATION "+role+";"+documentedGrants(t, "deploy", role))
	exec(t, open(t, roleDSN), "CREATE TABLE app.orders (id int PRIMARY KEY)")
	require.NoError(t, migrations.Register(t.Context(), roleDSN, migrations.Table{Name: "app.orders", Mode: migrations.Strict}))
	require.Len(t, registry(t, admin), 1)
	require.NoError(t, migrations.SetLevel(t.Context(), roleDSN, "app.orders", migrations.Report))
	require.Equal(t, "report", level(t, admin, "app.orders"))
	require.NoError(t, migrations.Unregister(t.Context(), roleDSN, "app.orders"))
	require.Empty(t, registry(t, admin))
}

func TestNotInstalled(t *testing.T) {
	dsn := localpg.Database(t)
	exec(t, open(t, dsn), "CREATE TABLE orders (id int PRIMARY KEY)")
	check := func() {
		t.Helper()
		for _, err := range []error{
			migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}),
			migrations.Unregister(t.Context(), dsn, "orders"),
		} {
			require.ErrorIs(t, err, migrations.ErrNotInstalled)
			require.ErrorContains(t, err, "register orders: schema fencing is not installed: run migrations.Up")
		}
		err := migrations.SetLevel(t.Context(), dsn, "orders", migrations.Report)
		require.ErrorIs(t, err, migrations.ErrNotInstalled)
		require.ErrorContains(t, err, "set the level of orders: schema fencing is not installed: run migrations.Up")
		v, err := migrations.Version(t.Context(), dsn)
		require.NoError(t, err)
		require.Zero(t, v)
	}
	check()
	exec(t, open(t, dsn), "CREATE SCHEMA fencing")
	check()
}
