package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// latest is the version that Up brings a database to.
const latest = 11

// description is schema fencing, as one text for each thing in it but the
// trigger functions of walls.
const description = `SELECT coalesce(array_agg(d ORDER BY d), '{}') FROM (
	SELECT concat_ws(' ', 'relation', c.relname, c.relkind, c.relacl, obj_description(c.oid, 'pg_class')) FROM pg_class c WHERE c.relnamespace = to_regnamespace('fencing')
	UNION ALL SELECT concat_ws(' ', 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attacl,
		pg_get_expr(f.adbin, f.adrelid), col_description(c.oid, a.attnum))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef f ON f.adrelid = c.oid AND f.adnum = a.attnum WHERE c.relnamespace = to_regnamespace('fencing')
	UNION ALL SELECT concat_ws(' ', 'constraint', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = to_regnamespace('fencing')
	UNION ALL SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(g.oid), g.tgenabled) FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
		WHERE c.relnamespace = to_regnamespace('fencing') AND NOT g.tgisinternal
	UNION ALL SELECT concat_ws(' ', 'function', pg_get_functiondef(oid), proacl, proowner, obj_description(oid, 'pg_proc'))
		FROM pg_proc WHERE pronamespace = to_regnamespace('fencing') AND proname !~ '^(wall|tomb|seal)_[0-9a-f]{16}_') x(d)`

// at brings a database in which Up has run back to a version.
func at(t *testing.T, dsn string, version int64) {
	t.Helper()
	_, err := gooseProviderOf(t, dsn, "fencing.goose_db_version").DownTo(t.Context(), version)
	require.NoError(t, err)
	v, err := migrations.Version(t.Context(), dsn)
	require.NoError(t, err)
	require.Equal(t, version, v)
}

// Each file's Down leaves what was there before its Up.
func TestEveryVersion(t *testing.T) {
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int)")
	p := gooseProvider(t, dsn)
	require.Len(t, p.ListSources(), latest)
	was := [latest + 1][]string{get[[]string](t, conn, description)}
	for v := 1; v <= latest; v++ {
		_, err := p.UpByOne(t.Context())
		require.NoError(t, err)
		was[v] = get[[]string](t, conn, description)
		require.NotEqual(t, was[v-1], was[v])
	}
	exec(t, conn, "SELECT fencing.register('orders', 'lease'); SELECT fencing.driver_level('orders', 'off');"+
		"ALTER TABLE orders ADD PRIMARY KEY (id); SELECT fencing.wall('orders'), fencing.tombstones('orders'), fencing.seal('orders', 'r')")
	for v := latest - 1; v >= 0; v-- {
		_, err := p.Down(t.Context())
		require.NoError(t, err)
		require.Equal(t, was[v], get[[]string](t, conn, description), v)
		require.Equal(t, v >= 4, get[bool](t, conn, "SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE tgname ~ '^.fencing')"))
	}
}

func TestUpAndDownFromEveryVersion(t *testing.T) {
	for v := int64(1); v <= latest; v++ {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			want := get[[]string](t, conn, description)
			at(t, dsn, v)
			require.NoError(t, migrations.Up(t.Context(), dsn))
			require.Equal(t, want, get[[]string](t, conn, description))
			got, err := migrations.Version(t.Context(), dsn)
			require.NoError(t, err)
			require.EqualValues(t, latest, got)

			at(t, dsn, v)
			require.NoError(t, migrations.Down(t.Context(), dsn))
			require.Empty(t, get[[]string](t, conn, description))
		})
	}
}

// Levels come to tables that are registered already, and go from them, without
// touching anything else about them.
func TestLevelsComeAndGo(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int); CREATE TABLE items (id int); SELECT fencing.register('orders', 'lease'), fencing.register('items', 'strict')")
	before, rows := generation(t, conn), registry(t, conn)
	at(t, dsn, 2)
	require.Equal(t, before, generation(t, conn), "all were enforced, and are")
	err := migrations.SetLevel(t.Context(), dsn, "orders", migrations.Report)
	require.ErrorIs(t, err, migrations.ErrNotInstalled)
	requireRefused(t, err, "42883", "set the level of orders: schema fencing is not installed in a version with levels: run migrations.Up")

	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Equal(t, before, generation(t, conn))
	require.Equal(t, rows, registry(t, conn))
	require.Equal(t, "enforce", level(t, conn, "orders"))
	require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Report))
	require.NoError(t, migrations.Up(t.Context(), dsn), "a second time")
	require.Equal(t, "report", level(t, conn, "orders"))

	at(t, dsn, 2)
	require.Equal(t, rows, registry(t, conn))
	require.Equal(t, before+2, generation(t, conn), "set, and enforced again")
}

// Who might run fencing.register before levels came may set them.
func TestLevelRightsOfAnOlderVersion(t *testing.T) {
	dsn := localpg.Database(t, installed)
	admin := open(t, dsn)
	exec(t, admin, "CREATE TABLE orders (id int); SELECT fencing.register('orders', 'lease')")
	at(t, dsn, 2)
	deploy, deployDSN := newRole(t, dsn)
	app, appDSN := newRole(t, dsn)
	grants, _, _ := strings.Cut(documentedGrants(t, "app", app), "GRANT EXECUTE ON FUNCTION fencing.take") // there were no leases
	exec(t, admin, documentedGrants(t, "deploy", deploy)+grants+
		"GRANT EXECUTE ON FUNCTION fencing.register TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO "+app)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.NoError(t, migrations.SetLevel(t.Context(), deployDSN, "orders", migrations.Report))
	require.Equal(t, "report", level(t, admin, "orders"))
	requireRefused(t, migrations.SetLevel(t.Context(), appDSN, "orders", migrations.Off), "42501",
		"permission denied for function driver_level", "EXECUTE on the functions of schema fencing")
}

// Another role, one that may, runs the newer version: the owner stays the owner.
func TestLevelOwner(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	exec(t, admin, "CREATE SCHEMA fencing AUTHORIZATION "+role+"; CREATE SCHEMA app AUTHORIZATION "+role)
	require.NoError(t, migrations.Up(t.Context(), roleDSN))
	at(t, roleDSN, 2)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Equal(t, int64(1), get[int64](t, admin, "SELECT count(DISTINCT proowner) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace"))
	exec(t, open(t, roleDSN), "CREATE TABLE app.orders (id int)")
	require.NoError(t, migrations.Register(t.Context(), roleDSN, migrations.Table{Name: "app.orders", Mode: migrations.Lease}))
	require.NoError(t, migrations.SetLevel(t.Context(), roleDSN, "app.orders", migrations.Off))
	require.NoError(t, migrations.Down(t.Context(), roleDSN))
}

// A wall's functions too belong to the owner of the schema, whoever runs the
// newer version, and who might register before may put walls up.
func TestWallOwnerAndRightsOfAnOlderVersion(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	deploy, deployDSN := newRole(t, dsn)
	exec(t, admin, "CREATE SCHEMA fencing AUTHORIZATION "+role+"; CREATE SCHEMA app AUTHORIZATION "+deploy)
	require.NoError(t, migrations.Up(t.Context(), roleDSN))
	at(t, roleDSN, 3)
	exec(t, admin, documentedGrants(t, "deploy", deploy)+"ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	exec(t, open(t, deployDSN), "CREATE TABLE app.orders (id int PRIMARY KEY)")
	require.NoError(t, migrations.Register(t.Context(), deployDSN, migrations.Table{Name: "app.orders", Mode: migrations.Lease}))
	require.NoError(t, migrations.Wall(t.Context(), deployDSN, "app.orders", migrations.WallEnforce))
	require.NoError(t, migrations.Tombstones(t.Context(), deployDSN, "app.orders", true))
	require.Equal(t, []string{role}, get[[]string](t, admin, `SELECT array_agg(DISTINCT pg_get_userbyid(o)::text) FROM (
		SELECT proowner FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace UNION ALL
		SELECT relowner FROM pg_class WHERE relname IN ('registry', 'tombstone', 'repairs')) x(o)`))
	require.Zero(t, get[int64](t, admin, `SELECT count(*) FROM (
		SELECT proacl, 'f', proowner FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace UNION ALL
		SELECT relacl, 'r', relowner FROM pg_class WHERE relnamespace = 'fencing'::regnamespace AND relkind = 'r') x(acl, kind, owner),
		aclexplode(coalesce(acl, acldefault(kind::"char", owner))) a WHERE a.grantee = 0`))
	requireRefused(t, migrations.Repair(t.Context(), deployDSN, "app.orders", map[string]any{"id": 1}, 0, "x"), "42501")
	require.NoError(t, migrations.Down(t.Context(), dsn))
}

// Leases too belong to the owner of the schema, whoever runs the newer version,
// and nobody else has any right on them, whatever the defaults say.
func TestLeaseOwnerAndRightsOfAnOlderVersion(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	role, roleDSN := newRole(t, dsn)
	app, appDSN := newRole(t, dsn)
	exec(t, admin, "CREATE SCHEMA fencing AUTHORIZATION "+role)
	require.NoError(t, migrations.Up(t.Context(), roleDSN))
	at(t, roleDSN, 7)
	exec(t, admin, "GRANT USAGE ON SCHEMA fencing TO "+app+"; GRANT EXECUTE ON FUNCTION fencing.next_token() TO "+app+";"+
		"ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	_, err := open(t, appDSN).Exec(t.Context(), "SELECT fencing.take('r', '1s', 'h')")
	requireRefused(t, err, "42501", "permission denied for function take")
	exec(t, admin, documentedGrants(t, "app", app))
	require.Equal(t, int64(1), get[int64](t, open(t, appDSN), "SELECT token FROM fencing.take('r', '1s', 'h')"))
	require.Equal(t, []string{role}, get[[]string](t, admin, `SELECT array_agg(DISTINCT pg_get_userbyid(o)::text) FROM (
		SELECT proowner FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace UNION ALL
		SELECT relowner FROM pg_class WHERE oid = 'fencing.lease'::regclass) x(o)`))
	require.NoError(t, migrations.Down(t.Context(), roleDSN))
}
