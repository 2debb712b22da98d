package migrations_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// made is a table in the place of orders that is protected less.
const made = `CREATE TABLE made (LIKE orders INCLUDING ALL); INSERT INTO made SELECT * FROM orders;
	SELECT fencing.register('made', 'lease', 'fence', 'shop'), fencing.wall('made', 'enforce'); `

const swapped = `ALTER TABLE orders RENAME TO old; ALTER TABLE made RENAME TO orders; `

// The remedies are run in the order in which they are printed: what one of them
// puts back, a later one doesn't take away, although it was printed before.
func TestRemediesTogetherLowerNothing(t *testing.T) {
	for name, sql := range map[string]string{
		"trigger missing":   `DROP TRIGGER "~fencing_update" ON orders`,
		"trigger disabled":  `ALTER TABLE orders DISABLE TRIGGER "~fencing_update"`,
		"trigger changed":   `DO $$ BEGIN EXECUTE (SELECT replace(replace(pg_get_triggerdef(oid), 'CREATE', 'CREATE OR REPLACE'), 'enforce'')', 'report'')') FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND tgname = '~fencing_update'); END $$; ALTER TABLE orders ENABLE ALWAYS TRIGGER "~fencing_update"`,
		"another function":  `CREATE FUNCTION lax() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE OR REPLACE TRIGGER "~fencing_update" BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION lax()`,
		"function replaced": `DO $$ BEGIN EXECUTE (SELECT format('CREATE OR REPLACE FUNCTION %s RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS ''BEGIN RETURN NEW; END''', tgfoid::regprocedure) FROM pg_trigger WHERE tgrelid = 'orders'::regclass AND tgname = '~fencing_update'); END $$`,
		"negative token":    disableAll + `UPDATE orders SET fence = -7; ` + enableAll + `; CREATE INDEX ON orders (fence)`,
		"nulls":             `ALTER TABLE orders ALTER fence DROP NOT NULL; ` + disableAll + `UPDATE orders SET fence = NULL; ` + enableAll,
		"wall off":          `SELECT fencing.wall('orders', 'off')`,
		"wall at report":    `SELECT fencing.wall('orders', 'report')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, guarded+"; "+made+swapped)
			exec(t, conn, sql)
			requireAdvice(t, dsn)
			require.Equal(t, "attested t L", get[string](t, conn, "SELECT concat_ws(' ', wall_level, driver_rewrite, seal_resource) FROM fencing.registry WHERE relid = 'orders'::regclass"))
		})
	}
}

// To put a wall up again doesn't lower it.
func TestWallWithoutALevel(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn, "CREATE TABLE z (id int); SELECT fencing.register('z', 'lease')")
	for _, tt := range []struct{ before, after string }{{"off", "enforce"}, {"report", "enforce"}, {"enforce", "enforce"}, {"attested", "attested"}} {
		exec(t, conn, "SELECT fencing.wall('z', '"+tt.before+"'), fencing.wall('z')")
		require.Equal(t, tt.after, get[string](t, conn, "SELECT wall_level FROM fencing.registry"), tt.before)
	}
}

// A table that has the name of one that was registered for more is an error until
// somebody says which of the two it is to be.
func TestSwappedWithAWeakerRegistration(t *testing.T) {
	for _, tt := range []struct{ name, first, second string }{
		{"mode", `SELECT fencing.register('orders', 'strict')`, `SELECT fencing.register('made', 'lease')`},
		{"sequence", `SELECT fencing.register('orders', 'lease')`, `SELECT fencing.register('made', 'lease', issued_by => NULL)`},
		{"mode and sequence", `SELECT fencing.register('orders', 'strict')`, `SELECT fencing.register('made', 'lease', issued_by => NULL)`},
		{"resource", `SELECT fencing.register('orders', 'lease', resource => 'shop')`, `SELECT fencing.register('made', 'lease')`},
		{"another resource", `SELECT fencing.register('orders', 'lease', resource => 'shop')`, `SELECT fencing.register('made', 'lease', resource => 'shed')`},
		{"token column", `SELECT fencing.register('orders', 'lease')`, `SELECT fencing.register('made', 'lease', 'fence')`},
		{"a seal", `SELECT fencing.register('orders', 'lease'), fencing.wall('orders'), fencing.seal('orders', 'L')`, `SELECT fencing.register('made', 'strict')`},
	} {
		for how, swap := range map[string]string{"D105 name-taken": `ALTER TABLE orders RENAME TO old; ALTER TABLE made RENAME TO orders`, "D102 table-replaced": `DROP TABLE orders; ALTER TABLE made RENAME TO orders`} {
			t.Run(tt.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				dsn := localpg.Database(t, installed)
				conn := open(t, dsn)
				exec(t, conn, "CREATE TABLE orders (id int); CREATE TABLE made (id int); "+tt.first+"; SELECT fencing.wall('orders'); "+tt.second+"; SELECT fencing.wall('made'); "+swap)
				left := advise(t, dsn)
				require.Equal(t, []string{how}, codes(left, "error"), "%v", left)
				for _, f := range left {
					if f.Code == how {
						_, other, found := strings.Cut(f.Remedy, ", or, if it is right as it is registered, ")
						require.True(t, found, f.Remedy)
						exec(t, conn, other)
						require.NotContains(t, codes(diagnose(t, dsn), "error"), how)
					}
				}
			})
		}
	}
}

// Whichever of the two it is to be, the advice can be run where a partition of a
// sealed table has the name of one that takes a token for each write.
func TestSwappedWithAPartitionOfASealedTable(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn, `CREATE TABLE p (id int) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p DEFAULT; CREATE TABLE s (id int);
		SELECT fencing.register('p', 'lease'), fencing.wall('p'), fencing.seal('p', 'L'), fencing.register('s', 'strict'), fencing.wall('s')`)
	const remedies = "SELECT coalesce(array_agg(remedy), '{}') FROM fencing.doctor() WHERE severity = 'error'"
	for _, swap := range []string{"DROP TABLE s; ALTER TABLE p1 RENAME TO s", "ALTER TABLE s RENAME TO old; ALTER TABLE p1 RENAME TO s"} {
		exec(t, conn, "BEGIN; "+swap)
		advice := get[[]string](t, conn, remedies)
		require.Len(t, advice, 1)
		first, second, found := strings.Cut(advice[0], ", or, if it is right as it is registered, ")
		require.True(t, found, advice[0])
		for _, sql := range []string{regexp.MustCompile("(BEGIN; )?SELECT fencing.*").FindString(first), second} {
			exec(t, conn, "SAVEPOINT s; "+strings.TrimSuffix(strings.TrimPrefix(sql, "BEGIN; "), "; COMMIT"))
			require.Empty(t, get[[]string](t, conn, remedies), sql)
			exec(t, conn, "ROLLBACK TO s")
		}
		exec(t, conn, "ROLLBACK")
	}
}

// What one table takes the place of can't be several things at once, whether they
// are still there or not.
func TestRegisterTakesTwoPlaces(t *testing.T) {
	for name, tt := range map[string]struct{ sql, call string }{
		"a seal and a resource": {"SELECT fencing.register('b', 'lease', resource => 'r'), fencing.wall('b'), fencing.seal('b', 'L')", "SELECT fencing.register('a', 'lease')"},
		"another mode":          {"SELECT fencing.register('b', 'strict')", "SELECT fencing.register('a', 'lease')"},
		"no sequence":           {"SELECT fencing.register('b', 'lease', issued_by => NULL)", "SELECT fencing.register('a', 'lease')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "CREATE TABLE a (id int); CREATE TABLE b (id int); SELECT fencing.register('a', 'lease'); "+tt.sql)
			gone := get[string](t, conn, "SELECT 'b'::regclass::oid::text")
			exec(t, conn, "DROP TABLE a; DROP TABLE b; CREATE TABLE a (id int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id); CREATE TABLE b PARTITION OF a DEFAULT")
			before := get[string](t, conn, "SELECT json_agg(r ORDER BY relid)::text FROM fencing.registry r")
			_, err := conn.Exec(t.Context(), tt.call)
			requireHint(t, err, "55000", "takes the place of", "fencing.unregister", "which is gone ("+gone+")")
			require.Equal(t, before, get[string](t, conn, "SELECT json_agg(r ORDER BY relid)::text FROM fencing.registry r"))
			exec(t, conn, "DELETE FROM fencing.registry WHERE relid::oid = "+gone+"; "+tt.call)
		})
	}
}

// A table that went together with the sequence of its tokens comes back as it was
// once somebody has said which sequence its tokens come from now.
func TestReplacedWithoutItsSequence(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, "CREATE TABLE t (id int); CREATE SEQUENCE s; SELECT fencing.register('t', 'lease', issued_by => 's'), fencing.wall('t', 'attested'); DROP TABLE t; DROP SEQUENCE s")
	findings := diagnose(t, dsn)
	require.Equal(t, []string{"D101 table-gone"}, codes(findings, "error", "warning"), "%v", findings)
	require.NotContains(t, said(findings, "D101 table-gone"), " a  ")
	exec(t, conn, "CREATE TABLE t (id int, last_token bigint NOT NULL DEFAULT 0)")
	require.Equal(t, []string{"D102 table-replaced"}, codes(diagnose(t, dsn), "error", "warning"))
	exec(t, conn, "CREATE SEQUENCE s2; SELECT fencing.register('t', 'lease', issued_by => 's2')")
	requireAdvice(t, dsn)
	require.Equal(t, "attested", get[string](t, conn, "SELECT wall_level FROM fencing.registry"))
}

// A partition that is detached keeps what it had as part of its table: registered
// as the doctor says, or as a program does at its start.
func TestDetachedKeepsItsProtection(t *testing.T) {
	const sealed = `, fencing.tombstones('p'), fencing.seal('p', 'L')`
	for name, tt := range map[string]struct{ more, detach, want string }{
		"level":                            {"", "ALTER TABLE p DETACH PARTITION p1", "attested f t"},
		"seal and tombstones":              {sealed, "ALTER TABLE p DETACH PARTITION p1", "attested t L t 7:9"},
		"beside one registered alike":      {sealed + `; CREATE TABLE other (id int PRIMARY KEY, v int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); CREATE TABLE o1 PARTITION OF other DEFAULT; SELECT fencing.register('other', 'lease', resource => 'shop'), fencing.wall('other')`, "ALTER TABLE p DETACH PARTITION p1", "attested t L t 7:9"},
		"detached, and attached elsewhere": {sealed, "ALTER TABLE p DETACH PARTITION p1; CREATE TABLE whole (LIKE p INCLUDING ALL) PARTITION BY RANGE (id); ALTER TABLE whole ATTACH PARTITION p1 DEFAULT; ALTER TABLE whole DETACH PARTITION p1", "attested t L t 7:9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, `CREATE TABLE p (id int PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT; SELECT setval('fencing.write_epoch', 20);
				INSERT INTO fencing.lease VALUES ('L', 'h', 9, 'infinity'); INSERT INTO p VALUES (2, 'two', 9), (7, 'seven', 9);
				SELECT fencing.register('p', 'lease', resource => 'shop'), fencing.driver_rewrite('p', true), fencing.wall('p', 'attested')`+tt.more)
			exec(t, conn, "SET fencing.token_shop = '9'; DELETE FROM p WHERE id = 7; RESET fencing.token_shop")
			exec(t, conn, tt.detach)
			findings := diagnose(t, dsn)
			require.Contains(t, codes(findings, "error"), "D209 wall-left-over")
			require.Contains(t, fmt.Sprint(findings), "SELECT fencing.register('public.p1', 'lease', 'last_token', 'shop', 'fencing.write_epoch')")
			exec(t, conn, "SELECT fencing.register('p1', 'lease', resource => 'shop')")
			require.Equal(t, tt.want, get[string](t, conn, `SELECT concat_ws(' ', wall_level, tombstones, seal_resource, driver_rewrite, (SELECT string_agg(key[1] || ':' || token, ',') FROM fencing.tombstone d WHERE d.relid = r.relid))
				FROM fencing.registry r WHERE relid = 'p1'::regclass`))
			require.NotContains(t, codes(diagnose(t, dsn), "error", "warning"), "D209 wall-left-over")
			require.Empty(t, codes(diagnose(t, dsn), "error"))
			for _, sql := range []string{"UPDATE p1 SET v = 'stale', last_token = 8", "UPDATE p1 SET v = 'unguarded'", "INSERT INTO p1 VALUES (7, 'stale', 8)"} {
				if tt.more == "" && sql[0] == 'I' {
					continue // there are no tombstones
				}
				_, err := conn.Exec(t.Context(), "SET fencing.token_shop = '8'; "+sql)
				require.ErrorContains(t, err, "fencing: ", sql)
			}
		})
	}
}

// Nothing tells of which table a partition was part that was protected otherwise
// than another one that is registered alike.
func TestDetachedFromOneOfSeveral(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE p (id int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT; CREATE TABLE o (LIKE p INCLUDING ALL) PARTITION BY RANGE (id); CREATE TABLE o1 PARTITION OF o DEFAULT;
		SELECT fencing.register('p', 'lease'), fencing.wall('p', 'attested'), fencing.seal('p', 'L'), fencing.register('o', 'lease'), fencing.wall('o'); ALTER TABLE p DETACH PARTITION p1`)
	_, err := conn.Exec(t.Context(), "SELECT fencing.register('p1', 'lease')")
	requireHint(t, err, "55000", "several are registered like that: public.o, public.p", "fencing.wall('public.p1', 'off')", "fencing.tombstone_copy")
	require.Contains(t, codes(advise(t, dsn), "error"), "D209 wall-left-over")
	exec(t, conn, "SELECT fencing.wall('p1', 'off'); SELECT fencing.register('p1', 'lease'), fencing.wall('p1', 'attested'), fencing.seal('p1', 'L')")
	require.Empty(t, codes(diagnose(t, dsn), "error"))
}

// Mistakes in the arguments are said in the words of fencing.
func TestArgumentsThatPostgreSQLRefuses(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn, "CREATE TABLE t (id int PRIMARY KEY); SELECT fencing.register('t', 'lease')")
	for sql, words := range map[string]string{
		"SELECT fencing.register('t', 'lease', 'ctid')":                    "token column ctid of public.t is a system column",
		"SELECT fencing.repair('t', '{\"id\": \"a\"}', 0, 'why')":          "is not a key of public.t",
		"SELECT fencing.repair('t', '{\"id\": 99999999999999}', 0, 'why')": "is not a key of public.t",
		"SELECT fencing.repair('t', '{\"id\": [1]}', 0, 'why')":            "is not a key of public.t",
	} {
		_, err := conn.Exec(t.Context(), sql)
		requireHint(t, err, "22023", words)
	}
}
