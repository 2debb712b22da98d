package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// actions are what a foreign key does to a row of the table that is called like it, and
// the change of its parent that has it done.
var actions = map[string]struct{ does, change, left string }{
	"d_cascade":   {"ON DELETE CASCADE", "DELETE FROM parent WHERE id = %d", "gone"},
	"d_null":      {"ON DELETE SET NULL", "DELETE FROM parent WHERE id = %d", "null"},
	"d_default":   {"ON DELETE SET DEFAULT", "DELETE FROM parent WHERE id = %d", "0"},
	"u_cascade":   {"ON UPDATE CASCADE", "UPDATE parent SET id = 1000 WHERE id = %d", "1000"},
	"u_null":      {"ON UPDATE SET NULL", "UPDATE parent SET id = 1000 WHERE id = %d", "null"},
	"u_default":   {"ON UPDATE SET DEFAULT", "UPDATE parent SET id = 1000 WHERE id = %d", "0"},
	"p_null":      {"ON DELETE SET NULL", "DELETE FROM parent WHERE id = %d", "null"},         // partitioned
	"p_cascade":   {"ON UPDATE CASCADE", "UPDATE parent SET id = 1000 WHERE id = %d", "1000"}, // by the key, so that the row moves
	"p_d_cascade": {"ON DELETE CASCADE", "DELETE FROM parent WHERE id = %d", "gone"},
}

// withChildren makes a table parent and a walled child of it for each of the actions,
// whose one row has token 50, and has 100 tokens issued.
func withChildren(t testing.TB, mode, level string) *pgx.Conn {
	t.Helper()
	var b strings.Builder
	b.WriteString("CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (0); SELECT setval('fencing.write_epoch', 100);")
	for name, a := range actions {
		by, parts := "", ""
		if strings.HasPrefix(name, "p_") {
			by = " PARTITION BY LIST (id)"
			parts = fmt.Sprintf("CREATE TABLE %s_1 PARTITION OF %[1]s FOR VALUES IN (1); CREATE TABLE %[1]s_2 PARTITION OF %[1]s DEFAULT;", name)
		}
		if name == "p_cascade" {
			by = " PARTITION BY RANGE (parent)"
			parts = "CREATE TABLE p_cascade_1 PARTITION OF p_cascade FOR VALUES FROM (0) TO (500); CREATE TABLE p_cascade_2 PARTITION OF p_cascade DEFAULT;"
		}
		fmt.Fprintf(&b, `CREATE TABLE %[1]s (id int DEFAULT 1, parent int DEFAULT 0 REFERENCES parent %[2]s)%[3]s; %[4]s SELECT fencing.register('%[1]s', '%[5]s'); INSERT INTO parent VALUES (%[6]d);
			INSERT INTO %[1]s VALUES (1, %[6]d, 50); SELECT fencing.wall('%[1]s', '%[7]s');`, name, a.does, by, parts, mode, keyOf(name), level)
	}
	return open(t, localpg.Database(t, prepared(b.String())))
}

// keyOf is the key of the parent's row that only the table of the action refers to.
func keyOf(action string) int {
	n := 1
	for name := range actions {
		if name < action {
			n++
		}
	}
	return n
}

// leaves runs statements in a transaction that it rolls back, and returns the parent and
// the token of the row that a table has then.
func leaves(t testing.TB, conn *pgx.Conn, sql, table string) (row string, err error) {
	t.Helper()
	defer func() { exec(t, conn, "ROLLBACK") }()
	if _, err := conn.Exec(t.Context(), "BEGIN;"+sql); err != nil {
		return "", err
	}
	return get[string](t, conn, fmt.Sprintf("SELECT coalesce(string_agg(coalesce(parent::text, 'null') || ' ' || last_token, ', '), 'gone') FROM %s", table)), nil
}

// What foreign keys do is done under the token of the setting, which the rows get.
func TestWallAndCascadesUnderAToken(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "lease"} {
		conn := withChildren(t, mode, "report")
		for _, level := range []string{"report", "enforce", "attested"} {
			exec(t, conn, fmt.Sprintf("SELECT fencing.wall(relid, '%s') FROM fencing.registry", level))
			for name, a := range actions {
				isDelete := a.left == "gone"
				trigger := "update"
				if isDelete {
					trigger = "delete"
				}
				for setting, want := range map[string]string{
					"":                    "FN002 ~fencing_" + trigger + " - 50",
					"49":                  "FN001 ~fencing_" + trigger + " 49 50",
					"50":                  "",
					"60":                  "",
					"100":                 "",
					"101":                 "FN003 ~fencing_" + trigger + " 101 50",
					"9223372036854775808": "FN004 ~fencing_" + trigger + " - 50",
					"x":                   "FN004 ~fencing_" + trigger + " - 50",
				} {
					if mode == "strict" && (setting == "50" || setting == "" && !isDelete) {
						want = "FN001 ~fencing_" + trigger + " 50 50"
					}
					what := fmt.Sprint(mode, " ", level, " ", name, " ", setting)
					row, err := leaves(t, conn, fmt.Sprintf("SET LOCAL fencing.token = '%s';", setting)+fmt.Sprintf(a.change, keyOf(name)), name)
					if level == "report" {
						require.NoError(t, err, what)
						if setting == "60" && !isDelete {
							require.Equal(t, a.left+" 60", row, what)
						}
						continue
					}
					require.Equal(t, want, refusal(t, err), what)
					switch {
					case want != "":
						continue
					case isDelete:
						require.Equal(t, "gone", row, what)
					default:
						require.Equal(t, a.left+" "+setting, row, what)
					}
				}
			}
		}
	}
}

// cascadeCases are tables in a schema of their own, and what a transaction leaves of the
// row of one. Its parent has the rows 0 to 4.
var cascadeCases = []struct {
	name, setup, sql, table string
	strict, lease           string // what is left, or why it is refused
	enforced                bool   // only at enforce: at attested the setting has another token
}{
	{name: "in the statement itself", setup: kid, sql: "DELETE FROM parent WHERE id = 1 AND set_config('fencing.token', '60', true) IS NOT NULL", strict: "null 60", lease: "null 60"},
	{name: "with a newer token in the child", setup: kid + "SET fencing.token = '61'; UPDATE kid SET last_token = 61;", sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "FN001 ~fencing_update 60 61", lease: "FN001 ~fencing_update 60 61"},
	{name: "unguarded, not nested", setup: kid, sql: at60 + "UPDATE kid SET parent = NULL", strict: "FN001 ~fencing_update 50 50", lease: "FN002 ~fencing_update - 50"},
	{name: "a row that the transaction has written", setup: kid, sql: at60 + "UPDATE kid SET last_token = 60; DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "before a savepoint", setup: kid, sql: at60 + "UPDATE kid SET last_token = 60; SAVEPOINT s; DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "within a savepoint", setup: kid, sql: at60 + "SAVEPOINT s; UPDATE kid SET last_token = 60; SAVEPOINT s2; DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "after a savepoint that is rolled back", setup: kid, sql: at60 + "SAVEPOINT s; UPDATE kid SET last_token = 60; ROLLBACK TO s; DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "a row that the transaction has written, deleted", setup: gone, sql: at60 + "SAVEPOINT s; UPDATE kid SET last_token = 60; RELEASE s; DELETE FROM parent WHERE id = 1", strict: "gone", lease: "gone"},
	{name: "deleted, not nested", setup: gone, sql: at60 + "UPDATE kid SET last_token = 60; DELETE FROM kid", strict: "FN001 ~fencing_delete 60 60", lease: "gone"},
	{name: "the same token again, in another transaction", setup: kid + "UPDATE kid SET last_token = 60;", sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "FN001 ~fencing_update 60 60", lease: "null 60"},
	{name: "the same token again, deleted in another transaction", setup: gone + "UPDATE kid SET last_token = 60;", sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "FN001 ~fencing_delete 60 60", lease: "gone"},
	{name: "the same token again, by a cascade before", setup: kid, sql: at60 + "UPDATE parent SET id = 8 WHERE id = 1; UPDATE parent SET id = 9 WHERE id = 8", strict: "9 60", lease: "9 60"},
	{name: "two keys", setup: child("ON DELETE SET NULL, ADD other int DEFAULT 1 REFERENCES parent ON DELETE SET NULL"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "two keys, one of which deletes", setup: child("ON DELETE SET NULL, ADD other int DEFAULT 1 REFERENCES parent ON DELETE CASCADE"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "gone", lease: "gone"},
	{name: "two keys, stale", setup: child("ON DELETE SET NULL, ADD other int DEFAULT 1 REFERENCES parent ON DELETE SET NULL"), sql: "SET LOCAL fencing.token = '49'; DELETE FROM parent WHERE id = 1", strict: "FN001 ~fencing_update 49 50", lease: "FN001 ~fencing_update 49 50"},
	{name: "a chain", setup: kid + "CREATE TABLE top (id int PRIMARY KEY); INSERT INTO top VALUES (7); ALTER TABLE parent ADD up int REFERENCES top ON DELETE CASCADE; UPDATE parent SET up = 7 WHERE id = 1;",
		sql: at60 + "DELETE FROM top", strict: "null 60", lease: "null 60"},
	{name: "a chain, with a walled table between", setup: kid + "CREATE TABLE top (id int PRIMARY KEY); INSERT INTO top VALUES (7); ALTER TABLE parent ADD up int REFERENCES top ON DELETE CASCADE; UPDATE parent SET up = 7 WHERE id = 1; SELECT fencing.register('parent', '{mode}'); SELECT fencing.wall('parent', 'enforce');",
		sql: at60 + "DELETE FROM top", strict: "null 60", lease: "null 60"},
	{name: "a chain, stale at its end", setup: kid + "CREATE TABLE top (id int PRIMARY KEY); INSERT INTO top VALUES (7); ALTER TABLE parent ADD up int REFERENCES top ON DELETE CASCADE; UPDATE parent SET up = 7 WHERE id = 1; SELECT fencing.register('parent', '{mode}'); SELECT fencing.wall('parent', 'enforce');",
		sql: "SET LOCAL fencing.token = '49'; DELETE FROM top", strict: "FN001 ~fencing_update 49 50", lease: "FN001 ~fencing_update 49 50"},
	{name: "a key of the table itself", setup: `CREATE TABLE kid (id int PRIMARY KEY, parent int REFERENCES kid ON DELETE SET NULL, last_token bigint NOT NULL DEFAULT 0); INSERT INTO kid VALUES (1, NULL, 50), (2, 1, 50);
		SELECT fencing.register('kid', '{mode}'); SELECT fencing.wall('kid', 'enforce');`, sql: at60 + "DELETE FROM kid WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "a resource's own token", setup: strings.ReplaceAll(kid, "'{mode}'", "'{mode}', resource => 'r'"), sql: "SET LOCAL fencing.token = '49'; SET LOCAL fencing.token_r = '60'; DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "another resource's token", setup: strings.ReplaceAll(kid, "'{mode}'", "'{mode}', resource => 'r'"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "FN001 ~fencing_update 50 50", lease: "FN002 ~fencing_update - 50"},
	{name: "deferrable", setup: child("ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "a child by inheritance", setup: kid + "CREATE TABLE heir () INHERITS (kid); ALTER TABLE heir ADD FOREIGN KEY (parent) REFERENCES parent ON DELETE SET NULL; INSERT INTO heir VALUES (1, 2, 50); SELECT fencing.wall('kid', 'enforce');",
		sql: at60 + "DELETE FROM parent WHERE id = 2", table: "heir", strict: "null 60", lease: "null 60"},
	{name: "a trigger's UPDATE without a token", setup: kid + nests("UPDATE kid SET id = 9"), sql: at60 + "UPDATE parent SET id = id WHERE id = 0", strict: "1 60", lease: "1 60"},
	{name: "a trigger's UPDATE with a token", setup: kid + nests("UPDATE kid SET id = 9, last_token = 70"), sql: "SET LOCAL fencing.token = '70'; UPDATE parent SET id = id WHERE id = 0", strict: "1 70", lease: "1 70"},
	{name: "a trigger's UPDATE with an older token", setup: kid + nests("UPDATE kid SET id = 9, last_token = 40"), sql: at60 + "UPDATE parent SET id = id WHERE id = 0", strict: "FN001 ~fencing_update 40 50", lease: "FN001 ~fencing_update 40 50"},
	{name: "a trigger of the child that sets another column", setup: kid + before("touch", "NEW.id := 8"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "null 60", lease: "null 60"},
	{name: "one that leaves the row as it is", setup: kid + before("skip", "RETURN NULL"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "1 50", lease: "1 50"},
	{name: "one that lowers the token after the wall's", setup: kid + before("~gone", "NEW.last_token := 1"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "FN004 ~fencing_late 1 50", lease: "FN004 ~fencing_late 1 50"},
	{name: "one that puts another token there", setup: kid + before("~gone", "NEW.last_token := 99"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "FN004 ~fencing_late 99 50", lease: "FN004 ~fencing_late 99 50"},
	{name: "one that puts the row's own back", setup: kid + before("~gone", "IF NEW.last_token = 61 THEN NEW.last_token := OLD.last_token; END IF"),
		sql: at60 + "UPDATE kid SET last_token = 60; SET LOCAL fencing.token = '61'; DELETE FROM parent WHERE id = 1", strict: "FN004 ~fencing_late 60 60", lease: "FN004 ~fencing_late 60 60"},
	{name: "one that puts the row's own back, in a guarded UPDATE", setup: kid + before("~gone", "IF NEW.last_token = 61 THEN NEW.last_token := OLD.last_token; END IF"),
		sql: at60 + "UPDATE kid SET last_token = 60; UPDATE kid SET last_token = 61", strict: "FN004 ~fencing_late 60 60", lease: "FN004 ~fencing_late 60 60", enforced: true},
	{name: "and another row counts", setup: kid + "INSERT INTO kid VALUES (2, 2, 50);" + before("~gone", "IF NEW.last_token = 61 THEN NEW.last_token := OLD.last_token; END IF"),
		sql: at60 + "UPDATE kid SET last_token = 60; DELETE FROM parent WHERE id = 2; UPDATE kid SET last_token = 61 WHERE id = 1", strict: "FN004 ~fencing_late 60 60", lease: "FN004 ~fencing_late 60 60", enforced: true},
	{name: "one that puts the row's own back after what the setting allows", setup: kid + before("~gone", "IF NEW.last_token = 70 THEN NEW.last_token := OLD.last_token; END IF"),
		sql: at60 + "UPDATE kid SET last_token = 60; DELETE FROM parent WHERE id = 1; UPDATE kid SET last_token = 70", strict: "FN004 ~fencing_late 60 60", lease: "FN004 ~fencing_late 60 60", enforced: true},
	{name: "forged notes", setup: kid + "UPDATE kid SET last_token = 60;", sql: at60 + "SET LOCAL fencing.mark1 = '60 again'; SET LOCAL fencing.mark2 = '60 again'; DELETE FROM parent WHERE id = 1", strict: "FN001 ~fencing_update 60 60", lease: "null 60"},
	{name: "forged notes, not nested", setup: kid + "UPDATE kid SET last_token = 60;", sql: at60 + "UPDATE kid SET id = id, last_token = 60 WHERE set_config('fencing.mark1', '60 again', true) IS NOT NULL AND set_config('fencing.mark2', '60 again', true) IS NOT NULL", strict: "FN001 ~fencing_update 60 60", lease: "1 60"},
	{name: "one that sets the token before the wall's", setup: kid + before("middle", "NEW.last_token := 70"), sql: at60 + "DELETE FROM parent WHERE id = 1", strict: "FN004 ~fencing_late 70 50", lease: "FN002 ~fencing_update - 50", enforced: true},
}

// What a transaction writes that has a token in the setting.
const at60 = "SET LOCAL fencing.token = '60';"

var kid, gone = child("ON DELETE SET NULL ON UPDATE CASCADE"), child("ON DELETE CASCADE")

// child makes a walled table kid, whose row refers to that of the parent with the key 1.
func child(does string) string {
	return "CREATE TABLE kid (id int, parent int, last_token bigint NOT NULL DEFAULT 0); INSERT INTO kid VALUES (1, 1, 50); ALTER TABLE kid ADD FOREIGN KEY (parent) REFERENCES parent " + does +
		"; COMMIT; SELECT fencing.register('kid', '{mode}'); SELECT fencing.wall('kid', 'enforce');"
}

// before makes a trigger of the child run code before an UPDATE.
func before(trigger, code string) string {
	return fmt.Sprintf(`CREATE FUNCTION before() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s; RETURN NEW; END $$; CREATE TRIGGER "%s" BEFORE UPDATE ON kid FOR EACH ROW EXECUTE FUNCTION before();`, code, trigger)
}

// The same in other ways to write the tables.
func TestWallAndCascades(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "lease"} {
		conn := open(t, localpg.Database(t, prepared("SELECT setval('fencing.write_epoch', 100)")))
		for i, tt := range cascadeCases {
			want := map[string]string{"strict": tt.strict, "lease": tt.lease}[mode]
			exec(t, conn, fmt.Sprintf("CREATE SCHEMA c%d; SET search_path = c%[1]d; SET fencing.token = '60'; CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent SELECT generate_series(0, 4);", i)+strings.ReplaceAll(tt.setup, "{mode}", mode)+"; RESET fencing.token")
			table := "kid"
			if tt.table != "" {
				table = tt.table
			}
			for _, level := range []string{"enforce", "attested"} {
				if level == "attested" {
					if tt.enforced {
						continue
					}
					exec(t, conn, fmt.Sprintf("SELECT fencing.wall(relid, 'attested') FROM fencing.registry WHERE schema_name = 'c%d'", i))
				}
				row, err := leaves(t, conn, tt.sql, table+" WHERE id IN (1, 8, 9) OR parent IS NULL AND id = 2")
				if err != nil {
					row = refusal(t, err)
				}
				require.Equal(t, want, row, mode+" "+level+" "+tt.name)
			}
		}
	}
}

// nests makes a trigger of the parent run a statement.
func nests(sql string) string {
	return `CREATE FUNCTION nests() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + sql + `; RETURN NULL; END $$; CREATE TRIGGER nests AFTER UPDATE ON parent FOR EACH ROW EXECUTE FUNCTION nests();`
}

// A row keeps the token that it had by the stale statement, and all others what they had.
func TestStaleCascadeChangesNothing(t *testing.T) {
	t.Parallel()
	conn := withChildren(t, "lease", "enforce")
	exec(t, conn, fmt.Sprintf("INSERT INTO d_null VALUES (2, %d, 61)", keyOf("d_null")))
	_, err := conn.Exec(t.Context(), fmt.Sprintf("DELETE FROM parent WHERE id = %d AND set_config('fencing.token', '60', true) IS NOT NULL", keyOf("d_null")))
	require.Equal(t, "FN001 ~fencing_update 60 61", refusal(t, err))
	require.Equal(t, int64(2), get[int64](t, conn, fmt.Sprintf("SELECT count(*) FROM d_null WHERE parent = %d AND last_token IN (50, 61)", keyOf("d_null"))))
	require.Equal(t, int64(1), get[int64](t, conn, fmt.Sprintf("SELECT count(*) FROM parent WHERE id = %d", keyOf("d_null"))))
}

// What a refusal says to do has the statement pass.
func TestCascadeRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for mode, state := range map[string]string{"strict": "FN001", "lease": "FN002"} {
		conn := withChildren(t, mode, "enforce")
		_, err := conn.Exec(t.Context(), fmt.Sprintf("DELETE FROM parent WHERE id = %d", keyOf("d_null")))
		requireRefused(t, err, state, "UPDATE of public.d_null, by a foreign key or a trigger,", "into the setting 'fencing.token' of the transaction first")
	}
}

// Tombstones and seals hold for what cascades do.
func TestCascadesTombstonesAndSeals(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "lease"} {
		conn := open(t, localpg.Database(t, prepared(fmt.Sprintf(`CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2), (3); SELECT setval('fencing.write_epoch', 100);
			CREATE TABLE t (parent int PRIMARY KEY REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, id int); SELECT fencing.register('t', '%s'); INSERT INTO t VALUES (1, 1, 50), (2, 1, 50);
			SELECT fencing.wall('t'), fencing.tombstones('t')`, mode))))
		for _, change := range []string{"DELETE FROM parent WHERE id = 1", "UPDATE parent SET id = 9 WHERE id = 1"} {
			for token, want := range map[int]string{59: "FN001 ~fencing_tomb 59 60", 61: ""} {
				_, err := leaves(t, conn, fmt.Sprintf("SET LOCAL fencing.token = '60'; %s; INSERT INTO parent VALUES (1) ON CONFLICT DO NOTHING; INSERT INTO t VALUES (1, 1, %d)", change, token), "t")
				require.Equal(t, want, refusal(t, err), mode+change)
			}
		}
		rekeyed, err := leaves(t, conn, "SET LOCAL fencing.token = '70'; DELETE FROM parent WHERE id = 1; SET LOCAL fencing.token = '60'; UPDATE parent SET id = 1 WHERE id = 2", "t")
		require.Equal(t, "FN001 ~fencing_rekey2 60 70", refusal(t, err), rekeyed)
	}
}

// The seal takes no token but the lease's newest, of what foreign keys do as of any
// other write.
func TestCascadesIntoSealedTables(t *testing.T) {
	t.Parallel()
	conn := open(t, localpg.Database(t, prepared("SELECT setval('fencing.write_epoch', 100)")))
	token := get[int64](t, conn, "SELECT token FROM fencing.take('job', '1 h', 'holder')")
	for i, tt := range []struct{ action, change, left string }{
		{"ON DELETE CASCADE", "DELETE FROM parent WHERE id = 3", "gone"},
		{"ON DELETE SET NULL", "DELETE FROM parent WHERE id = 3", fmt.Sprint("null ", token)},
		{"ON DELETE SET DEFAULT", "DELETE FROM parent WHERE id = 3", fmt.Sprint("0 ", token)},
		{"ON UPDATE CASCADE", "UPDATE parent SET id = 4 WHERE id = 3", fmt.Sprint("4 ", token)},
		{"ON UPDATE SET NULL", "UPDATE parent SET id = 4 WHERE id = 3", fmt.Sprint("null ", token)},
		{"ON UPDATE SET DEFAULT", "UPDATE parent SET id = 4 WHERE id = 3", fmt.Sprint("0 ", token)},
	} {
		exec(t, conn, fmt.Sprintf(`CREATE SCHEMA s%d; SET search_path = s%[1]d; CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (0), (3);
			CREATE TABLE sealed (id int PRIMARY KEY, parent int DEFAULT 0 REFERENCES parent %s); SELECT fencing.register('sealed', 'lease'); INSERT INTO sealed VALUES (1, 3, 50);
			SELECT fencing.wall('sealed'), fencing.seal('sealed', 'job')`, i, tt.action))
		for _, stale := range []int64{50, 90} { // new enough for the row, and not for the lease
			_, err := leaves(t, conn, fmt.Sprintf("SET LOCAL fencing.token = '%d'; %s", stale, tt.change), "sealed")
			require.Contains(t, refusal(t, err), "FN001 ~fencing_zseal", tt.action)
		}
		_, err := leaves(t, conn, tt.change, "sealed")
		require.Contains(t, refusal(t, err), "FN002", tt.action)
		row, err := leaves(t, conn, fmt.Sprintf("SET LOCAL fencing.token = '%d'; %s", token, tt.change), "sealed")
		require.NoError(t, err)
		require.Equal(t, tt.left, row, tt.action)
	}
}

// A row is the transaction's own by an xmin of it or of its savepoints, and by no other.
func TestOwnWrites(t *testing.T) {
	t.Parallel()
	conn := open(t, localpg.Database(t, prepared("CREATE TABLE r AS SELECT 'before' AS written")))
	exec(t, conn, "BEGIN; INSERT INTO r VALUES ('by itself'); SAVEPOINT s; INSERT INTO r VALUES ('in a savepoint'); RELEASE s; SAVEPOINT s; INSERT INTO r VALUES ('in an open one')")
	for written, want := range map[string]bool{"before": false, "by itself": true, "in a savepoint": true, "in an open one": true} {
		require.Equal(t, want, get[bool](t, conn, fmt.Sprintf("SELECT fencing.is_own_write(xmin) FROM r WHERE written = '%s'", written)), written)
	}
	require.False(t, get[bool](t, conn, "SELECT fencing.is_own_write((pg_current_xact_id()::text::bigint + 1000000)::text::xid)"), "an id to come")
}
