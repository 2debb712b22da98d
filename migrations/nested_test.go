package migrations_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// What a statement calls inserts the key again that the statement deletes or
// gives up, before the statement's own triggers have run after it.
func TestTombstonesAndNestedWrites(t *testing.T) {
	// %s is the token of the nested write
	nested := map[string]string{
		"insert": "INSERT INTO public.t VALUES (k, 'again', %s)",
		"upsert": "INSERT INTO public.t VALUES (k, 'again', %s) ON CONFLICT (id) DO UPDATE SET v = 'again', last_token = excluded.last_token",
		"merge":  "MERGE INTO public.t USING (SELECT re.k AS nr) s ON t.id = s.nr WHEN NOT MATCHED THEN INSERT VALUES (s.nr, 'again', %s)",
		"rekey":  "UPDATE public.t SET id = k, last_token = %s WHERE id = 3",
		"twice": "INSERT INTO public.t VALUES (k, 'again', %s); PERFORM set_config('fencing.token', '2', true); " +
			"DELETE FROM public.t WHERE id = k; INSERT INTO public.t VALUES (k, 'again', 2)",
	}
	// EXECUTE in place of what is called by the row, for a key
	outer := map[string]string{
		"DELETE RETURNING":           "DELETE FROM t WHERE id = 1 RETURNING pg_temp.re(id)",
		"DELETE in a CTE":            "WITH d AS (DELETE FROM t WHERE id = 1 RETURNING id) SELECT pg_temp.re(id) FROM d",
		"DELETE in two CTEs":         "WITH d AS (DELETE FROM t WHERE id = 1 RETURNING pg_temp.re(id) AS r) SELECT r FROM d",
		"MERGE DELETE":               "MERGE INTO t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE",
		"rekey RETURNING":            "UPDATE t SET id = 108, last_token = 60 WHERE id = 1 RETURNING pg_temp.re(1)",
		"rekey by an upsert":         "INSERT INTO t VALUES (1, '', 60) ON CONFLICT (id) DO UPDATE SET id = 108, last_token = 60 RETURNING pg_temp.re(1)",
		"trigger after, before bury": "DELETE FROM t WHERE id = 1",
		"trigger after, rekey":       "UPDATE t SET id = 108, last_token = 60 WHERE id = 1",
		"cascade":                    "DELETE FROM parent WHERE id = 1",
		"statement's trigger":        "DELETE FROM t WHERE id = 1",
	}
	// what makes triggers call it, where the statement doesn't
	triggers := map[string]string{
		"MERGE DELETE":               "CREATE TRIGGER aaa AFTER DELETE ON t FOR EACH ROW WHEN (OLD.v = 'old' AND OLD.last_token = 50) EXECUTE FUNCTION pg_temp.trg()",
		"trigger after, before bury": "CREATE TRIGGER aaa AFTER DELETE ON t FOR EACH ROW WHEN (OLD.v = 'old' AND OLD.last_token = 50) EXECUTE FUNCTION pg_temp.trg()",
		"trigger after, rekey":       "CREATE TRIGGER aaa AFTER UPDATE ON t FOR EACH ROW WHEN (NEW.id = 108) EXECUTE FUNCTION pg_temp.trg()",
		"statement's trigger":        "CREATE TRIGGER aaa AFTER DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.once()",
		"cascade": `ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE;
			CREATE TRIGGER aaa AFTER DELETE ON t FOR EACH ROW WHEN (OLD.v = 'old' AND OLD.last_token = 50) EXECUTE FUNCTION pg_temp.up()`,
	}
	for _, mode := range []string{"strict", "lease"} {
		_, conn := walled(t, mode, "enforce")
		exec(t, conn, `CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent SELECT generate_series(1, 200);
			INSERT INTO t VALUES (3, 'old', 1); SELECT fencing.tombstones('t');
			CREATE FUNCTION pg_temp.trg() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_temp.re(1); RETURN NULL; END $$;
			CREATE FUNCTION pg_temp.once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NOT EXISTS (SELECT FROM t WHERE id = 1) AND pg_trigger_depth() = 1 THEN PERFORM pg_temp.re(1); END IF; RETURN NULL; END $$;
			CREATE FUNCTION pg_temp.up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO parent VALUES (1); PERFORM pg_temp.re(1); RETURN NULL; END $$`)
		require.Equal(t, "FN001 ~fencing_update 49 50", refusal(t, inTx(t, conn, "UPDATE t SET v = 'stale', last_token = 49 WHERE id = 1")), "it is held under 50")
		for how, write := range nested {
			for name, statement := range outer {
				for _, token := range []string{"2", "61"} {
					if how == "twice" && token == "61" {
						continue
					}
					what := fmt.Sprint(mode, ", ", how, ", ", name, ", ", token)
					exec(t, conn,
						"BEGIN; CREATE FUNCTION pg_temp.re(k int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN "+fmt.Sprintf(write,
							token)+"; RETURN 'x'; END $$;"+triggers[name])
					_, err := conn.Exec(t.Context(), "SET LOCAL fencing.token = '60';"+statement)
					if token == "2" {
						require.Regexp(t, "^FN001 ~fencing_(tomb|rekey2) 2 60$", refusal(t, err), what)
					} else {
						require.NoError(t, err, what)
						require.Equal(t, int64(61), get[int64](t, conn, "SELECT last_token FROM t WHERE id = 1"), what)
						require.Equal(t, int64(60), get[int64](t, conn, "SELECT token FROM fencing.tombstone WHERE key = '{1}'"), what)
					}
					exec(t, conn, "ROLLBACK")
				}
			}
		}
	}
}

// The same where a column of the key is generated, which has no value in a
// trigger before the write.
func TestTombstonesOfAGeneratedKeyAndNestedWrites(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	exec(t, conn,
		`CREATE TABLE t (id int, k text GENERATED ALWAYS AS ('k' || id) STORED PRIMARY KEY); SELECT fencing.register('t', 'lease'), setval('fencing.write_epoch', 100);
		SELECT fencing.wall('t'), fencing.tombstones('t'); INSERT INTO t VALUES (1, DEFAULT, 50);
		CREATE FUNCTION pg_temp.re(k int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.t VALUES (k, DEFAULT, 1); RETURN 'x'; END $$`)
	require.Equal(t, "FN001 ~fencing_tomb 1 60", refusal(t, inTx(t, conn, "UPDATE t SET id = 8, last_token = 60 WHERE id = 1 RETURNING pg_temp.re(1)")))
	require.NoError(t, inTx(t, conn, "UPDATE t SET last_token = 60; UPDATE t SET id = 8, last_token = 60; INSERT INTO t VALUES (1, DEFAULT, 60)"))
	require.Empty(t, get[[]string](t, conn, "SELECT coalesce(array_agg(code), '{}') FROM fencing.doctor() WHERE severity <> 'info'"))
}

// A column of the key that was renamed or has another type: the error says
// whose it is and what to do.
func TestTombstonesOfARenamedKey(t *testing.T) {
	for change, back := range map[string]string{
		"ALTER TABLE t RENAME id TO nr":         "SELECT fencing.tombstones('t')",
		"ALTER TABLE t RENAME id TO number":     "ALTER TABLE t RENAME number TO id",
		"ALTER TABLE t ALTER id TYPE bigint":    "SELECT fencing.wall('t')",
		"ALTER TABLE t RENAME id TO \"select\"": "SELECT fencing.tombstones('t')",
	} {
		_, conn := walled(t, "lease", "enforce")
		exec(t, conn, "SELECT fencing.tombstones('t')")
		if _, err := conn.Exec(t.Context(), change); err != nil {
			require.True(t, isState(err, "0A000"), "a trigger's condition holds the type: %v", err)
			continue
		}
		for _, sql := range []string{"INSERT INTO t VALUES (9, '', 60)", "SET LOCAL fencing.token = '60'; DELETE FROM t",
			"SELECT set_config('fencing.token', '60', true); DELETE FROM t"} {
			err := inTx(t, conn, sql)
			require.Regexp(t, "^FN004 ~fencing_(bury|tomb) - -$", refusal(t, err), change+sql)
			require.ErrorContains(t, err, "fencing: the primary key of public.t is not what its tombstones were made for")
			require.ErrorContains(t, err, "fencing.tombstones('public.t')")
		}
		exec(t, conn, back)
		require.NoError(t, inTx(t, conn, "INSERT INTO t VALUES (9, '', 60)"))
	}
}
