package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// caseless makes a collation under which 'eu' and 'EU' are equal.
const caseless = `CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false); `

// A row does not move to the lease of a name that its column's collation takes
// for the same one. While the trigger that keeps the column is there, PostgreSQL refuses the
// change of its type.
func TestSealComparesNamesByTheirBytes(t *testing.T) {
	for what, tt := range map[string]struct{ column, change string }{
		"collation changed after": {"text NOT NULL", `DROP TRIGGER "~fencing_kept_seal" ON s; ALTER TABLE s ALTER region TYPE text COLLATE caseless`},
		"of a domain's type":      {"varchar NOT NULL", `DROP TRIGGER "~fencing_kept_seal" ON s; ALTER TABLE s ALTER region TYPE varchar COLLATE caseless`},
	} {
		dsn := localpg.Database(t, installed)
		conn := open(t, dsn)
		exec(t, conn, caseless+`CREATE TABLE s (id int PRIMARY KEY, region `+tt.column+`); SELECT fencing.register('s', 'lease'), fencing.wall('s'); SELECT fencing.seal('s', by_column => 'region'); SELECT setval('fencing.write_epoch', 100)`)
		grant(t, conn, "eu", 50)
		grant(t, conn, "EU", 60)
		exec(t, conn, "INSERT INTO s VALUES (1, 'eu', 50);"+tt.change)
		_, err := open(t, dsn).Exec(t.Context(), "UPDATE s SET region = 'EU', last_token = 60")
		requireRefused(t, err, "FN004", "moves a row to another lease")
		require.Contains(t, codes(diagnose(t, dsn), "error"), "D223 seal-column", what)
		require.Empty(t, codes(advise(t, dsn), "error"), what)
		_, err = conn.Exec(t.Context(), "UPDATE s SET region = 'EU', last_token = 60")
		requireRefused(t, err, "FN004", "moves a row to another lease")
	}
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn, caseless+`CREATE TABLE s (id int PRIMARY KEY, region text COLLATE caseless NOT NULL); SELECT fencing.register('s', 'lease'), fencing.wall('s')`)
	_, err := conn.Exec(t.Context(), "SELECT fencing.seal('s', by_column => 'region')")
	requireHint(t, err, "42804", "different texts are equal", `ALTER TABLE public.s ALTER COLUMN region TYPE text COLLATE "C"`)
}

// A row of the epoch that was lost comes back with the newest token that the
// others have, and with no older one.
func TestEpochRowsComeBackNoLower(t *testing.T) {
	dsn, conn := sealed(t, "enforce", fixed)
	exec(t, conn, "DELETE FROM fencing.epoch WHERE resource = 'r' AND stripe > 3; UPDATE fencing.lease SET token = 50 WHERE resource = 'r'")
	for _, sql := range []string{"UPDATE t SET last_token = 50 WHERE id = 1", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; UPDATE t SET last_token = 50 WHERE id = 1"} {
		_, err := try(t, conn, sql)
		requireRefused(t, err, "FN001")
	}
	requireAdvice(t, dsn)
	_, err := try(t, conn, "UPDATE t SET last_token = 50 WHERE id = 1")
	requireRefused(t, err, "FN001")
	// the lease can be taken, and its new holder writes
	token := get[string](t, conn, "SELECT token::text FROM fencing.take('r', '1 min', 'h')")
	_, err = try(t, conn, "UPDATE t SET last_token = "+token+" WHERE id = 1")
	require.NoError(t, err)
}

// Functions of the schema's triggers do nothing for a table of somebody's own,
// whoever may execute them.
func TestTriggerFunctionsOnOtherTables(t *testing.T) {
	dsn, conn := sealed(t, "enforce", fixed)
	exec(t, conn, `CREATE TABLE d (id int PRIMARY KEY); SELECT fencing.register('d', 'lease'), fencing.wall('d'), fencing.tombstones('d')`)
	role, roleDSN := newRole(t, dsn)
	exec(t, conn, "GRANT USAGE ON SCHEMA fencing TO "+role+"; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fencing TO "+role)
	generation := get[int64](t, conn, "SELECT value FROM fencing.generation")
	bury := get[string](t, conn, "SELECT tgfoid::regproc::text FROM pg_trigger WHERE tgrelid = 'd'::regclass AND tgname = '~fencing_bury'")
	theirs := open(t, roleDSN)
	for _, tt := range []struct{ trigger, write string }{
		{"AFTER INSERT ON x FOR EACH ROW EXECUTE FUNCTION fencing.raise_epoch()", "INSERT INTO x VALUES ('r', 9223372036854775807)"},
		{"AFTER INSERT ON x FOR EACH ROW EXECUTE FUNCTION fencing.registry_changed()", "INSERT INTO x VALUES ('r', 1)"},
		{"AFTER INSERT ON x FOR EACH STATEMENT EXECUTE FUNCTION fencing.registry_changed()", "INSERT INTO x VALUES ('r', 1)"},
		{"BEFORE DELETE ON x FOR EACH ROW EXECUTE FUNCTION " + bury + "('enforce')", "INSERT INTO x VALUES ('r', 1); DELETE FROM x"},
	} {
		exec(t, theirs, "DROP TABLE IF EXISTS x; CREATE TEMP TABLE x (resource text, token bigint, id int DEFAULT 1, last_token bigint DEFAULT 99); CREATE TRIGGER x "+tt.trigger)
		if _, err := theirs.Exec(t.Context(), tt.write); err != nil {
			requireHint(t, err, "42501", "and not for a trigger on x", "Drop the trigger.")
		}
	}
	exec(t, theirs, "DROP TABLE x")
	require.Equal(t, int64(60), get[int64](t, conn, "SELECT max(token) FROM fencing.epoch WHERE resource = 'r'"))
	require.Equal(t, generation, get[int64](t, conn, "SELECT value FROM fencing.generation"))
	require.Zero(t, get[int](t, conn, "SELECT count(*) FROM fencing.tombstone"))
}

// A tombstone is found in a database of another encoding, too, into which the
// rows of the schema were restored as text.
func TestTombstonesInAnotherEncoding(t *testing.T) {
	dsn := localpg.Database(t, installed)
	admin := open(t, dsn)
	other := "e_" + strings.ToLower(t.Name())
	exec(t, admin, "CREATE DATABASE "+other+" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	t.Cleanup(func() { fencetest.Run(t, dsn, "DROP DATABASE "+other+" WITH (FORCE)") })
	otherDSN := with(dsn, "dbname", other)
	require.NoError(t, migrations.Up(t.Context(), otherDSN))
	const make = `SET client_encoding = 'UTF8'; CREATE TABLE t (id text PRIMARY KEY); SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t'); SELECT setval('fencing.write_epoch', 100)`
	latin := open(t, otherDSN)
	exec(t, latin, make)
	exec(t, latin, "INSERT INTO t VALUES ('Zürich', 10); BEGIN; SET LOCAL fencing.token = '50'; DELETE FROM t; COMMIT")
	for from, to := range map[*pgx.Conn]*pgx.Conn{latin: admin} {
		digest := get[[]byte](t, from, "SELECT digest FROM fencing.tombstone")
		key := get[[]string](t, from, "SELECT key FROM fencing.tombstone")
		columns := get[string](t, from, "SELECT columns::text FROM fencing.tombstone")
		exec(t, to, make)
		_, err := to.Exec(t.Context(), "INSERT INTO fencing.tombstone (relid, digest, key, columns, token, xact) VALUES ('t'::regclass, $1, $2, $3::text::jsonb, 50, '3')", digest, key, columns)
		require.NoError(t, err)
		_, err = to.Exec(t.Context(), "INSERT INTO t VALUES ('Zürich', 20)")
		requireRefused(t, err, "FN001", "deleted under token 50")
	}
}

// Names of key columns that are exchanged, or given to another column, lose no
// tombstone: the table keeps them by its columns, and what was buried by the names
// in between stands for both keys.
func TestTombstonesOfExchangedNames(t *testing.T) {
	const swap = "ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME x TO b;"
	for name, tt := range map[string]struct{ change, insert string }{
		"exchanged":                         {swap, "(b, a, last_token) VALUES (1, 2, 20)"},
		"exchanged, and the key made again": {swap + "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (a, b)", "(b, a, last_token) VALUES (1, 2, 20)"},
		"buried in between":                 {swap + "BEGIN; SET LOCAL fencing.token = '50'; DELETE FROM t; COMMIT", "(b, a, last_token) VALUES (3, 4, 20)"},
		"handed on":                         {"ALTER TABLE t RENAME b TO c; ALTER TABLE t RENAME a TO b", "(b, c, last_token) VALUES (1, 2, 20)"},
		"quoted":                            {`ALTER TABLE t RENAME a TO "it's old.b ""1"""`, `("it's old.b ""1""", b, last_token) VALUES (1, 2, 20)`},
		"dropped, and another by the name":  {"ALTER TABLE t DROP COLUMN a CASCADE; ALTER TABLE t ADD z int NOT NULL DEFAULT 1; ALTER TABLE t ADD PRIMARY KEY (z, b)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, `CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)); SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t'); SELECT setval('fencing.write_epoch', 100);
				INSERT INTO t VALUES (1, 2, 10), (3, 4, 10); BEGIN; SET LOCAL fencing.token = '50'; DELETE FROM t WHERE a = 1; COMMIT`)
			exec(t, conn, tt.change)
			if tt.insert == "" {
				_, err := conn.Exec(t.Context(), "SELECT fencing.tombstones('t')")
				requireHint(t, err, "55000", "tombstones of another primary key, (a, b)", "prune_tombstones")
				require.Equal(t, 1, get[int](t, conn, "SELECT count(*) FROM fencing.tombstone"))
				return
			}
			require.Empty(t, codes(advise(t, dsn), "error"))
			_, err := conn.Exec(t.Context(), "INSERT INTO t "+tt.insert)
			requireRefused(t, err, "FN001", "deleted under token 50")
			exec(t, conn, "INSERT INTO t "+strings.Replace(tt.insert, "20)", "60)", 1))
			ids := get[int](t, conn, "SELECT count(*) FROM fencing.tombstone")
			exec(t, conn, "SELECT fencing.tombstones('t')")
			require.Equal(t, ids, get[int](t, conn, "SELECT count(*) FROM fencing.tombstone"))
		})
	}
}

// What is in the way of a wall is named, and nothing of somebody else's replaced.
func TestWallInTheWay(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL DEFAULT ''); CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT;
		SELECT fencing.register('t', 'lease'), fencing.register('p', 'lease'); CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`)
	for name, sql := range map[string]string{
		"~fencing_update": "SELECT fencing.wall('t')", "~fencing_bury": "SELECT fencing.wall('t'), fencing.tombstones('t')", "~fencing_zseal": "SELECT fencing.wall('t'), fencing.seal('t', 'r')",
	} {
		exec(t, conn, fmt.Sprintf("CREATE TRIGGER %q BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION mine()", name))
		_, err := conn.Exec(t.Context(), sql)
		requireHint(t, err, "42710", "public.t has a trigger called", fmt.Sprintf("ALTER TRIGGER %q ON public.t RENAME TO", name))
		exec(t, conn, fmt.Sprintf("DROP TRIGGER %q ON t", name))
	}
	exec(t, conn, "SELECT fencing.wall('t'), fencing.tombstones('t'), fencing.seal('t', 'r')")

	// several of its own triggers replaced, the advice still mends them
	for _, name := range []string{"~fencing_update", "~fencing_delete", "~fencing_bury", "~fencing_zseal"} {
		exec(t, conn, fmt.Sprintf("DROP TRIGGER %q ON t; CREATE TRIGGER %[1]q BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION mine()", name))
	}
	for range 2 { // a seal's advice stands behind that for the wall
		for _, f := range diagnose(t, dsn) {
			if f.Severity == "error" {
				exec(t, conn, f.Remedy)
			}
		}
	}
	require.Empty(t, codes(diagnose(t, dsn), "error"))

	exec(t, conn, "UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = 'p1'::regclass")
	_, err := conn.Exec(t.Context(), "SELECT fencing.wall('p')")
	requireHint(t, err, "55000", "public.p1 is being detached", "ALTER TABLE public.p DETACH PARTITION public.p1 FINALIZE")
	exec(t, conn, "ALTER TABLE p DETACH PARTITION public.p1 FINALIZE; SELECT fencing.wall('p')")

	// a child of another session is none of the wall's
	owner, ownerDSN := newRole(t, dsn)
	exec(t, conn, "GRANT CREATE ON SCHEMA public TO "+owner+"; CREATE TABLE par (id int); ALTER TABLE par OWNER TO "+owner+"; SELECT fencing.register('par', 'lease');"+documentedGrants(t, "deploy", owner))
	other := open(t, ownerDSN)
	exec(t, other, "CREATE TEMP TABLE kid () INHERITS (par)")
	exec(t, open(t, ownerDSN), "SELECT fencing.wall('par')")
	require.Empty(t, codes(diagnose(t, dsn), "error"))
	exec(t, other, "DROP TABLE kid")
}

// The schema's inner functions say what is wrong of an argument that is none.
func TestInnerFunctionsWithoutATable(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	for _, sql := range []string{
		"SELECT fencing.tombstone_key(NULL)", "SELECT fencing.take_over(NULL, '[{}]', true)", "SELECT fencing.wall_functions(NULL, NULL, NULL, NULL)", "SELECT fencing.wall_functions(NULL, 'lease', NULL, NULL)",
		"SELECT fencing.fail('stale', 'enforce', 0, 'UPDATE', 't', 'c', 'lease', NULL, 1, 2)", "SELECT fencing.seal_fail('token', 'enforce', 0, 'UPDATE', 't', 'c', NULL, 'r', NULL, 1, 2, 3)",
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "fencing: no ", sql)
		require.ErrorContains(t, err, "given", sql)
	}
}

// Rows that come back under an older token than their key was deleted under are
// found, and the advice raises their tokens.
func TestDoctorOnRowsBelowTheirTombstones(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `SET TimeZone = 'Asia/Tokyo'; CREATE TABLE p (at timestamptz, n numeric, name text, "the v" text, PRIMARY KEY (at, n, name)) PARTITION BY RANGE (at); CREATE TABLE p1 PARTITION OF p DEFAULT;
		SELECT fencing.register('p', 'lease'), fencing.wall('p'), fencing.tombstones('p'); SELECT setval('fencing.write_epoch', 100);
		INSERT INTO p SELECT '2026-01-01', i, 'it''s', '', 10 FROM generate_series(1, 3) i; CREATE TABLE kept AS TABLE p;
		BEGIN; SET LOCAL fencing.token = '50'; DELETE FROM p WHERE n < 3; COMMIT`)
	scan := func() []string {
		return get[[]string](t, open(t, dsn), "SELECT coalesce(array_agg(remedy), '{}') FROM fencing.doctor(scan => true) WHERE code ~ '^D(216|002)'")
	}
	require.Empty(t, scan())
	exec(t, conn, "ALTER TABLE p1 DISABLE TRIGGER USER; INSERT INTO p1 SELECT * FROM kept WHERE n < 3; SELECT fencing.wall('p'), fencing.tombstones('p')")
	remedies := scan()
	require.Len(t, remedies, 1)
	exec(t, open(t, dsn), remedies[0])
	require.Empty(t, scan())
	require.Equal(t, []int64{50, 50, 10}, get[[]int64](t, conn, "SELECT array_agg(last_token ORDER BY n) FROM p"))
	_, err := conn.Exec(t.Context(), `UPDATE p SET "the v" = 'stale', last_token = 20 WHERE n < 3`)
	requireRefused(t, err, "FN001")
}

// A prepared transaction that has written under a lease, and was forgotten, is
// named.
func TestDoctorOnPreparedTransactions(t *testing.T) {
	srv := localpg.StartServer(t, localpg.WithSetting("max_prepared_transactions", "5"))
	require.NoError(t, srv.CreateDatabase(t.Context(), "prepared", ""))
	dsn := srv.DSN("prepared")
	require.NoError(t, migrations.Up(t.Context(), dsn))
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE t (id int PRIMARY KEY); SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.seal('t', 'r')`)
	token := get[string](t, conn, "SELECT token::text FROM fencing.take('r', '1 min', 'h')")
	exec(t, conn, "BEGIN; INSERT INTO t VALUES (1, "+token+"); PREPARE TRANSACTION 'it''s'")
	const found = `SELECT count(*) FROM fencing.doctor() WHERE code LIKE 'D229%' AND object = 'prepared transaction ''it''''s''' AND problem LIKE '%under lease ''r''%'`
	require.Equal(t, 1, get[int](t, conn, found))
	exec(t, conn, "ROLLBACK PREPARED 'it''s'")
	require.Zero(t, get[int](t, conn, found))
}
