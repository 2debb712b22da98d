package migrations_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// before is the last version with the trigger functions that version 11
// replaces.
const before = 10

// settings are what may be in the setting that carries a token; the row has 50,
// the lease 60, and 1,000 or 100 were issued.
var settings = []string{
	"", "0", "1", "49", "50", "51", "60", "61", "100", "101", "1000", "1001", "060", "00", "000000000000000060", "-60", "+60", " 60", "60 ", "60\n", "6 0", "6x", "60.0", "6e1", "0x3c",
	"６０", "٦٠", "6\u200b0", "999999999999999999", "100000000000000000", "1000000000000000000", "9223372036854775807", "9223372036854775808", "9999999999999999999",
	"10000000000000000000", "60000000000000000000000000000", "NULL", "Infinity", "NaN", "1_000",
}

// outcome is all that a statement's refusal says, or the rows that it left.
func outcome(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	rows, err := try(t, conn, sql)
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return fmt.Sprint(pg.Code, pg.Message, pg.Detail, pg.Hint, pg.SchemaName, pg.TableName, pg.ColumnName, pg.ConstraintName)
	}
	require.NoError(t, err)
	return rows
}

// What was refused before version 11 is refused, in the same words, and nothing
// else.
func TestCheaperRefusesTheSame(t *testing.T) {
	tables := map[string]func() (string, *pgx.Conn){}
	for _, level := range []string{"report", "enforce", "attested"} {
		for _, mode := range []string{"strict", "lease"} {
			tables[mode+", "+level] = func() (string, *pgx.Conn) { return walled(t, mode, level) }
		}
		for name, by := range map[string]string{"fixed": fixed, "by column": byColumn} {
			tables["sealed, "+name+", "+level] = func() (string, *pgx.Conn) {
				dsn, conn := sealed(t, level, by)
				exec(t, conn, "INSERT INTO fencing.epoch SELECT 'zero', s, 0 FROM generate_series(0, 15) s") // as none is
				return dsn, conn
			}
		}
	}
	statements := []string{
		"DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE id = 2", "DELETE FROM t", "UPDATE t SET v = 'new', last_token = 60 WHERE id = 1", "UPDATE t SET v = 'new'", "TRUNCATE t",
		"UPDATE t SET v = 'new', last_token = 50 WHERE id = 1", "UPDATE t SET v = 'new', last_token = 60", "UPDATE t SET v = 'new', last_token = NULL", "UPDATE t SET last_token = -60",
		"UPDATE t SET last_token = last_token", "INSERT INTO t (id, last_token) VALUES (9, 60)", "INSERT INTO t (id, last_token) VALUES (9, 50)", "INSERT INTO t (id) VALUES (9)",
	}
	ofLeases := []string{
		"UPDATE t SET res = 's', last_token = 60 WHERE id = 1", "UPDATE t SET res = NULL, last_token = 60 WHERE id = 1", "UPDATE t SET last_token = 70 WHERE id = 3",
		"INSERT INTO t VALUES (9, 'never', '', 60)", "INSERT INTO t VALUES (9, 'zero', '', 60)", "INSERT INTO t VALUES (9, NULL, '', 60)", "INSERT INTO t VALUES (9, '', '', 60)", "INSERT INTO t VALUES (9, 's', '', 70), (10, 'r', '', 60)",
	}
	for name, open := range tables {
		t.Run(name, func(t *testing.T) {
			dsn, conn := open()
			sqls := statements
			if get[bool](t, conn, "SELECT seal_resource IS NOT NULL OR seal_column IS NOT NULL FROM fencing.registry") {
				sqls = append(sqls[:len(sqls):len(sqls)], ofLeases...)
			}
			run := func() map[string]string {
				got := map[string]string{}
				for i, isolation := range isolations {
					for j, setting := range settings {
						for k, sql := range sqls {
							if k > 2 && j%10 > 0 || i > 0 && j%5 > 1 {
								continue // the setting is little to it
							}
							sql = fmt.Sprintf("SET TRANSACTION ISOLATION LEVEL %s; SELECT set_config('fencing.token', '%s', true); %s", isolation, setting, sql)
							got[sql] = outcome(t, conn, sql)
						}
					}
					sql := "SET TRANSACTION ISOLATION LEVEL " + isolation + "; DELETE FROM t"
					got[sql] = outcome(t, conn, sql)
				}
				return got
			}
			at(t, dsn, before)
			require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace AND position('ltrim' IN prosrc) > 0"))
			want := run()
			require.NoError(t, migrations.Up(t.Context(), dsn))
			require.Equal(t, int64(1), get[int64](t, conn, "SELECT count(*) FROM pg_proc WHERE proname ~ '^wall_.*_delete$' AND position('ltrim' IN prosrc) > 0"))
			require.Equal(t, want, run())
		})
	}
}

const (
	triggerFunctions = `SELECT array_agg(concat_ws(' ', oid, proname, proowner, proacl, prosecdef, proconfig, obj_description(oid, 'pg_proc')) ORDER BY oid) FROM pg_proc
		WHERE pronamespace = 'fencing'::regnamespace AND proname ~ '(wall|seal|tomb)_[0-9a-f]{16}_'`
	bodies      = `SELECT array_agg(proname || md5(prosrc) ORDER BY proname) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace AND proname ~ '^(wall|seal|tomb)_[0-9a-f]{16}_'`
	allTriggers = `SELECT array_agg(concat_ws(' ', oid, xmin, pg_get_triggerdef(oid), tgenabled) ORDER BY oid) FROM pg_trigger WHERE tgname ~ '^.fencing'`
)

// Walls that are there get the functions of the version as if they were put up
// under it. Their triggers are left alone, and so are the tables: who writes one
// is not waited for.
func TestCheaperWallsInPlace(t *testing.T) {
	dsn := localpg.Database(t)
	admin := open(t, dsn)
	owner, ownerDSN := newRole(t, dsn)
	app, appDSN := newRole(t, dsn)
	exec(t, admin, "CREATE SCHEMA fencing AUTHORIZATION "+owner+"; CREATE SCHEMA app AUTHORIZATION "+owner)
	require.NoError(t, migrations.Up(t.Context(), ownerDSN))
	conn := open(t, with(ownerDSN, "search_path", "app"))
	exec(t, conn, `CREATE SEQUENCE own; SELECT nextval('own'); SELECT setval('fencing.write_epoch', 100);
		CREATE TABLE s (id int PRIMARY KEY); CREATE TABLE l (id int PRIMARY KEY); CREATE TABLE o (id int PRIMARY KEY); CREATE TABLE n (id int PRIMARY KEY);
		CREATE TABLE f (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY, "the %s" uuid NOT NULL);
		CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9);
		SELECT fencing.register('s', 'strict', 'tok %'' "1"'), fencing.wall('s', 'attested'), fencing.register('l', 'lease', resource => 'b''s %'), fencing.wall('l', 'report'), fencing.tombstones('l');
		SELECT fencing.register('o', 'lease', issued_by => 'own'), fencing.wall('o'), fencing.register('n', 'strict', issued_by => NULL), fencing.wall('n');
		SELECT fencing.register('f', 'lease'), fencing.wall('f'), fencing.register('c', 'lease'), fencing.wall('c'), fencing.register('p', 'lease'), fencing.wall('p');
		SELECT fencing.seal('f', 'r % "'), fencing.seal('c', by_column => 'the %s'), fencing.seal('p', 'p')`)
	newer := get[[]string](t, conn, bodies)
	functions, triggers := get[[]string](t, conn, triggerFunctions), get[[]string](t, conn, allTriggers)
	exec(t, conn, "GRANT USAGE ON SCHEMA app TO "+app+"; GRANT SELECT, UPDATE, DELETE ON f TO "+app)
	grant(t, admin, `r % "`, 60)
	exec(t, conn, "INSERT INTO f VALUES (1, 60), (2, 60)")

	writer := open(t, with(appDSN, "search_path", "app"))
	exec(t, writer, "BEGIN; UPDATE f SET last_token = 60 WHERE id = 1")
	at(t, ownerDSN, before)
	older := get[[]string](t, conn, bodies)
	require.NotEqual(t, newer, older)
	require.Equal(t, functions, get[[]string](t, conn, triggerFunctions))
	require.Equal(t, triggers, get[[]string](t, conn, allTriggers))
	exec(t, writer, "UPDATE f SET last_token = 60 WHERE id = 2")
	require.NoError(t, migrations.Up(t.Context(), ownerDSN))
	require.Equal(t, newer, get[[]string](t, conn, bodies))
	require.Equal(t, functions, get[[]string](t, conn, triggerFunctions))
	require.Equal(t, triggers, get[[]string](t, conn, allTriggers))
	exec(t, writer, "UPDATE f SET last_token = 60 WHERE id = 2; COMMIT")
	require.Equal(t, "FN001 ~fencing_zseal 59 60", refusal(t, inTx(t, admin, "INSERT INTO app.f VALUES (3, 59)")))

	// put up anew, they are the same
	at(t, ownerDSN, before)
	exec(t, conn, "UPDATE fencing.registry SET wall_level = 'off' WHERE table_name <> 's'; UPDATE fencing.registry SET wall_level = 'enforce' WHERE wall_level = 'off'")
	require.Equal(t, older, get[[]string](t, conn, bodies))
}

// What can't be made again stays as it is, works, and is no reason to fail.
func TestCheaperWallsThatCannotBeMadeAgain(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	other, _ := newRole(t, dsn)
	exec(t, conn, `SELECT setval('fencing.write_epoch', 100); CREATE SEQUENCE gone; CREATE SEQUENCE renamed; SELECT nextval('renamed');
		CREATE TABLE a (id int); CREATE TABLE b (id int); CREATE TABLE d (id int); CREATE TABLE dropped (id int PRIMARY KEY);
		SELECT fencing.register('a', 'lease', issued_by => 'gone'), fencing.wall('a'), fencing.register('b', 'strict', issued_by => 'renamed'), fencing.wall('b'),
			fencing.register('d', 'strict'), fencing.wall('d'), fencing.register('dropped', 'lease', resource => 'x'), fencing.wall('dropped'), fencing.seal('dropped', by_column => 'id');
		CREATE TABLE p (id int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9);
		SELECT fencing.register('p', 'lease', resource => 'p'), fencing.wall('p'); ALTER TABLE p DETACH PARTITION p1; SELECT fencing.unregister('p');
		DROP SEQUENCE gone; ALTER SEQUENCE renamed RENAME TO was; DROP TABLE dropped;
		DO $$ BEGIN EXECUTE (SELECT format('ALTER FUNCTION %s OWNER TO `+other+`', tgfoid::regprocedure) FROM pg_trigger WHERE tgrelid = 'd'::regclass AND tgname = '~fencing_delete'); END $$`)
	functions := `SELECT array_agg(concat_ws(' ', p.oid, p.proname, p.proowner) ORDER BY p.oid) FROM pg_proc p WHERE EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgfoid = p.oid AND t.tgname ~ '^.fencing')`
	was := get[[]string](t, conn, functions)
	for range 2 {
		at(t, dsn, before)
		require.Equal(t, was, get[[]string](t, conn, functions))
		require.NoError(t, migrations.Up(t.Context(), dsn))
		require.Equal(t, was, get[[]string](t, conn, functions))
		require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM pg_proc WHERE proname ~ '^was_'"))
		require.Equal(t, "FN002 ~fencing_insert 0 -", refusal(t, inTx(t, conn, "INSERT INTO d VALUES (1)")))
		require.Equal(t, "FN004 ~fencing_truncate - -", refusal(t, inTx(t, conn, "TRUNCATE p1")), "left over")
	}
	require.NoError(t, migrations.Down(t.Context(), dsn))
}
