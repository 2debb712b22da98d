package migrations_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// Registering one table gives no other one the name of a third, without what
// that was registered for. Afterwards the table that has the name orders is
// protected as orders was, or the doctor asks.
func TestNamesAreNotSettledAside(t *testing.T) {
	const (
		swap    = "ALTER TABLE orders RENAME TO x; ALTER TABLE logs RENAME TO orders; ALTER TABLE x RENAME TO logs;"
		attach  = "ALTER TABLE orders RENAME TO x; ALTER TABLE logs RENAME TO orders; CREATE TABLE t (id int, d int, PRIMARY KEY (id, d)) PARTITION BY LIST (d); CREATE TABLE logs PARTITION OF t DEFAULT;"
		protect = "SELECT fencing.register('orders', 'lease'), fencing.wall('orders', 'attested'), fencing.tombstones('orders'), fencing.seal('orders', 'L'), fencing.register('logs', 'lease'), fencing.wall('logs');"
	)
	for name, tt := range map[string]struct{ change, register string }{
		"a partition that was detached": {"ALTER TABLE logs DETACH PARTITION logs_1;" + swap, "SELECT fencing.register('public.logs_1', 'lease')"},
		"a child that was let go":       {"ALTER TABLE logs_kid NO INHERIT logs_par; ALTER TABLE orders RENAME TO x; ALTER TABLE logs_par RENAME TO orders; ALTER TABLE x RENAME TO logs_par;", "SELECT fencing.register('public.logs_kid', 'lease')"},
		"a partition of the same name":  {attach, "SELECT fencing.register('t', 'lease')"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, `CREATE TABLE orders (id int, d int, PRIMARY KEY (id, d)); CREATE TABLE logs (id int, d int, PRIMARY KEY (id, d)) PARTITION BY LIST (d);
				CREATE TABLE logs_1 PARTITION OF logs FOR VALUES IN (1); CREATE TABLE logs_2 PARTITION OF logs FOR VALUES IN (2);
				CREATE TABLE logs_par (id int, d int, PRIMARY KEY (id, d)); CREATE TABLE logs_kid (PRIMARY KEY (id, d)) INHERITS (logs_par);
				SELECT setval('fencing.write_epoch', 20); SELECT fencing.take('L', '1 h', 'h'); SELECT fencing.register('logs_par', 'lease'), fencing.wall('logs_par');`+protect)
			if name == "a child that was let go" { // tombstones are for no parents
				exec(t, conn, "SELECT fencing.tombstones('orders', false)")
			}
			exec(t, conn, tt.change+tt.register)
			left := advise(t, dsn)
			got := get[string](t, conn, "SELECT concat_ws(' ', wall_level, seal_resource) FROM fencing.registry WHERE relid = 'orders'::regclass")
			if got != "attested L" {
				require.Contains(t, codes(left, "error"), "D105 name-taken", "%s: %v", got, left)
			}
		})
	}
}

// A table that was only renamed keeps the name under which it was registered.
func TestNameOfARootThatWasRenamed(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE logs (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE logs_1 PARTITION OF logs DEFAULT;
		SELECT fencing.register('logs', 'lease'), fencing.wall('logs'); ALTER TABLE logs DETACH PARTITION logs_1; ALTER TABLE logs RENAME TO x;
		SELECT fencing.register('logs_1', 'lease')`)
	require.Equal(t, "logs", get[string](t, conn, "SELECT table_name FROM fencing.registry WHERE relid = 'x'::regclass"))
}

// What is left on a partition is for the partitioned table to take over: by itself
// a partition can't be registered.
func TestDoctorNamesTheRootOfAPartition(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE p (id int) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p DEFAULT; CREATE TABLE c (id int, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE c1 () INHERITS (c);
		SELECT fencing.register(x, 'lease'), fencing.wall(x), fencing.seal(x, 'L') FROM unnest('{p,c}'::regclass[]) x;
		ALTER TABLE p DETACH PARTITION p1; ALTER TABLE c1 NO INHERIT c; CREATE TABLE "new P" (LIKE p) PARTITION BY LIST (id); CREATE TABLE sub PARTITION OF "new P" DEFAULT PARTITION BY LIST (id);
		ALTER TABLE sub ATTACH PARTITION p1 FOR VALUES IN (1); ALTER TABLE sub ATTACH PARTITION c1 FOR VALUES IN (2)`)
	for _, remedy := range get[[]string](t, conn, "SELECT array_agg(remedy) FROM fencing.doctor() WHERE code LIKE 'D209%'") {
		require.NotContains(t, remedy, "fencing.register('p1'", remedy)
		require.Regexp(t, `fencing.(register|seal)\('public."new P"'`, remedy)
		require.Regexp(t, `, or, if not, SELECT fencing.(wall|unseal)\('public.(p1|c1)'`, remedy)
	}
}

// What a partition is left with is put up on its new root by the remedy: the root has no
// triggers that register could go by.
func TestArchivedPartitionKeepsItsProtection(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE c (id int PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id); CREATE TABLE c1 PARTITION OF c FOR VALUES IN (1);
		SELECT fencing.register('c', 'lease'), fencing.wall('c', 'attested'), fencing.tombstones('c'); SELECT fencing.seal('c', 'L');
		ALTER TABLE c DETACH PARTITION c1; CREATE TABLE archive (LIKE c INCLUDING ALL) PARTITION BY LIST (id); ALTER TABLE archive ATTACH PARTITION c1 FOR VALUES IN (1)`)
	remedy := get[string](t, conn, "SELECT DISTINCT remedy FROM fencing.doctor() WHERE code LIKE 'D209%'")
	_, remedy, _ = strings.Cut(remedy, "as public.c, ")
	remedy, _, _ = strings.Cut(remedy, ", or, if not")
	exec(t, conn, remedy)
	require.Zero(t, get[int](t, conn, "SELECT count(*) FROM fencing.doctor() WHERE code LIKE 'D209%'"))
	require.Equal(t, "attested true L", get[string](t, conn, "SELECT concat_ws(' ', wall_level, tombstones::text, seal_resource) FROM fencing.registry WHERE table_name = 'archive'"))
}

// A table with tombstones that becomes a partition keeps them, those of the time in between
// as well, whether its new root is registered or not.
func TestTombstonesOfATableThatBecomesAPartition(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn, `CREATE TABLE f (id int PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0); SELECT fencing.register('f', 'lease'), fencing.wall('f'), fencing.tombstones('f');
		SELECT setval('fencing.write_epoch', 100); INSERT INTO f VALUES (5, 'a', 50), (7, 'a', 50);
		SET fencing.token = '60'; DELETE FROM f WHERE id = 5;
		CREATE TABLE r (LIKE f) PARTITION BY RANGE (id); ALTER TABLE r ATTACH PARTITION f FOR VALUES FROM (0) TO (100); DELETE FROM f WHERE id = 7; RESET fencing.token`)
	insert := func(key string) {
		for _, table := range []string{"f", "r"} {
			if _, err := conn.Exec(t.Context(), "INSERT INTO "+table+" VALUES ("+key+", 'stale', 55)"); table == "f" || !isState(err, "42P01") {
				requireRefused(t, err, "FN001")
			}
		}
	}
	insert("5")
	insert("7")
	exec(t, conn, `ALTER TABLE r DETACH PARTITION f; DROP TABLE r`)
	insert("5")
	insert("7")
}
