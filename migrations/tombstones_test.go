package migrations_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// What may be inserted after a key was deleted, or given up, under token 60.
func TestTombstones(t *testing.T) {
	t.Parallel()
	const del, rekey = "SET LOCAL fencing.token = '60'; DELETE FROM t WHERE id = 1;", "UPDATE t SET id = 9, last_token = 60 WHERE id = 1;"
	insert := func(token int) string { return fmt.Sprintf("INSERT INTO t VALUES (1, 'new', %d);", token) }
	for _, tt := range []struct {
		name, first, then string
		strict, lease     string
	}{
		{"older", del, insert(59), "FN001 ~fencing_tomb 59 60", "FN001 ~fencing_tomb 59 60"},
		{"same", del, insert(60), "FN001 ~fencing_tomb 60 60", ""},
		{"newer", del, insert(61), "", ""},
		{"same transaction", del + insert(60), "", "", ""},
		{"same transaction, twice", del + insert(60) + "DELETE FROM t WHERE id = 9", insert(59), "unique", "unique"},
		{"another key", del, "INSERT INTO t VALUES (7, 'new', 1)", "", ""},
		{"rekeyed, older", rekey, insert(59), "FN001 ~fencing_tomb 59 60", "FN001 ~fencing_tomb 59 60"},
		{"rekeyed, newer", rekey, insert(61), "", ""},
		{"rekeyed back, older", rekey, "UPDATE t SET id = 1, last_token = 61 WHERE id = 9", "", ""},
		{"another row rekeyed to it, older", del, "UPDATE t SET id = 1, last_token = 59 WHERE id = 2", "FN001 ~fencing_rekey2 59 60", "FN001 ~fencing_rekey2 59 60"},
		{"upsert, older", del, "INSERT INTO t VALUES (1, 'new', 59) ON CONFLICT (id) DO UPDATE SET last_token = excluded.last_token",
			"FN001 ~fencing_tomb 59 60", "FN001 ~fencing_tomb 59 60"},
		{"rolled back", "SAVEPOINT s;" + del + "ROLLBACK TO s", insert(59), "unique", "unique"},
	} {
		for mode, want := range map[string]string{"strict": tt.strict, "lease": tt.lease} {
			_, conn := walled(t, mode, "enforce")
			exec(t, conn, "SELECT fencing.tombstones('t')")
			require.NoError(t, inTx(t, conn, tt.first))
			err := inTx(t, conn, tt.then)
			if want == "unique" {
				requireRefused(t, err, "23505")
				continue
			}
			require.Equal(t, want, refusal(t, err), "%s, %s", tt.name, mode)
		}
	}
}

// A stale holder inserts a key that is deleted meanwhile, or was since its
// snapshot: in no isolation level it gets it.
func TestTombstoneRaces(t *testing.T) {
	t.Parallel()
	const del = "BEGIN; SET LOCAL fencing.token = '60'; DELETE FROM t WHERE id = {id}"
	const insert = "INSERT INTO t VALUES ({id}, 'stale', 55)"
	for _, mode := range []string{"strict", "lease"} {
		dsn, conn := walled(t, mode, "enforce")
		exec(t, conn, "SELECT fencing.tombstones('t')")
		first, second := open(t, dsn), open(t, dsn)
		row := 10 // each race has a row of its own
		of := func(sql string) string { return strings.ReplaceAll(sql, "{id}", strconv.Itoa(row)) }
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
			for _, waiting := range []bool{true, false} {
				row++
				t.Run(fmt.Sprint(level, " ", mode, " ", waiting), func(t *testing.T) {
					exec(t, conn, of("INSERT INTO t VALUES ({id}, 'old', 50)"))
					exec(t, second, fmt.Sprintf("BEGIN ISOLATION LEVEL %s; SELECT * FROM t", level))
					defer exec(t, second, "ROLLBACK")
					exec(t, first, of(del))
					done := make(chan error, 1)
					run := func() {
						_, err := second.Exec(context.Background(), of(insert))
						if err == nil {
							_, err = second.Exec(context.Background(), "COMMIT")
						}
						done <- err
					}
					if waiting {
						go run()
						fencetest.Eventually(t, func() bool { return blocked(t, conn, second) })
					}
					exec(t, first, "COMMIT")
					if !waiting {
						run()
					}
					var pg *pgconn.PgError
					require.ErrorAs(t, <-done, &pg)
					if level == "READ COMMITTED" {
						require.Equal(t, "FN001", pg.Code)
					} else {
						require.Equal(t, "40001", pg.Code)
					}
					require.Zero(t, get[int64](t, conn, of("SELECT count(*) FROM t WHERE id = {id}")))
				})
			}
			// whose snapshot has the tombstone, or finds none, needs no retry
			row++
			exec(t, conn, of("INSERT INTO t VALUES ({id}, 'old', 50);"+del+"; COMMIT"))
			for _, tt := range [][2]string{{insert, "FN001 ~fencing_tomb 55 60"}, {"INSERT INTO t VALUES ({id}, '', 61)", ""}, {"INSERT INTO t VALUES (1000 + {id}, '', 1)", ""}} {
				require.Equal(t, tt[1], refusal(t, inTx(t, conn, "SET TRANSACTION ISOLATION LEVEL "+level+";"+of(tt[0]))))
			}
			require.Equal(t, int64(1), get[int64](t, conn, of("SELECT count(*) FROM fencing.tombstone WHERE key = '{{id}}'")))
			require.Zero(t, get[int64](t, conn, of("SELECT count(*) FROM fencing.tombstone WHERE key = ARRAY[(1000 + {id})::text]")))
		}
	}
}

// Keys compare the same in every session.
func TestTombstoneKeys(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE t ("A %1$s" int, n numeric, s text, c char(5), z timestamptz, d date, b bytea, u uuid, o bool,
		PRIMARY KEY ("A %1$s", n, s, c, z, d, b, u, o));
		SELECT fencing.register('t', 'lease'); SELECT setval('fencing.write_epoch', 100); SELECT fencing.wall('t'); SELECT fencing.tombstones('t')`)
	const row = `INSERT INTO t VALUES (1, '%s', 'x', '%s', '%s', date '2020-02-03', '\x01ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, %d)`
	exec(t, conn, fmt.Sprintf(row, "1.0", "a", "2020-02-03 00:00:00+00", 5))
	require.NoError(t, inTx(t, conn, "SET LOCAL fencing.token = '60'; DELETE FROM t"))
	other := open(t, dsn)
	exec(t, other, "SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'; SET bytea_output = 'escape'; SET IntervalStyle = 'sql_standard'")
	require.Equal(t, "FN001 ~fencing_tomb 59 60", refusal(t, inTx(t, other, fmt.Sprintf(row, "1.000", "a    ", "2020-02-03 09:00:00+09", 59))))
	require.NoError(t, inTx(t, other, fmt.Sprintf(row, "1.001", "a    ", "2020-02-03 09:00:00+09", 59)))
	require.NoError(t, inTx(t, other, fmt.Sprintf(row, "1", "a", "2020-02-03 09:00:00+09", 60)))
}

func TestTombstonesRefuse(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE plain (id int PRIMARY KEY); CREATE TABLE off (id int PRIMARY KEY);
		CREATE TABLE nokey (id int); CREATE TABLE fl (id float8 PRIMARY KEY); CREATE TABLE iv (a int, b interval, PRIMARY KEY (a, b));
		CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE nd (id text COLLATE ci PRIMARY KEY);
		CREATE DOMAIN dom AS int; CREATE TABLE dm (id dom PRIMARY KEY); CREATE TABLE par (id int PRIMARY KEY); CREATE TABLE df (id int PRIMARY KEY DEFERRABLE);
		CREATE TABLE child () INHERITS (par);
		SELECT fencing.register('off', 'lease')`)
	for _, table := range []string{"nokey", "fl", "iv", "nd", "dm", "par", "df"} {
		exec(t, conn, "SELECT fencing.register('"+table+"', 'lease'); SELECT fencing.wall('"+table+"')")
	}
	before := generation(t, conn)
	for _, tt := range []struct {
		args, state string
		words       []string
	}{
		{"'plain'", "55000", []string{"public.plain is not registered", "fencing.register('public.plain', ...)"}},
		{"'off'", "55000", []string{"no tombstones for public.off: its wall is off", "fencing.wall('public.off')"}},
		{"'nokey'", "55000", []string{"no tombstones for public.nokey: it has no primary key"}},
		{"'df'", "55000", []string{"no tombstones for public.df: its primary key is deferrable", "NOT DEFERRABLE"}},
		{"'fl'", "0A000", []string{"key column id is of type double precision"}},
		{"'iv'", "0A000", []string{"key column b is of type interval"}},
		{"'nd'", "0A000", []string{"key column id has a collation under which different texts are equal"}},
		{"'dm'", "0A000", []string{"key column id is of type public.dom"}},
		{"'par'", "0A000", []string{"it has children"}},
		{"NULL", "42P01", []string{"no table given"}},
		{"'nokey', NULL", "22023", []string{"neither true nor false"}},
	} {
		_, err := conn.Exec(t.Context(), "SELECT fencing.tombstones("+tt.args+")")
		requireHint(t, err, tt.state, tt.words...)
	}
	require.NoError(t, migrations.Tombstones(t.Context(), dsn, "off", false), "as it is")
	requireRefused(t, migrations.Tombstones(t.Context(), dsn, "off", true), "55000",
		"set the tombstones of off: fencing: no tombstones for public.off: its wall is off: A DELETE has no token")
	require.ErrorContains(t, migrations.Tombstones(t.Context(), "host=/nonexistent", " ", true), "a table without a name")
	require.Equal(t, before, generation(t, conn))
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.ErrorIs(t, migrations.Tombstones(t.Context(), dsn, "off", true), migrations.ErrNotInstalled)
}

// Tombstones on a partitioned table, through changes of it and of its row.
func TestTombstonesComeAndGo(t *testing.T) {
	const triggers = `SELECT count(*) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE p.proname ~ '^tomb_[0-9a-f]{16}_' AND ` +
		`t.tgenabled = 'A' AND t.tgargs = convert_to($1, 'UTF8') || '\x00'`
	const functions = `SELECT count(*) FROM pg_proc WHERE proname ~ '^tomb_[0-9a-f]{16}_'`
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
		SELECT fencing.register('p', 'lease'); SELECT setval('fencing.write_epoch', 100); SELECT fencing.wall('p')`)
	gen := generation(t, conn)
	for range 2 {
		require.NoError(t, migrations.Tombstones(t.Context(), dsn, "p", true))
		require.Equal(t, gen+1, generation(t, conn))
		require.Equal(t, int64(10), get[int64](t, conn, triggers, "enforce"))
	}
	exec(t, conn, "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20); INSERT INTO p VALUES (1, '', 5), (11, '', 5)")
	require.Equal(t, int64(15), get[int64](t, conn, triggers, "enforce"))
	require.NoError(t, inTx(t, conn, "SET LOCAL fencing.token = '60'; DELETE FROM p2; UPDATE p SET id = 12, last_token = 60"))
	require.Equal(t, "FN001 ~fencing_tomb 59 60", refusal(t, inTx(t, conn, "INSERT INTO p VALUES (11, '', 59)")))
	require.Equal(t, "FN001 ~fencing_tomb 59 60", refusal(t, inTx(t, conn, "SET LOCAL session_replication_role = replica; INSERT INTO p1 VALUES (1, '', 59)")))
	require.Equal(t, []string{"p {1} 60", "p {11} 60"},
		get[[]string](t, conn, "SELECT array_agg(concat_ws(' ', relid, key, token) ORDER BY key) FROM fencing.tombstone"))

	exec(t, conn, "ALTER TABLE p RENAME TO q")
	require.Equal(t, "FN001 ~fencing_tomb 59 60", refusal(t, inTx(t, conn, "INSERT INTO q VALUES (11, '', 59)")))
	exec(t, conn, "SELECT fencing.register('q', 'strict', resource => 'r')")
	require.Equal(t, "FN001 ~fencing_tomb 60 60", refusal(t, inTx(t, conn, "INSERT INTO q VALUES (11, '', 60)")))
	require.Equal(t, int64(2), get[int64](t, conn, functions))
	exec(t, conn, "SELECT fencing.wall('q', 'report')")
	require.Equal(t, int64(15), get[int64](t, conn, triggers, "report"))
	require.NoError(t, inTx(t, conn, "INSERT INTO q VALUES (11, '', 59); DELETE FROM q"), "logged")
	exec(t, conn, "SELECT fencing.wall('q', 'off')")
	require.Zero(t, get[int64](t, conn, functions))
	exec(t, conn, "SELECT fencing.wall('q', 'attested')")
	require.Equal(t, int64(15), get[int64](t, conn, triggers, "attested"), "come back with the wall")
	require.NoError(t, migrations.Tombstones(t.Context(), dsn, "q", false))
	require.Zero(t, get[int64](t, conn, functions))
	exec(t, conn, "SELECT fencing.tombstones('q')")

	require.Zero(t, get[int64](t, conn, "SELECT fencing.prune_tombstones('q', 60)"), "a tombstone's token only rises")
	require.Equal(t, int64(3), get[int64](t, conn, "SELECT fencing.prune_tombstones('q', 61)"))
	_, err := conn.Exec(t.Context(), "SELECT fencing.prune_tombstones('q', NULL)")
	requireHint(t, err, "22023", "no token given")

	require.NoError(t, migrations.Unregister(t.Context(), dsn, "q"))
	require.Zero(t, get[int64](t, conn, functions))
	exec(t, conn, "SELECT fencing.register('q', 'lease'), fencing.wall('q'), fencing.tombstones('q'); TRUNCATE fencing.registry")
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.Zero(t, get[int64](t, conn, functions))
}

func TestTombstoneRights(t *testing.T) {
	dsn, admin := walled(t, "lease", "enforce")
	exec(t, admin, "SELECT fencing.tombstones('t')")
	app, appDSN := newRole(t, dsn)
	deploy, deployDSN := newRole(t, dsn)
	exec(t, admin,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON t TO "+app+"; CREATE SCHEMA app AUTHORIZATION "+deploy+";"+documentedGrants(t, "app",
			app)+documentedGrants(t, "deploy", deploy))
	conn := open(t, appDSN)
	require.NoError(t, inTx(t, conn, "SET LOCAL fencing.token = '60'; DELETE FROM t WHERE id = 1"))
	require.Equal(t, "FN001 ~fencing_tomb 59 60", refusal(t, inTx(t, conn, "INSERT INTO t VALUES (1, '', 59)")))
	for _, sql := range []string{
		"SELECT * FROM fencing.tombstone", "DELETE FROM fencing.tombstone", "INSERT INTO fencing.tombstone VALUES ('t', '', '{1}', '[]', 5, '5')",
		"SELECT fencing.tombstones('t', false)", "SELECT fencing.prune_tombstones('t', 100)", "SELECT fencing.repair('t', '{\"id\": 1}', 1, 'x')",
		"SELECT * FROM fencing.repairs", "INSERT INTO fencing.repairs (relid) VALUES ('t')",
	} {
		requireRefused(t, inTx(t, conn, sql), "42501")
	}
	conn = open(t, deployDSN)
	exec(t, conn, "CREATE TABLE app.t (id int PRIMARY KEY); SELECT fencing.register('app.t', 'strict'), fencing.wall('app.t'), fencing.tombstones('app.t')")
	for _, sql := range []string{"SELECT fencing.prune_tombstones('app.t', 100)", "SELECT fencing.repair('app.t', '{\"id\": 1}', 1, 'x')"} {
		requireRefused(t, inTx(t, conn, sql), "42501", "by the owner of schema fencing only")
	}
	exec(t, conn, "SELECT fencing.unregister('app.t')")
}

// Inserts of different keys have nothing to do with each other, whatever the
// isolation level and however few tombstones there are.
func TestTombstonesOfDifferentKeys(t *testing.T) {
	for _, existing := range []int{0, 1, 300} {
		dsn, conn := walled(t, "lease", "enforce")
		exec(t, conn, fmt.Sprintf(`SELECT fencing.tombstones('t'); INSERT INTO t SELECT i, '', 50 FROM generate_series(1001, 1000 + %d) i;
			BEGIN; SET LOCAL fencing.token = '60'; DELETE FROM t WHERE id > 1000; COMMIT`, existing))
		first, second := open(t, dsn), open(t, dsn)
		exec(t, conn, "ANALYZE fencing.tombstone")
		id := 10
		for range 10 {
			exec(t, first, "BEGIN ISOLATION LEVEL SERIALIZABLE")
			exec(t, second, "BEGIN ISOLATION LEVEL SERIALIZABLE")
			for range 3 { // by turns: each writes after the other has looked
				for _, c := range []*pgx.Conn{first, second} {
					exec(t, c, fmt.Sprintf("INSERT INTO t VALUES (%d, '', 60)", id))
					id++
				}
			}
			exec(t, first, "COMMIT")
			exec(t, second, "COMMIT")
		}
	}
}

// A key that just has room in an index entry still has its tombstone.
func TestTombstoneOfALongKey(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn,
		`CREATE TABLE t (id text PRIMARY KEY); SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t'), setval('fencing.write_epoch', 100);
		CREATE TABLE long AS SELECT string_agg(md5(i::text), '') || repeat('x', 64) AS id FROM generate_series(1, 82) i; INSERT INTO t SELECT id, 50 FROM long`)
	require.NoError(t, inTx(t, conn, "SET LOCAL fencing.token = '60'; DELETE FROM t"))
	require.Equal(t, "FN001 ~fencing_tomb 59 60", refusal(t, inTx(t, conn, "INSERT INTO t SELECT id, 59 FROM long")))
	require.NoError(t, inTx(t, conn, "INSERT INTO t SELECT id, 60 FROM long"))
}

// Who inserts a deleted key again is told that it was deleted.
func TestTombstoneSaysDeleted(t *testing.T) {
	_, conn := walled(t, "strict", "enforce")
	exec(t, conn, "SELECT fencing.tombstones('t')")
	require.NoError(t, inTx(t, conn, "SET LOCAL fencing.token = '60'; DELETE FROM t WHERE id = 1"))
	requireRefused(t, inTx(t, conn, "INSERT INTO t VALUES (1, '', 59)"), "FN001",
		"stale token 59 on INSERT of public.t, whose key was deleted under token 60: stop working on it")
	requireRefused(t, inTx(t, conn, "INSERT INTO t VALUES (1, '', 60)"), "FN001",
		"token 60 on INSERT of public.t, whose key was deleted under this token: draw a token for each write")
}

// fencing.wall mends the triggers of tombstones with its own, and where they
// can't be, says how to do without.
func TestWallMendsTombstones(t *testing.T) {
	const triggers = `SELECT array_agg(pg_get_triggerdef(oid) || tgenabled::text ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 't'::regclass`
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE t (a varchar(9), "B c" numeric, c char(3), d text, e timestamptz, PRIMARY KEY (a, "B c", c, d, e));
		SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t')`)
	want := get[[]string](t, conn, triggers)
	for _, sql := range []string{
		`DROP TRIGGER "~fencing_bury" ON t`, `ALTER TABLE t DISABLE TRIGGER "~fencing_tomb"`, `ALTER TABLE t ENABLE TRIGGER "~fencing_rekey2"`,
		`DO $$ DECLARE f text := (SELECT tgfoid::regproc FROM pg_trigger WHERE tgrelid = 't'::regclass AND tgname = '~fencing_rekey1');
			BEGIN EXECUTE format('CREATE OR REPLACE TRIGGER "~fencing_rekey1" AFTER UPDATE ON t FOR EACH ROW WHEN (OLD.d IS DISTINCT FROM NEW.d) EXECUTE FUNCTION %s(''enforce'')', f); END $$`,
	} {
		exec(t, conn, sql)
		require.NotEqual(t, want, get[[]string](t, conn, triggers), sql)
		exec(t, conn, "SELECT fencing.wall('t')")
		require.Equal(t, want, get[[]string](t, conn, triggers), sql)
	}
	ids := get[string](t, conn, `SELECT string_agg(xmin::text, ' ' ORDER BY oid) FROM pg_trigger WHERE tgrelid = 't'::regclass`)
	exec(t, conn, "SET quote_all_identifiers = on; SELECT fencing.wall('t'); SELECT fencing.tombstones('t')")
	require.Equal(t, ids, get[string](t, conn, `SELECT string_agg(xmin::text, ' ' ORDER BY oid) FROM pg_trigger WHERE tgrelid = 't'::regclass`), "right already")
	require.Empty(t, get[[]string](t, conn, "SELECT coalesce(array_agg(code), '{}') FROM fencing.doctor() WHERE severity <> 'info'"))

	exec(t, conn, `RESET quote_all_identifiers; ALTER TABLE t DROP CONSTRAINT t_pkey`)
	for _, level := range []string{"enforce", "attested"} {
		_, err := conn.Exec(t.Context(), "SELECT fencing.wall('t', $1)", level)
		requireHint(t, err, "55000", "it has no primary key", "SELECT fencing.tombstones('public.t', false)")
	}
	exec(t, conn, "SELECT fencing.tombstones('public.t', false); SELECT fencing.wall('t', 'attested')")
}
