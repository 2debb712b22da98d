package migrations_test

import (
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
// for the same one.
func TestSealComparesNamesByTheirBytes(t *testing.T) {
	for what, tt := range map[string]struct{ column, change string }{
		"collation changed after": {"text NOT NULL", `ALTER TABLE s ALTER region TYPE text COLLATE caseless`},
		"of a domain's type":      {"varchar NOT NULL", `ALTER TABLE s ALTER region TYPE varchar COLLATE caseless`},
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
