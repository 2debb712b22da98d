package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// exchanged is a swap of two tables that are protected alike: orders is the
// one that was made, and old the one that was there.
const exchanged = `CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders;
	SELECT fencing.register('made', 'lease', 'fence', 'shop'), fencing.driver_rewrite('made', true), fencing.wall('made', 'attested'), fencing.tombstones('made'), fencing.seal('made', 'L');
	INSERT INTO fencing.tombstone SELECT 'made'::regclass, digest, key, token, xact, deleted_at FROM fencing.tombstone;
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
		{"both off", `SELECT fencing.unseal('old'), fencing.tombstones('old', false), fencing.wall('old', 'off'), fencing.unseal('orders'), fencing.tombstones('orders', false), fencing.wall('orders', 'off')`, "D201 wall-off"},
		{"a tombstone missing", `DELETE FROM fencing.tombstone WHERE relid = 'orders'::regclass`, "D105 name-taken"},
		{"a tombstone older", `UPDATE fencing.tombstone SET token = 3 WHERE relid = 'orders'::regclass`, "D105 name-taken"},
		{"not rewritten", `SELECT fencing.driver_rewrite('orders', false)`, "D105 name-taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, guarded+"; "+exchanged)
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
	for name, key := range map[string]string{"with a key": "PRIMARY KEY", "with a key of its own": "GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "without a key": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "CREATE TABLE t (id int "+key+", twice int GENERATED ALWAYS AS (id * 2) STORED); SELECT setval('fencing.write_epoch', 20), fencing.register('t', 'lease')")
			exec(t, conn, "INSERT INTO t (id, last_token) OVERRIDING SYSTEM VALUE VALUES (1, 5); SELECT fencing.wall('t')")
			require.Empty(t, codes(diagnose(t, dsn), "error"))
			exec(t, conn, `DROP TRIGGER "~fencing_insert" ON t; DROP TRIGGER "~fencing_late_insert" ON t`)
			require.Contains(t, said(diagnose(t, dsn), "D801 wall-open"), "an INSERT without a token")
			requireAdvice(t, dsn)
		})
	}
}
