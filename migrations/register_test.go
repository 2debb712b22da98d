package migrations_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// entry is a row of fencing.registry as tests compare it.
type entry struct {
	Relid, Schema, Table, Column, Mode, Resource, IssuedBy string
}

func registry(t testing.TB, conn *pgx.Conn) []entry {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT relid::text, schema_name::text, table_name::text, token_column::text, mode,
		coalesce(resource, '-'), coalesce(issued_by::text, '-') FROM fencing.registry ORDER BY schema_name, table_name`)
	require.NoError(t, err)
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
	require.NoError(t, err)
	return entries
}

func generation(t testing.TB, conn *pgx.Conn) int64 {
	t.Helper()
	return get[int64](t, conn, "SELECT value FROM fencing.generation")
}

func TestRegister(t *testing.T) {
	const epoch = "fencing.write_epoch"
	for _, tt := range []struct {
		name   string
		create string
		table  migrations.Table
		want   entry
	}{
		{"plain", `CREATE TABLE orders (id int PRIMARY KEY)`,
			migrations.Table{Name: "orders", Mode: migrations.Strict},
			entry{"orders", "public", "orders", "last_token", "strict", "-", epoch}},
		{"folded as SQL folds", `CREATE TABLE orders (id int PRIMARY KEY)`,
			migrations.Table{Name: "ORDERS", Mode: migrations.Lease},
			entry{"orders", "public", "orders", "last_token", "lease", "-", epoch}},
		{"quoted", `CREATE TABLE "Order ""Lines""" (id int PRIMARY KEY)`,
			migrations.Table{Name: `"Order ""Lines"""`, Mode: migrations.Lease, TokenColumn: "Last Token"},
			entry{`"Order ""Lines"""`, "public", `Order "Lines"`, "Last Token", "lease", "-", epoch}},
		{"a number, quoted", `CREATE TABLE "1259" (id int PRIMARY KEY)`,
			migrations.Table{Name: `"1259"`, Mode: migrations.Lease},
			entry{`"1259"`, "public", "1259", "last_token", "lease", "-", epoch}},
		{"with schema", `CREATE SCHEMA app; CREATE TABLE app.orders (id int PRIMARY KEY); CREATE TABLE orders (id int)`,
			migrations.Table{Name: "app.orders", Mode: migrations.Lease},
			entry{"app.orders", "app", "orders", "last_token", "lease", "-", epoch}},
		{"partitioned", `CREATE TABLE orders (id int, at date) PARTITION BY RANGE (at);
			CREATE TABLE orders_24 PARTITION OF orders FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (id);
			CREATE TABLE orders_24_1 PARTITION OF orders_24 FOR VALUES FROM (1) TO (10)`,
			migrations.Table{Name: "orders", Mode: migrations.Lease},
			entry{"orders", "public", "orders", "last_token", "lease", "-", epoch}},
		{"column and resource", `CREATE TABLE orders (id int PRIMARY KEY)`,
			migrations.Table{Name: "orders", Mode: migrations.Lease, TokenColumn: "fence", Resource: "billing"},
			entry{"orders", "public", "orders", "fence", "lease", "billing", epoch}},
		{"the column is there", `CREATE TABLE orders (id int PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (1, 7)`,
			migrations.Table{Name: "orders", Mode: migrations.Strict},
			entry{"orders", "public", "orders", "last_token", "strict", "-", epoch}},
		{"the column is there without a default", `CREATE TABLE orders (id int PRIMARY KEY, last_token bigint NOT NULL)`,
			migrations.Table{Name: "orders", Mode: migrations.Strict},
			entry{"orders", "public", "orders", "last_token", "strict", "-", epoch}},
		{"a column of the name was dropped", `CREATE TABLE orders (id int PRIMARY KEY, last_token text); ALTER TABLE orders DROP COLUMN last_token`,
			migrations.Table{Name: "orders", Mode: migrations.Strict},
			entry{"orders", "public", "orders", "last_token", "strict", "-", epoch}},
		{"inherited from", `CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE old_orders () INHERITS (orders)`,
			migrations.Table{Name: "orders", Mode: migrations.Strict},
			entry{"orders", "public", "orders", "last_token", "strict", "-", epoch}},
		{"with rows", `CREATE TABLE orders AS SELECT generate_series(1, 100) AS id`,
			migrations.Table{Name: "orders", Mode: migrations.Strict},
			entry{"orders", "public", "orders", "last_token", "strict", "-", epoch}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, tt.create)
			require.NoError(t, migrations.Register(t.Context(), dsn, tt.table))
			require.Equal(t, []entry{tt.want}, registry(t, conn))
			// the column, of the table and of all that inherit from it
			require.True(t, get[bool](t, conn, `WITH RECURSIVE f AS (
				SELECT $1::text::regclass::oid AS oid UNION SELECT inhrelid FROM f JOIN pg_inherits ON inhparent = f.oid)
				SELECT bool_and(coalesce(atttypid = 'bigint'::regtype AND attnotnull, false))
				FROM f LEFT JOIN pg_attribute a ON attrelid = f.oid AND attname = $2::text::name`, tt.want.Relid, tt.want.Column))

			at := generation(t, conn)
			require.NoError(t, migrations.Register(t.Context(), dsn, tt.table), "a second time")
			require.Equal(t, []entry{tt.want}, registry(t, conn))
			require.Equal(t, at, generation(t, conn), "nothing has changed")
		})
	}
}

func TestRegisterChanges(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int PRIMARY KEY); LISTEN fencerow_registry")
	row := entry{"orders", "public", "orders", "last_token", "strict", "-", "fencing.write_epoch"}
	table := migrations.Table{Name: "orders", Mode: migrations.Strict}
	for _, step := range []func(){
		func() {},
		func() { table.Mode = migrations.Lease; row.Mode = "lease" },
		func() { table.Resource = "billing"; row.Resource = "billing" },
		func() { table.Resource = ""; row.Resource = "-" },
	} {
		step()
		before := generation(t, conn)
		require.NoError(t, migrations.Register(t.Context(), dsn, table))
		require.Equal(t, []entry{row}, registry(t, conn))
		require.Equal(t, before+1, generation(t, conn))
		n, err := conn.WaitForNotification(t.Context())
		require.NoError(t, err)
		require.Equal(t, get[string](t, conn, "SELECT value::text FROM fencing.generation"), n.Payload)
	}
	before := generation(t, conn)
	// another token column would start at 0
	table.TokenColumn = "fence"
	require.ErrorContains(t, migrations.Register(t.Context(), dsn, table), "registered with another token column")
	require.ErrorContains(t, migrations.Register(t.Context(), dsn, table, migrations.Table{Name: "orders", Mode: migrations.Strict}), "given twice, and not alike")
	require.Equal(t, []entry{row}, registry(t, conn))
	require.Equal(t, before, generation(t, conn))
	require.NoError(t, migrations.Unregister(t.Context(), dsn, "orders"))
	require.Empty(t, registry(t, conn))
	require.Equal(t, before+1, generation(t, conn))
	require.Zero(t, get[int64](t, conn, "SELECT count(last_token) FROM orders"), "the column stays")
	require.NoError(t, migrations.Unregister(t.Context(), dsn, "orders"), "a second time")
	require.Equal(t, before+1, generation(t, conn))
}

// From SQL: the arguments that the Go side doesn't have, and any other writer
// of the registry.
func TestRegisterInSQL(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE orders (id int PRIMARY KEY); CREATE SEQUENCE zxid`)
	row := entry{"orders", "public", "orders", "last_token", "lease", "-", "-"}
	exec(t, conn, `SELECT fencing.register('orders', mode => 'lease', issued_by => NULL)`)
	require.Equal(t, []entry{row}, registry(t, conn))
	exec(t, conn, `SELECT fencing.register('orders', mode => 'lease', issued_by => 'zxid')`)
	row.IssuedBy = "zxid"
	require.Equal(t, []entry{row}, registry(t, conn))

	for _, sql := range []string{
		"UPDATE fencing.registry SET mode = 'strict'",
		"SET session_replication_role = replica; DELETE FROM fencing.registry; RESET session_replication_role",
		"TRUNCATE fencing.registry",
	} {
		before := generation(t, conn)
		exec(t, conn, sql)
		require.Equal(t, before+1, generation(t, conn), sql)
	}
}

func TestRegisterAllOrNone(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int PRIMARY KEY); CREATE VIEW v AS SELECT 1 AS id")
	require.NoError(t, migrations.Register(t.Context(), dsn))
	err := migrations.Register(t.Context(), dsn,
		migrations.Table{Name: "orders", Mode: migrations.Lease}, migrations.Table{Name: "v", Mode: migrations.Lease})
	requireRefused(t, err, "42809", "register v:")
	require.Empty(t, registry(t, conn))
	require.False(t, get[bool](t, conn, "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attname = 'last_token')"))
}

func TestRegisterConcurrently(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE items (id int PRIMARY KEY)")
	tables := []migrations.Table{{Name: "orders", Mode: migrations.Lease}, {Name: "items", Mode: migrations.Lease}}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		// in either order: they must not deadlock
		wg.Go(func() { errs[i] = migrations.Register(t.Context(), dsn, tables[i%2], tables[1-i%2]) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Len(t, registry(t, conn), 2)
}

// A column that is renamed, or gone, took the tokens with it: a new one would
// start at 0, and the wall's triggers would look at the old one.
func TestRegisterWithoutItsColumn(t *testing.T) {
	for _, wall := range []string{"off", "enforce"} {
		for _, change := range []string{"RENAME last_token TO t", "DROP last_token CASCADE"} {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn,
				"CREATE TABLE orders (id int); SELECT fencing.register('orders', 'lease'); SELECT fencing.wall('orders', '"+wall+"'); ALTER TABLE orders "+change)
			for _, mode := range []string{"lease", "strict"} {
				_, err := conn.Exec(t.Context(), "SELECT fencing.register('orders', $1)", mode)
				requireHint(t, err, "42703", "public.orders is registered and has no column last_token", "its name back", "fencing.unregister")
			}
			require.ErrorContains(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}), "has no column last_token")
			if strings.HasPrefix(change, "RENAME") {
				exec(t, conn, "ALTER TABLE orders RENAME t TO last_token; SELECT fencing.register('orders', 'lease')")
			}
			exec(t, conn, "SELECT fencing.unregister('orders'); SELECT fencing.register('orders', 'strict')")
		}
	}
}

func TestRegisterTemporarySequence(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn, "CREATE TABLE orders (id int); CREATE TEMP SEQUENCE s")
	_, err := conn.Exec(t.Context(), "SELECT fencing.register('orders', 'lease', issued_by => 's')")
	requireHint(t, err, "42809", "is a temporary sequence", "It goes with its session")
}
