package migrations_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// asDriver is a DSN whose sessions are the driver's.
func asDriver(dsn string) string { return with(dsn, "fencing.session", "driver") }

// requireNotForDriver checks that a statement was refused to the driver.
func requireNotForDriver(t *testing.T, err error, sql string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg, sql)
	require.Equal(t, []string{"FN004", "refuse_driver", "fencing"}, []string{pg.Code, pg.ConstraintName, pg.SchemaName}, "%s: %v", sql, err)
	require.Contains(t, pg.Message, "use a plain connection", sql)
}

// sessionTables are the tables of the schema, with an UPDATE for each.
var sessionTables = map[string]string{
	"registry": "SET mode = mode", "generation": "SET value = value", "incarnation": "SET tli = tli",
	"tombstone": "SET token = token", "repairs": "SET reason = reason",
	"lease": "SET token = token", "epoch": "SET token = token", "allowed_function": "SET reason = reason",
}

// No session of the driver writes what the driver rests on, whoever it is and
// however it names it; a plain one of the same role does.
func TestDriverSessionWritesNoTable(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	require.Equal(t, int64(len(sessionTables)),
		get[int64](t, admin,
			"SELECT count(*) FROM pg_class WHERE relnamespace = 'fencing'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'goose_db_version'"))
	exec(t, admin, `CREATE FUNCTION public.run(sql text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE sql; END';
		CREATE FUNCTION public.take(sql text) RETURNS void LANGUAGE plpgsql SET search_path = fencing, pg_catalog AS 'BEGIN EXECUTE sql; END';
		CREATE FUNCTION public.on_mine() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN EXECUTE TG_ARGV[0]; RETURN NULL; END$$`)
	owner, ownerDSN := newRole(t, dsn)
	exec(t, admin,
		"GRANT USAGE ON SCHEMA fencing TO "+owner+"; GRANT ALL ON ALL TABLES IN SCHEMA fencing, public TO "+owner+"; ALTER TABLE fencing.registry OWNER TO "+owner)
	for role, roleDSN := range map[string]string{"superuser": dsn, "owner": ownerDSN} {
		driver, plain := open(t, asDriver(roleDSN)), open(t, roleDSN)
		for table, set := range sessionTables {
			verbs := []string{
				"INSERT INTO fencing.%[1]s SELECT * FROM fencing.%[1]s WHERE false",
				"INSERT INTO fencing.%[1]s SELECT * FROM fencing.%[1]s ON CONFLICT DO NOTHING", "UPDATE fencing.%[1]s %[2]s",
				"DELETE FROM fencing.%[1]s WHERE false", "TRUNCATE fencing.%[1]s",
				"WITH d AS (DELETE FROM fencing.%[1]s WHERE false RETURNING 1) SELECT * FROM d", "SET search_path = fencing; UPDATE %[1]s %[2]s",
				"SET session_replication_role = replica; UPDATE fencing.%[1]s %[2]s", "MERGE INTO fencing.%[1]s USING (SELECT 1) s ON false WHEN MATCHED THEN DELETE",
				`/* PL/pgSQL function fencing.take(text,interval,text) line 20 at SQL statement */ UPDATE fencing.%[1]s %[2]s`,
				"DISCARD ALL; UPDATE fencing.%[1]s %[2]s", "RESET ALL; UPDATE fencing.%[1]s %[2]s", "SET CONSTRAINTS ALL DEFERRED; DELETE FROM fencing.%[1]s WHERE false",
			}
			for _, verb := range verbs {
				sql := fmt.Sprintf(verb, table, set)
				err := attempt(t, plain, sql)
				if isState(err, "42501") {
					continue // it hasn't the right in any session
				}
				require.NoError(t, err, sql)
				wrapped := []string{sql}
				if !strings.HasPrefix(sql, "DISCARD") {
					wrapped = append(wrapped, "DO $d$ BEGIN EXECUTE $e$"+sql+"$e$; END $d$", "SELECT public.run($e$"+sql+"$e$)", "SELECT public.take($e$"+sql+"$e$)",
						"CREATE TABLE pg_temp.mine (id int); INSERT INTO pg_temp.mine VALUES (1); "+
							"CREATE TRIGGER x AFTER UPDATE ON pg_temp.mine FOR EACH ROW EXECUTE FUNCTION public.on_mine($e$"+sql+"$e$); UPDATE pg_temp.mine SET id = id")
				}
				for _, sql := range wrapped {
					requireNotForDriver(t, attempt(t, driver, sql), role+": "+sql)
				}
			}
		}
	}
	_, err := open(t, asDriver(dsn)).Exec(t.Context(), "COPY fencing.registry FROM STDIN")
	requireNotForDriver(t, err, "COPY")
}

// attempt runs statements in a transaction that it rolls back; DISCARD ALL runs
// before that, since it can't run in one.
func attempt(t *testing.T, conn *pgx.Conn, sql string) error {
	t.Helper()
	if rest, ok := strings.CutPrefix(sql, "DISCARD ALL;"); ok {
		exec(t, conn, "DISCARD ALL")
		sql = rest
	}
	exec(t, conn, "BEGIN")
	_, err := conn.Exec(t.Context(), sql)
	exec(t, conn, "ROLLBACK")
	return err
}

// isState reports whether the server's error under err has the SQLSTATE.
func isState(err error, state string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == state
}

// Nor does it call what changes something; what it needs it may call.
func TestDriverSessionCallsNoChange(t *testing.T) {
	dsn := localpg.Database(t, doctored)
	admin := open(t, dsn)
	allowed := map[string]string{
		"next_token()": "SELECT fencing.next_token() > 0", "take(text,interval,text)": "SELECT token > 0 FROM fencing.take('mine', '1 h', 'me')",
		"renew(text,bigint,interval)": "SELECT fencing.renew('mine', token, '1 h') FROM fencing.lease WHERE resource = 'mine'",
		"release(text,bigint)":        "SELECT fencing.release('mine', token) FROM fencing.lease WHERE resource = 'mine'",
		"doctor(boolean,name[])":      "SELECT count(*) FILTER (WHERE severity <> 'info') = 0 FROM fencing.doctor()",
	}
	calls := map[string]string{
		"register": "'orders', 'lease'", "unregister": "'orders'", "claim_name": "'orders'", "driver_level": "'orders', 'off'", "driver_rewrite": "'orders', true", "allow_function": "NULL, 'why'", "disallow_function": "NULL", "lock_registry": "'orders', NULL",
		"wall": "'orders', 'off'", "wall_functions": "'last_token', 'lease', NULL, NULL", "wall_sweep": "",
		"wall_apply": "'orders', 'off', 'last_token', 'strict', NULL, 'fencing.write_epoch'",
		"tombstones": "'keyed', false", "tombstone_functions": "'keyed', 'last_token', 'lease', NULL, 'fencing.write_epoch'", "tombstone_sweep": "",
		"tombstone_apply": "'keyed', 'off', 'last_token', 'lease', NULL, 'fencing.write_epoch'", "prune_tombstones": "'keyed', 1",
		"repair": `'orders', '{"id": 1}', 0, 'why'`,
		"seal":   "'jobs', 'r'", "unseal": "'seals'", "seal_function": "'last_token', NULL, 'r', NULL, NULL", "seal_sweep": "", "seal_apply": "'seals'",
	}
	// what is neither called by name here nor allowed changes nothing
	unknown := get[[]string](t, admin,
		`SELECT coalesce(array_agg(p.oid::regprocedure::text), '{}') FROM pg_proc p WHERE p.pronamespace = 'fencing'::regnamespace AND p.provolatile = 'v'
		AND p.prorettype <> 'trigger'::regtype AND p.proname NOT IN ('fail', 'seal_fail', 'incarnation_now', 'check_tokens', 'is_own_write', 'lease_wait', 'next_token', 'take', 'renew', 'release')
		AND p.prosrc !~ ('BEGIN\n  PERFORM fencing.refuse_driver\(''fencing.' || p.proname || '\(\)''\);')`)
	require.Empty(t, unknown)
	driver := open(t, asDriver(dsn))
	for name, args := range calls {
		for _, sql := range []string{
			"SELECT fencing." + name + "(" + args + ")", "SET search_path = fencing, public; SELECT " + name + "(" + args + ")",
			"DO $$ BEGIN PERFORM fencing." + name + "(" + args + "); END $$",
			"CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM fencing." + name + "(" + args + "); END $$; SELECT pg_temp.f()",
		} {
			requireNotForDriver(t, attempt(t, driver, sql), sql)
		}
	}
	for _, name := range []string{"next_token()", "take(text,interval,text)", "renew(text,bigint,interval)", "release(text,bigint)", "doctor(boolean,name[])"} {
		exec(t, admin, "DELETE FROM fencing.incarnation") // the next draw writes it
		require.True(t, get[bool](t, driver, allowed[name]), name)
		require.Equal(t, "driver", get[string](t, driver, "SELECT current_setting('fencing.session')"), name)
	}
}

// What the triggers write for a session of the driver they may.
func TestDriverSessionUnderAWall(t *testing.T) {
	for _, isolation := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		for _, mode := range []string{"strict", "lease"} {
			dsn, admin := walled(t, mode, "enforce")
			exec(t, admin, "SELECT fencing.tombstones('t')")
			if mode == "lease" {
				exec(t, admin, "SELECT fencing.seal('t', 'r')")
				grant(t, admin, "r", 60)
			}
			driver := open(t, asDriver(dsn))
			exec(t, driver, "SET default_transaction_isolation = '"+isolation+"'")
			for _, sql := range []string{
				"UPDATE t SET v = 'new', last_token = 60 WHERE id = 1", "INSERT INTO t VALUES (3, '', 60)",
				"UPDATE t SET id = 4, last_token = 60 WHERE id = 2", "SET LOCAL fencing.token = '61'; DELETE FROM t WHERE id = 1",
			} {
				if mode == "lease" && sql[0] == 'S' {
					sql = "SET LOCAL fencing.token = '60'; DELETE FROM t WHERE id = 1"
				}
				require.NoError(t, inTx(t, driver, sql), sql)
				require.Equal(t, "driver", get[string](t, driver, "SELECT current_setting('fencing.session')"), sql)
			}
			require.Equal(t, int64(2), get[int64](t, admin, "SELECT count(*) FROM fencing.tombstone"))
			// within one transaction the marker is back after each
			err := inTx(t, driver, "INSERT INTO t VALUES (5, '', 60); DELETE FROM fencing.tombstone")
			requireNotForDriver(t, err, isolation)
			if mode == "lease" {
				exec(t, driver, "SELECT fencing.release('r', 60)")
				token := get[int64](t, driver, "SELECT token FROM fencing.take('r', '1 h', 'x')")
				requireNotForDriver(t, inTx(t, driver, "SELECT fencing.take('q', '1 h', 'x'); DELETE FROM fencing.epoch"), isolation)
				require.Equal(t, fmt.Sprint("FN001 ~fencing_zseal 60 ", token), refusal(t, inTx(t, driver, "INSERT INTO t VALUES (6, '', 60)")))
			}
		}
	}
}

// Migrations run on plain connections, and so do they beside a driver's.
func TestDriverSessionAndMigrations(t *testing.T) {
	dsn := localpg.Database(t, installed)
	exec(t, open(t, dsn), "CREATE TABLE t (id int)")
	requireNotForDriver(t, migrations.Register(t.Context(), asDriver(dsn), migrations.Table{Name: "t", Mode: migrations.Lease}), "Register")
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "t", Mode: migrations.Lease}))
	require.NoError(t, migrations.Down(t.Context(), dsn))
}
