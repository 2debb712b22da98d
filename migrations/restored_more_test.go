package migrations_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// exchanged is a swap of two tables that are protected alike: orders is the
// one that was made, and old the one that was there.
const exchanged = `CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders;
	SELECT fencing.register('made', 'lease', 'fence', 'shop'), fencing.driver_rewrite('made', true), fencing.wall('made', 'attested'), fencing.tombstones('made'), fencing.seal('made', 'L');
	INSERT INTO fencing.tombstone SELECT 'made'::regclass, digest, key, columns, token, xact, deleted_at FROM fencing.tombstone;
	ALTER TABLE orders RENAME TO old; ALTER TABLE made RENAME TO orders`

// What is wrong with the table that has the name is said, although another
// one is registered under that name.
func TestExchangedIsLookedAt(t *testing.T) {
	for _, tt := range []struct{ name, sql, want string }{
		{"trigger dropped", `DROP TRIGGER "~fencing_update" ON orders`, "D202 trigger-missing"},
		{"trigger disabled", `ALTER TABLE orders DISABLE TRIGGER "~fencing_update"`, "D203 trigger-disabled"},
		{"all triggers disabled", `ALTER TABLE orders DISABLE TRIGGER ALL`, "D203 trigger-disabled"},
		{"function of another", `CREATE FUNCTION lax() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
			CREATE OR REPLACE TRIGGER "~fencing_update" BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION lax()`, "D204 trigger-function"},
		{"level of a trigger", `DO $$ BEGIN EXECUTE (SELECT replace(replace(pg_get_triggerdef(oid), 'CREATE', 'CREATE OR REPLACE'), 'attested'')', 'report'')')
			FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND tgname = '~fencing_update'); END $$; ALTER TABLE orders ENABLE ALWAYS TRIGGER "~fencing_update"`, "D205 trigger-changed"},
		{"seal's trigger dropped", `DROP TRIGGER "~fencing_zseal" ON orders`, "D202 trigger-missing"},
		{"seal's trigger disabled", `ALTER TABLE orders DISABLE TRIGGER "~fencing_zseal"`, "D203 trigger-disabled"},
		{"column nullable", `ALTER TABLE orders ALTER fence DROP NOT NULL`, "D107 column-nullable"},
		{"off", `SELECT fencing.unseal('orders'), fencing.tombstones('orders', false), fencing.wall('orders', 'off')`, "D105 name-taken"},
		{"both off",
			`SELECT fencing.unseal('old'), fencing.tombstones('old', false), fencing.wall('old', 'off'), fencing.unseal('orders'), ` +
				`fencing.tombstones('orders', false), fencing.wall('orders', 'off')`,
			"D201 wall-off"},
		{"a tombstone missing", `DELETE FROM fencing.tombstone WHERE relid = 'orders'::regclass`, "D105 name-taken"},
		{"a tombstone older", `UPDATE fencing.tombstone SET token = 3 WHERE relid = 'orders'::regclass`, "D105 name-taken"},
		{"not rewritten", `SELECT fencing.driver_rewrite('orders', false)`, "D105 name-taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded+"; "+exchanged))
			conn := open(t, dsn)
			require.Empty(t, codes(diagnose(t, dsn), "error"))
			exec(t, conn, tt.sql)
			severities := []string{"error"}
			if tt.want == "D201 wall-off" {
				severities = append(severities, "warning")
			}
			require.Contains(t, codes(diagnose(t, dsn), severities...), tt.want)
			requireAdvice(t, dsn)
			if tt.name != "both off" {
				requireStaleRefused(t, dsn)
				require.Equal(t, "7:9", get[string](t, conn, "SELECT string_agg(key[1] || ':' || token, ',') FROM fencing.tombstone WHERE relid = 'orders'::regclass"))
			}
		})
	}
}

// The doctor tries an INSERT, too: with a key, which a copy of a row breaks, and without one.
func TestDoctorTriesAnInsert(t *testing.T) {
	for name, key := range map[string]string{"with a key": "PRIMARY KEY", "with a key of its own": "GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"without a key": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn,
				"CREATE TABLE t (id int "+key+", twice int GENERATED ALWAYS AS (id * 2) STORED); SELECT setval('fencing.write_epoch', 20), fencing.register('t', 'lease')")
			exec(t, conn, "INSERT INTO t (id, last_token) OVERRIDING SYSTEM VALUE VALUES (1, 5); SELECT fencing.wall('t')")
			require.Empty(t, codes(diagnose(t, dsn), "error"))
			exec(t, conn, `DROP TRIGGER "~fencing_insert" ON t; DROP TRIGGER "~fencing_late_insert" ON t`)
			require.Contains(t, said(diagnose(t, dsn), "D801 wall-open"), "an INSERT without a token")
			requireAdvice(t, dsn)
		})
	}
}

// Rows that were restored without their tokens count as written under the newest one.
func TestReplacedWithoutItsColumn(t *testing.T) {
	for _, tt := range replacements {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			if tt.want == "D103 not-a-table" || tt.name == "dropped, and its triggers made again" || registersAnother.MatchString(tt.sql) {
				return // the table has the column
			}
			exec(t, conn, tt.sql+"; ALTER TABLE orders DROP COLUMN fence; SELECT setval('fencing.write_epoch', 30)")
			requireAdvice(t, dsn)
			require.Equal(t, int64(30), get[int64](t, conn, "SELECT fence FROM orders WHERE id = 2"))
			require.Equal(t, "0", get[string](t, conn, "SELECT column_default FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'fence'"))
			requireStaleRefused(t, dsn)
		})
	}
}

var registersAnother = regexp.MustCompile(`fencing\.register`)

// Where nothing tells the newest token, it is for somebody to say.
func TestReplacedWithoutItsColumnOrSequence(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn,
		`CREATE TABLE t (id int); SELECT fencing.register('t', 'lease', issued_by => NULL); DROP TABLE t; CREATE TABLE t (id int); INSERT INTO t VALUES (1)`)
	for _, call := range []string{"SELECT fencing.register('t', 'lease')", "SELECT fencing.register('t', 'lease', issued_by => NULL)"} {
		_, err := conn.Exec(t.Context(), call)
		requireHint(t, err, "42703", "have no token column", "fencing.unregister('public.t')", "ADD COLUMN last_token")
	}
	exec(t, conn, "DELETE FROM t; SELECT fencing.register('t', 'lease', issued_by => NULL)")
}

// parts are the partitions of one table that are registered by themselves, the
// first of them as orders was.
const parts = `ALTER TABLE orders RENAME TO part1; SELECT fencing.register('part1', 'lease', 'fence', 'shop');
	CREATE TABLE part2 (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0); CREATE SEQUENCE other;
	CREATE TABLE orders (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
	ALTER TABLE orders ATTACH PARTITION part1 FOR VALUES FROM (0) TO (50); `

// What partitions were registered for holds for all of them, or somebody says which.
func TestPartitionsThatDiffer(t *testing.T) {
	for _, tt := range []struct{ name, sql, want string }{
		{"mode", "SELECT fencing.register('part2', 'strict', 'fence', 'shop')", "mode"},
		{"resource", "SELECT fencing.register('part2', 'lease', 'fence')", "resource"},
		{"sequence", "SELECT fencing.register('part2', 'lease', 'fence', 'shop', 'other')", "issued_by"},
		{"seal", "SELECT fencing.register('part2', 'lease', 'fence', 'shop'), fencing.wall('part2', 'attested'), fencing.seal('part2', 'M')", "seal"},
		{"mode and resource", "SELECT fencing.register('part2', 'strict', 'fence')", "mode and resource"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			exec(t, conn, parts+tt.sql+"; ALTER TABLE orders ATTACH PARTITION part2 DEFAULT")
			before := get[string](t, conn, protectionOf, "part1")
			for _, f := range advise(t, dsn) {
				if f.Code == "D103 not-a-table" {
					require.Contains(t, f.Remedy, "differs in "+tt.want+":")
				}
			}
			for _, call := range []string{"'lease', 'fence', 'shop'", "'strict', 'fence'", "'strict', 'fence', 'shop'"} {
				_, err := conn.Exec(t.Context(), "SELECT fencing.register('orders', "+call+")")
				requireHint(t, err, "55000", "registered with different "+tt.want, "fencing.unregister", "public.part1, public.part2")
			}
			require.Equal(t, before, get[string](t, conn, protectionOf, "part1"))
			exec(t, conn, "BEGIN; SELECT fencing.unregister('part2'); SELECT fencing.register('orders', 'lease', 'fence', 'shop'); COMMIT")
			requireAdvice(t, dsn)
			requireStaleRefused(t, dsn)
		})
	}
}

// A root that is registered otherwise than its partition takes nothing from it.
func TestPartitionAndRootThatDiffer(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE part (id int, last_token bigint NOT NULL DEFAULT 0); SELECT fencing.register('part', 'strict'), fencing.wall('part');
		CREATE TABLE root (LIKE part INCLUDING DEFAULTS) PARTITION BY RANGE (id); SELECT fencing.register('root', 'lease'); ALTER TABLE root ATTACH PARTITION part DEFAULT`)
	_, err := conn.Exec(t.Context(), "SELECT fencing.register('root', 'lease')")
	requireHint(t, err, "55000", "registered with different mode", "fencing.unregister")
	require.Contains(t, codes(advise(t, dsn), "error"), "D103 not-a-table")
	exec(t, conn, "SELECT fencing.register('root', 'strict')")
	requireAdvice(t, dsn)
	require.Equal(t, "enforce", get[string](t, conn, "SELECT wall_level FROM fencing.registry WHERE relid = 'root'::regclass"))
}

// The table that has the name keeps its protection when the one that had it
// becomes a partition, however many remedies are run.
func TestSucceededByAPartitionedTable(t *testing.T) {
	dsn := localpg.Database(t, prepared(guarded))
	conn := open(t, dsn)
	before := get[string](t, conn, protectionOf, "orders")
	exec(t, conn,
		`ALTER TABLE orders RENAME TO orders_2025; CREATE TABLE orders_all (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
		ALTER TABLE orders_all ATTACH PARTITION orders_2025 DEFAULT; CREATE TABLE orders (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (2, 'two', 9)`)
	_, err := conn.Exec(t.Context(), "SELECT fencing.register('orders_all', 'lease', 'fence', 'shop')")
	requireHint(t, err, "55000", "orders_2025 was registered as public.orders", "SELECT fencing.register('public.orders', ...)")
	requireAdvice(t, dsn)
	require.Equal(t, before, get[string](t, conn, protectionOf, "orders"))
	requireStaleRefused(t, dsn)
	require.Equal(t, "attested true L",
		get[string](t, conn,
			"SELECT concat_ws(' ', wall_level, tombstones::text, seal_resource) FROM fencing.registry WHERE relid = 'orders_all'::regclass"))
	require.Equal(t, "7:9", get[string](t, conn, "SELECT string_agg(key[1] || ':' || token, ',') FROM fencing.tombstone WHERE relid = 'orders_all'::regclass"))
}

// Who had the name hands on what it has before it gives the name up.
func TestExchangedHandsOn(t *testing.T) {
	for _, sql := range []string{"SELECT fencing.unregister('old')", "SELECT fencing.register('old', 'lease', 'fence', 'shop')",
		"SELECT fencing.register('orders', 'lease', 'fence', 'shop')"} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			exec(t, conn, exchanged+`; DELETE FROM fencing.tombstone WHERE relid = 'orders'::regclass; SELECT fencing.driver_rewrite('orders', false)`)
			exec(t, conn, sql)
			require.Equal(t, "true 7:9",
				get[string](t, conn,
					`SELECT driver_rewrite::text || ' ' || (SELECT string_agg(key[1] || ':' || token, ',') FROM fencing.tombstone WHERE relid = 'orders'::regclass)
				FROM fencing.registry WHERE relid = 'orders'::regclass`))
			requireStaleRefused(t, dsn)
			requireAdvice(t, dsn)
		})
	}
}

// What can't be handed on is said, with the way to do without.
func TestExchangedWithAnUnfitTable(t *testing.T) {
	dsn := localpg.Database(t, prepared(guarded))
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE made (id int, fence bigint NOT NULL DEFAULT 0); SELECT fencing.register('made', 'strict', 'fence', 'shop');
		ALTER TABLE orders RENAME TO old; ALTER TABLE made RENAME TO orders`)
	_, err := conn.Exec(t.Context(), "SELECT fencing.unregister('old')")
	requireHint(t, err, "55000", "public.orders is sealed", "public.orders has the name under which public.old was registered",
		"SELECT fencing.unregister('public.orders')")
	exec(t, conn, "SELECT fencing.unregister('orders'); SELECT fencing.unregister('old')")
	require.Empty(t, registry(t, conn))
}

// A partition that has the name of a table hands it to its root; a view or the like is an error.
func TestReplacedByNoTable(t *testing.T) {
	for _, tt := range []struct{ name, sql, want string }{
		{"partition", `CREATE TABLE root (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
			DROP TABLE orders; CREATE TABLE orders PARTITION OF root DEFAULT; INSERT INTO root VALUES (2, 'two', 9)`, "D102 table-replaced"},
		{"partition of a registered table",
			`CREATE TABLE root (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); SELECT fencing.register('root', 'lease', 'fence', 'shop');
			DROP TABLE orders; CREATE TABLE orders PARTITION OF root DEFAULT; INSERT INTO root VALUES (2, 'two', 9)`, "D102 table-replaced"},
		{"partition, and the table renamed", `CREATE TABLE root (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
			ALTER TABLE orders RENAME TO old; CREATE TABLE orders PARTITION OF root DEFAULT; INSERT INTO root VALUES (2, 'two', 9)`, "D105 name-taken"},
		{"partition of a registered table, and the table renamed",
			`CREATE TABLE root (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); SELECT fencing.register('root', 'lease', 'fence', 'shop');
			ALTER TABLE orders RENAME TO old; CREATE TABLE orders PARTITION OF root DEFAULT; INSERT INTO root VALUES (2, 'two', 9)`, "D105 name-taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			exec(t, conn, tt.sql)
			require.Contains(t, codes(diagnose(t, dsn), "error"), tt.want)
			requireAdvice(t, dsn)
			require.Equal(t, "attested true L 7:9",
				get[string](t, conn,
					`SELECT concat_ws(' ', wall_level, tombstones::text, seal_resource, (SELECT string_agg(key[1] || ':' || token, ',') FROM fencing.tombstone d WHERE d.relid = r.relid))
				FROM fencing.registry r WHERE relid = 'root'::regclass`))
			requireStaleRefused(t, dsn)
		})
	}
	for name, sql := range map[string]string{
		"view":              `CREATE TABLE base AS TABLE orders; DROP TABLE orders; CREATE VIEW orders AS TABLE base`,
		"materialized view": `CREATE TABLE base AS TABLE orders; DROP TABLE orders; CREATE MATERIALIZED VIEW orders AS TABLE base`,
		"foreign table": `CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; DROP TABLE orders; ` +
			`CREATE FOREIGN TABLE orders (id int) SERVER s`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			exec(t, open(t, dsn), guarded+"; "+sql)
			findings := diagnose(t, dsn)
			require.Contains(t, codes(findings, "error"), "D101 table-gone")
			require.Contains(t, said(findings, "D101 table-gone"), "a "+name+" has its name now")
		})
	}
}

// A partition that has left its table, or comes to one, takes its tombstones along.
func TestPartitionLeavesAndComes(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn,
		`CREATE TABLE root (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF root FOR VALUES FROM (50) TO (60);
		SELECT fencing.register('root', 'lease', 'fence', 'shop'), fencing.wall('root', 'attested'), fencing.tombstones('root'); ALTER TABLE root DETACH PARTITION part`)
	require.Contains(t, codes(diagnose(t, dsn), "error"), "D209 wall-left-over")
	exec(t, conn, "SELECT fencing.wall('part', 'off')")
	for _, call := range []string{"SELECT fencing.wall('root', 'attested')", "SELECT fencing.register('root', 'lease', 'fence', 'shop')",
		"SELECT fencing.tombstones('root')"} {
		t.Run(call, func(t *testing.T) {
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			exec(t, conn, `SELECT fencing.unregister('orders'); ALTER TABLE orders RENAME TO part;
				CREATE TABLE orders (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
				SELECT fencing.register('orders', 'lease', 'fence', 'shop'), fencing.wall('orders', 'attested'), fencing.tombstones('orders'); ALTER TABLE orders ATTACH PARTITION part DEFAULT`)
			exec(t, conn, strings.ReplaceAll(call, "root", "orders"))
			requireAdvice(t, dsn)
			require.Equal(t, "7:9", get[string](t, conn, "SELECT string_agg(key[1] || ':' || token, ',') FROM fencing.tombstone WHERE relid = 'orders'::regclass"))
		})
	}
}
