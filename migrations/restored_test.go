package migrations_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// guarded is a table with all the protection that a table can have, and a key
// with a tombstone: 7, which was deleted under token 9.
const guarded = `CREATE TABLE orders (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0);
	SELECT fencing.register('orders', 'lease', 'fence', 'shop'), fencing.driver_level('orders', 'report'), fencing.driver_rewrite('orders', true);
	SELECT setval('fencing.write_epoch', 20); INSERT INTO fencing.lease VALUES ('L', 'h', 9, now() + interval '12 hours');
	INSERT INTO orders VALUES (2, 'two', 9), (7, 'seven', 9);
	SELECT fencing.wall('orders', 'attested'), fencing.tombstones('orders'), fencing.seal('orders', 'L');
	SET fencing.token_shop = '9'; DELETE FROM orders WHERE id = 7; RESET fencing.token_shop`

// protectionOf is what protects the table that has a name: what is registered
// for it, the triggers that are not always enabled, and the tombstones.
const protectionOf = `SELECT concat_ws(' ', r.token_column, r.mode, r.resource, r.issued_by, r.wall_level, r.tombstones, r.seal_resource, r.seal_column, r.driver_level, r.driver_rewrite,
	(SELECT string_agg(tgname || tgenabled::text, ',' ORDER BY tgname) FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid
		WHERE tgrelid = c.oid AND pronamespace = 'fencing'::regnamespace),
	(SELECT string_agg(d.key[1] || ':' || d.token, ',') FROM fencing.tombstone d WHERE d.relid = c.oid))
	FROM (SELECT to_regclass($1) AS oid) c LEFT JOIN fencing.registry r ON r.relid = c.oid`

// kept is what is left of a protection: the stricter level of the driver, where
// the other table was registered by itself.
func kept(protection, sql string) string {
	if strings.Contains(sql, "fencing.register") {
		return strings.Replace(protection, " report ", " enforce ", 1)
	}
	return protection
}

// requireStaleRefused has a holder from before write as it likes.
func requireStaleRefused(t *testing.T, dsn string) {
	t.Helper()
	conn := open(t, dsn)
	for _, sql := range []string{"UPDATE orders SET v = 'unguarded'", "UPDATE orders SET v = 'stale', fence = 8 WHERE id = 2",
		"DELETE FROM orders WHERE id = 2", "INSERT INTO orders (id, v, fence) VALUES (7, 'stale', 8)", "INSERT INTO orders (id, v, fence) VALUES (99, 'stale', 8)"} {
		_, err := conn.Exec(t.Context(), "SET fencing.token_shop = '8'; "+sql)
		require.ErrorContains(t, err, "fencing: ", sql)
	}
}

// replacements put another table in the place of orders.
var replacements = []struct {
	name, sql string
	want      string // the finding that is an error meanwhile
}{
	{"dropped and made again",
		`DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (2, 'two', 9)`,
		"D102 table-replaced"},
	{"dropped, and another that is registered renamed", `CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders;
		SELECT fencing.register('made', 'lease', 'fence', 'shop'); DROP TABLE orders; ALTER TABLE made RENAME TO orders`, "D102 table-replaced"},
	{"swapped",
		`CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders; ALTER TABLE orders RENAME TO old; ALTER TABLE made RENAME TO orders`,
		"D105 name-taken"},
	{"swapped with one that is registered", `CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders;
		SELECT fencing.register('made', 'lease', 'fence', 'shop'); ALTER TABLE orders RENAME TO old; ALTER TABLE made RENAME TO orders`, "D105 name-taken"},
	{"names exchanged with one that is registered", `CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders;
		SELECT fencing.register('made', 'lease', 'fence', 'shop'); ALTER TABLE orders RENAME TO old; ALTER TABLE made RENAME TO orders; ALTER TABLE old RENAME TO made`, "D105 name-taken"},
	{"moved to another schema, and made again", `CREATE SCHEMA archive; CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders;
		ALTER TABLE orders SET SCHEMA archive; ALTER TABLE made RENAME TO orders`, "D105 name-taken"},
	{"made a partition of its successor",
		`ALTER TABLE orders RENAME TO first; CREATE TABLE orders (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
		ALTER TABLE orders ATTACH PARTITION first DEFAULT`, "D103 not-a-table"},
	{"its oid another relation's", `CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders; CREATE VIEW v AS SELECT 1;
		ALTER TABLE fencing.registry DISABLE TRIGGER USER; UPDATE fencing.registry SET relid = 'v'; ALTER TABLE fencing.registry ENABLE ALWAYS TRIGGER wall,
		ENABLE ALWAYS TRIGGER tombstones, ENABLE ALWAYS TRIGGER seal, ENABLE ALWAYS TRIGGER changed, ENABLE ALWAYS TRIGGER truncated;
		UPDATE fencing.tombstone SET relid = 'v'; DROP TABLE orders; ALTER TABLE made RENAME TO orders`, "D103 not-a-table"},
	{"dropped, and its triggers made again", restoredAlone, "D102 table-replaced"},
}

// restoredAlone does what a dump of the one table brings back.
const restoredAlone = `DO $$ DECLARE defs text[] := (SELECT array_agg(pg_get_triggerdef(oid) || CASE tgenabled WHEN 'A' THEN '; ALTER TABLE orders ENABLE ALWAYS TRIGGER ' || quote_ident(tgname) ELSE '' END)
	FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND NOT tgisinternal); d text; BEGIN
	DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY, v text, fence bigint NOT NULL DEFAULT 0); INSERT INTO orders VALUES (2, 'two', 9);
	FOREACH d IN ARRAY defs LOOP EXECUTE d; END LOOP; END $$`

// The table that has the name keeps what protected the name: by the start of a
// program, which registers what it needs, and by the doctor's remedies.
func TestReplacedKeepsItsProtection(t *testing.T) {
	for _, tt := range replacements {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			before := kept(get[string](t, conn, protectionOf, "orders"), tt.sql)
			requireStaleRefused(t, dsn)
			exec(t, conn, tt.sql)
			findings := diagnose(t, dsn)
			require.Contains(t, codes(findings, "error"), tt.want, "%v", findings)
			require.NotContains(t, codes(findings, "error", "warning"), "D209 wall-left-over", "%v", findings)
			requireAdvice(t, dsn)
			require.Equal(t, before, get[string](t, conn, protectionOf, "orders"))
			requireStaleRefused(t, dsn)
		})
		t.Run(tt.name+", and a program started", func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			before := kept(get[string](t, conn, protectionOf, "orders"), tt.sql)
			exec(t, conn, tt.sql)
			table := migrations.Table{Name: "orders", Mode: migrations.Lease, TokenColumn: "fence", Resource: "shop"}
			require.NoError(t, migrations.Register(t.Context(), dsn, table))
			require.Equal(t, before, get[string](t, conn, protectionOf, "orders"))
			requireStaleRefused(t, dsn)
			at := generation(t, conn)
			require.NoError(t, migrations.Register(t.Context(), dsn, table))
			require.Equal(t, at, generation(t, conn), "nothing has changed")
			requireAdvice(t, dsn)
			require.Empty(t, codes(diagnose(t, dsn), "error"))
		})
	}
}

// A program that names another token column would forget all tokens.
func TestReplacedKeepsItsColumn(t *testing.T) {
	for _, tt := range replacements {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			exec(t, conn, tt.sql)
			_, err := conn.Exec(t.Context(), "SELECT fencing.register('orders', 'lease')")
			requireHint(t, err, "55000", "registered with another token column", "fencing.unregister")
			exec(t, conn, "SELECT fencing.unregister('orders')")
			if strings.Contains(tt.sql, "ATTACH PARTITION") {
				require.ErrorContains(t, err, "first is registered")
				exec(t, conn, "SELECT fencing.unregister('first')")
			}
			exec(t, conn, "SELECT fencing.register('orders', 'lease')")
		})
	}
}

// What can't be put on the new table is said, with the way to do without.
func TestReplacedByAnUnfitTable(t *testing.T) {
	for name, tt := range map[string]struct{ create, call, want string }{
		"without a key": {"(id int, fence bigint NOT NULL DEFAULT 0)", "SELECT fencing.register('orders', 'lease', 'fence', 'shop')", "it has no primary key"},
		"in another mode": {"(id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0)",
			"SELECT fencing.register('orders', 'strict', 'fence', 'shop')", "sealed, which mode strict has no use for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, prepared(guarded))
			conn := open(t, dsn)
			exec(t, conn, "DROP TABLE orders; CREATE TABLE orders "+tt.create)
			_, err := conn.Exec(t.Context(), tt.call)
			requireHint(t, err, "55000", tt.want, "no less than that was", "SELECT fencing.unregister('public.orders')")
			require.Contains(t, codes(diagnose(t, dsn), "error"), "D102 table-replaced")
			exec(t, conn, "SELECT fencing.unregister('orders'); "+tt.call)
			require.NotContains(t, codes(diagnose(t, dsn), "error"), "D102 table-replaced")
		})
	}
}

// A dump of the one table, restored: with its triggers, and another oid.
func TestRestoredAlone(t *testing.T) {
	t.Parallel()
	d, ok := newDumper(t)
	if !ok {
		return
	}
	dsn := d.srv.DSN("src")
	conn := open(t, dsn)
	exec(t, conn, guarded)
	before := get[string](t, conn, protectionOf, "orders")
	dump, err := client(t.Context(), d.pgDump, "-t", "orders", dsn).Output()
	require.NoError(t, err)
	exec(t, conn, "DROP TABLE orders")
	load := client(t.Context(), d.psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", dsn)
	load.Stdin = strings.NewReader(string(dump))
	out, err := load.CombinedOutput()
	require.NoError(t, err, string(out))
	requireStaleRefused(t, dsn)
	requireAdvice(t, dsn)
	require.Equal(t, before, get[string](t, conn, protectionOf, "orders"))
	requireStaleRefused(t, dsn)
}
