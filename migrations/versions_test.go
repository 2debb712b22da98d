package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

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

// Down leaves what was there before Up, whatever has been registered meanwhile,
// and Up makes the same again.
func TestUpAndDown(t *testing.T) {
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	require.Empty(t, get[[]string](t, conn, description))
	exec(t, conn, "CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE items (id int)")
	var first []string
	for range 2 {
		require.NoError(t, migrations.Up(t.Context(), dsn))
		require.NoError(t, migrations.Up(t.Context(), dsn), "a second time")
		made := get[[]string](t, conn, description)
		if first == nil {
			first = made
		}
		require.Equal(t, first, made)
		version, err := migrations.Version(t.Context(), dsn)
		require.NoError(t, err)
		require.EqualValues(t, 1, version)

		exec(t, conn, "SELECT fencing.register('orders', 'lease'), fencing.register('items', 'strict'); SELECT fencing.driver_level('orders', 'off');"+
			"SELECT fencing.wall('orders'), fencing.tombstones('orders'), fencing.seal('orders', 'r'), fencing.wall('items', 'report'), fencing.take('r', '1 h', 'me');"+
			"UPDATE orders SET last_token = 1; INSERT INTO orders VALUES (1, 1)")
		require.NoError(t, migrations.Down(t.Context(), dsn))
		require.Empty(t, get[[]string](t, conn, description))
		require.False(t, get[bool](t, conn, "SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE tgname ~ '^.fencing')"))
		require.Equal(t, int64(1), get[int64](t, conn, "SELECT last_token FROM orders"), "the column stays")
		exec(t, conn, "DELETE FROM orders")
	}
}

// Down does nothing if the walls can't be taken off, or if somebody else has
// built something on the schema.
func TestDownIsAllOrNothing(t *testing.T) {
	for name, setup := range map[string]string{
		"a wall that stays": "CREATE FUNCTION no() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '2BP01'; " +
			"END $$; CREATE EVENT TRIGGER " + keep +
			" ON ddl_command_start WHEN TAG IN ('DROP TRIGGER') EXECUTE FUNCTION no()",
		"a view of somebody": "CREATE VIEW theirs AS SELECT * FROM fencing.registry",
	} {
		t.Run(name, func(t *testing.T) {
			dsn, conn := walled(t, "lease", "enforce")
			exec(t, conn, "SELECT fencing.tombstones('t'), fencing.seal('t', 'r')")
			before, triggers := get[[]string](t, conn, description), wallTriggers(t, conn)
			exec(t, conn, setup)
			requireRefused(t, migrations.Down(t.Context(), dsn), "2BP01", "remove schema fencing")
			require.Equal(t, before, get[[]string](t, conn, description))
			require.Equal(t, triggers, wallTriggers(t, conn))
		})
	}
}

const keep = "keep_triggers"

// A program that starts while a newer one has brought the schema further leaves
// it alone, and its doctor finds nothing.
func TestUpOfAnOlderProgram(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "INSERT INTO fencing.goose_db_version (version_id, is_applied) VALUES (2, true)")
	before := get[[]string](t, conn, description)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Equal(t, before, get[[]string](t, conn, description))
	version, err := migrations.Version(t.Context(), dsn)
	require.NoError(t, err)
	require.EqualValues(t, 2, version)
	require.Empty(t, codes(diagnose(t, dsn), "error", "warning"))
}

// A record without the migrations before the newest one isn't taken for whole.
func TestUpRefusesARecordWithGaps(t *testing.T) {
	dsn := localpg.Database(t, installed)
	exec(t, open(t, dsn), "UPDATE fencing.goose_db_version SET version_id = 2 WHERE version_id = 1")
	require.ErrorContains(t, migrations.Up(t.Context(), dsn), "install schema fencing: ")
	require.ErrorContains(t, migrations.Down(t.Context(), dsn), "remove schema fencing: ")
}
