package migrations_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// level is the level in the row of a table.
func level(t testing.TB, conn *pgx.Conn, table string) string {
	t.Helper()
	return get[string](t, conn, "SELECT driver_level FROM fencing.registry WHERE relid = $1::text::regclass", table)
}

func TestSetLevel(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE SCHEMA app; CREATE TABLE app."Order ""Lines""" (id int); CREATE TABLE items (id int)`)
	const name = `app."Order ""Lines"""`
	table := migrations.Table{Name: name, Mode: migrations.Lease}
	require.NoError(t, migrations.Register(t.Context(), dsn, table, migrations.Table{Name: "items", Mode: migrations.Lease}))
	require.Equal(t, "enforce", level(t, conn, name))
	at := generation(t, conn)
	for _, tt := range []struct {
		level migrations.Level
		bumps int64
	}{
		{migrations.Enforce, 0}, {migrations.Report, 1}, {migrations.Report, 0}, {migrations.Off, 1},
		{migrations.Off, 0}, {migrations.Enforce, 1}, {migrations.Off, 1}, {migrations.Report, 1},
	} {
		require.NoError(t, migrations.SetLevel(t.Context(), dsn, name, tt.level))
		require.Equal(t, string(tt.level), level(t, conn, name))
		require.Equal(t, "enforce", level(t, conn, "items"), "no other table's")
		at += tt.bumps
		require.Equal(t, at, generation(t, conn), tt.level)
	}

	require.NoError(t, migrations.Register(t.Context(), dsn, table))
	require.Equal(t, at, generation(t, conn), "registered again as it is")
	require.Equal(t, "report", level(t, conn, name))
	table.Mode, table.Resource = migrations.Strict, "billing"
	require.NoError(t, migrations.Register(t.Context(), dsn, table))
	require.Equal(t, "report", level(t, conn, name), "registered again and changed")
	require.NoError(t, migrations.Unregister(t.Context(), dsn, name))
	require.NoError(t, migrations.Register(t.Context(), dsn, table))
	require.Equal(t, "enforce", level(t, conn, name), "unregistered in between")
}

func TestSetLevelNotifies(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int); SELECT fencing.register('orders', 'lease')")
	exec(t, conn, "LISTEN fencerow_registry")
	for _, l := range []migrations.Level{migrations.Off, migrations.Report, migrations.Enforce} {
		require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", l))
		n, err := conn.WaitForNotification(t.Context())
		require.NoError(t, err)
		require.Equal(t, get[string](t, conn, "SELECT value::text FROM fencing.generation"), n.Payload)
	}
}

// Levels over renames and new tables of an old name. Table a starts registered,
// at report; b is not registered.
func TestLevelAfterRename(t *testing.T) {
	const replaced = "ALTER TABLE a RENAME TO x; CREATE TABLE a (id int);"
	const remade = "DROP TABLE a; CREATE TABLE a (id int);"
	for _, tt := range []struct {
		name, steps, last string
		want              map[string]string // level by the registered name
		state             string            // of the refusal of the last step
		words             []string
	}{
		{name: "renamed",
			last: "ALTER TABLE a RENAME TO x",
			want: map[string]string{"a": "report"}},
		{name: "renamed and set: the registered name stays",
			steps: "ALTER TABLE a RENAME TO x", last: "SELECT fencing.driver_level('x', 'off')",
			want: map[string]string{"a": "off"}},
		{name: "renamed and registered",
			steps: "ALTER TABLE a RENAME TO x", last: "SELECT fencing.register('x', 'lease')",
			want: map[string]string{"x": "report"}},
		{name: "moved to another schema and registered",
			steps: "CREATE SCHEMA s; ALTER TABLE a SET SCHEMA s", last: "SELECT fencing.register('s.a', 'lease')",
			want: map[string]string{"a": "report"}},
		{name: "swapped: each has the stricter level of the two, its own and that of its name",
			steps: "SELECT fencing.register('b', 'lease'); ALTER TABLE a RENAME TO x; ALTER TABLE b RENAME TO a; ALTER TABLE x RENAME TO b",
			last:  "SELECT fencing.register('a', 'lease')",
			want:  map[string]string{"a": "enforce", "b": "enforce"}},
		{name: "replaced, the new one registered: it has the level of its name",
			steps: replaced, last: "SELECT fencing.register('a', 'lease')",
			want: map[string]string{"a": "report", "x": "report"}},
		{name: "replaced, the new one not registered",
			steps: replaced, last: "SELECT fencing.driver_level('a', 'off')",
			want:  map[string]string{"a": "report"},
			state: "55000", words: []string{"public.a is not registered itself, only another table under that name", "fencing.register('public.a', ...)"}},
		{name: "replaced, the old one let go of: the new one would be too",
			steps: replaced, last: "SELECT fencing.driver_level('x', 'off')",
			want:  map[string]string{"a": "report"},
			state: "55000", words: []string{"public.x was registered as public.a, and another table has that name now", "fencing.unregister('public.a')"}},
		{name: "replaced, the old one's level set to what it is",
			steps: replaced, last: "SELECT fencing.driver_level('x', 'report')",
			want: map[string]string{"a": "report"}},
		{name: "replaced, both registered",
			steps: replaced + "SELECT fencing.register('a', 'lease')", last: "SELECT fencing.driver_level('x', 'off')",
			want: map[string]string{"a": "report", "x": "off"}},
		{name: "made again: the old row holds",
			last: remade,
			want: map[string]string{"a": "report"}},
		{name: "made again and registered: the level of the old row",
			steps: remade, last: "SELECT fencing.register('a', 'lease')",
			want: map[string]string{"a": "report"}},
		{name: "made again, unregistered and registered: a new row",
			steps: remade + "SELECT fencing.unregister('a')", last: "SELECT fencing.register('a', 'lease')",
			want: map[string]string{"a": "enforce"}},
		{name: "dropped: the row can be set by its oid",
			steps: "DROP TABLE a", last: "SELECT fencing.driver_level(relid, 'off') FROM fencing.registry",
			want: map[string]string{"a": "off"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "CREATE TABLE a (id int); CREATE TABLE b (id int); SELECT fencing.register('a', 'lease'); SELECT fencing.driver_level('a', 'report')")
			exec(t, conn, tt.steps)
			_, err := conn.Exec(t.Context(), tt.last)
			if tt.state == "" {
				require.NoError(t, err)
			} else {
				requireHint(t, err, tt.state, tt.words...)
			}
			require.Equal(t, tt.want, get[map[string]string](t, conn, "SELECT json_object_agg(table_name, driver_level) FROM fencing.registry"))
		})
	}
}

func TestSetLevelRefuses(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE orders (id int); CREATE TABLE "Plain" (id int); CREATE VIEW v AS SELECT 1 AS id;
		CREATE TABLE parted (id int) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parted FOR VALUES FROM (1) TO (9);
		SELECT fencing.register('orders', 'lease'); SELECT fencing.register('parted', 'lease')`)
	before := generation(t, conn)
	for _, tt := range []struct {
		args, state string
		words       []string
	}{
		{"'orders', 'Report'", "22023", []string{"unknown level 'Report' for public.orders", "'off'", "'report'", "'enforce'"}},
		{"'orders', ''", "22023", []string{"unknown level '' for public.orders"}},
		{"'orders', NULL", "22023", []string{"no level given for public.orders", "'off'", "'report'", "'enforce'"}},
		{`'"Plain"', 'loud'`, "22023", []string{`unknown level 'loud' for public."Plain"`}},
		{`'"Plain"', 'off'`, "55000", []string{`public."Plain" is not registered`, `Register it first: SELECT fencing.register('public."Plain"', ...)`}},
		{"'part', 'off'", "42809", []string{"public.part is a partition", "fencing.register('public.parted', ...)"}},
		{"'v', 'off'", "42809", []string{"public.v is a view"}},
		{"'pg_class', 'off'", "42809", []string{"a system table"}},
		{"'fencing.registry', 'off'", "42809", []string{"a table of fencing itself"}},
		{"NULL, 'off'", "42P01", []string{"no table given", "registered table"}},
		{"NULL, NULL", "42P01", []string{"no table given"}},
		{"987654321, 'off'", "42P01", []string{"no table given"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			_, err := conn.Exec(t.Context(), "SELECT fencing.driver_level("+tt.args+")")
			requireHint(t, err, tt.state, tt.words...)
		})
	}
	requireRefused(t, migrations.SetLevel(t.Context(), dsn, `"Plain"`, migrations.Off), "55000",
		`set the level of "Plain": fencing: public."Plain" is not registered: Register it first`)
	requireRefused(t, migrations.SetLevel(t.Context(), dsn, "missing", migrations.Off), "42P01", "set the level of missing: ", "correct the name")
	requireRefused(t, migrations.SetLevel(t.Context(), dsn, "no_schema.t", migrations.Off), "3F000", "set the level of no_schema.t: ", "correct the name")
	_, err := conn.Exec(t.Context(), "UPDATE fencing.registry SET driver_level = 'loud'")
	requireRefused(t, err, "23514")
	require.Equal(t, before, generation(t, conn))
}

// Mistakes that are found before any connection: the DSN leads nowhere.
func TestSetLevelChecksFirst(t *testing.T) {
	for _, tt := range []struct {
		table string
		level migrations.Level
		words string
	}{
		{"orders", "", "set the level of orders: no level given: choose migrations.Off, migrations.Report or migrations.Enforce"},
		{"orders", "Off", `set the level of orders: unknown level "Off": choose migrations.Off`},
		{"", migrations.Off, "set the level of: a table without a name"},
		{"1259", migrations.Off, "set the level of 1259: that is a number, not a name"},
	} {
		require.ErrorContains(t, migrations.SetLevel(t.Context(), "host=/nonexistent", tt.table, tt.level), tt.words)
	}
}

// Whole transactions that set two levels, in either order, beside Register:
// they must not deadlock.
func TestSetLevelConcurrently(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE a (id int); CREATE TABLE b (id int); SELECT fencing.register('a', 'lease'); SELECT fencing.register('b', 'lease')")
	order := [2]string{
		"SELECT fencing.driver_level('a', 'report'); SELECT fencing.register('b', 'strict'); SELECT fencing.driver_level('b', 'off')",
		"SELECT fencing.driver_level('b', 'report'); SELECT fencing.register('a', 'strict'); SELECT fencing.driver_level('a', 'off')",
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		other := open(t, dsn)
		wg.Go(func() { _, errs[i] = other.Exec(t.Context(), order[i%2]) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Contains(t, []string{"off", "report"}, level(t, conn, "a"))
}
