package migrations_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// lowering are bodies of triggers that change the token of a write under 60, of
// a row that has 50 or is new, to one that was issued.
var lowering = map[string]string{
	"constant":          "NEW.last_token := 53",
	"with =":            "NEW.last_token = 53",
	"only above":        "IF NEW.last_token > 53 THEN NEW.last_token := 53; END IF",
	"least":             "NEW.last_token := least(NEW.last_token, 53)",
	"minus":             "NEW.last_token := NEW.last_token - 2",
	"plus":              "NEW.last_token := NEW.last_token + 2",
	"half":              "NEW.last_token := 27 + NEW.last_token / 2",
	"rest":              "NEW.last_token := 50 + NEW.last_token % 7",
	"complement":        "NEW.last_token := ~53",
	"zero":              "NEW.last_token := 0",
	"negative":          "NEW.last_token := -53",
	"into":              "SELECT 53 INTO NEW.last_token",
	"by jsonb":          `NEW := jsonb_populate_record(NEW, '{"last_token": 53}')`,
	"by jsonb, negated": `NEW := jsonb_populate_record(NEW, '{"last_token": -54}')`,
	"into NEW":          `SELECT NEW.id, NEW.v, 53::bigint INTO NEW`,
	"RETURN a row":      `RETURN ROW(NEW.id, NEW.v, 53::bigint)`,
	"RETURN jsonb":      `RETURN jsonb_populate_record(NEW, '{"last_token": 53}')`,
	"EXECUTE":           `EXECUTE 'SELECT ($1 #= 0).*' USING NEW INTO NEW`,
	"nested write":      "INSERT INTO other VALUES (NEW.id, 55); NEW.last_token := 53",
}

// untouching are bodies that leave the token as it is.
var untouching = map[string]string{
	"touch":         "NEW.v := NEW.v || '!'",
	"NEW by jsonb":  `NEW := jsonb_populate_record(NEW, '{"v": "changed"}')`,
	"reads it":      "NEW.v := NEW.v || (NEW.last_token <> 0)::text",
	"same again":    "NEW.last_token := NEW.last_token",
	"nested write":  "INSERT INTO other VALUES (NEW.id, 55)",
	"nested, twice": "INSERT INTO other VALUES (NEW.id, 55); UPDATE other SET last_token = 56",
	"row":           "RETURN NEW",
}

// theirs puts a trigger on t.
func theirs(t *testing.T, conn *pgx.Conn, name, body string) {
	t.Helper()
	exec(t, conn, fmt.Sprintf(`CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN %s; RETURN NEW; END$$;
		CREATE TRIGGER %q BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION theirs()`, body, name))
}

// hash is for EXECUTE: an operator that lowers the token of a row of t.
const hash = `CREATE FUNCTION lower(t, int) RETURNS t LANGUAGE sql AS 'SELECT ($1).id, ($1).v, 53::bigint'; ` +
	`CREATE OPERATOR #= (LEFTARG = t, RIGHTARG = int, FUNCTION = lower)`

// A trigger that changes the token of a write is caught, whatever it is named
// after the wall's first mark, and one that doesn't isn't.
func TestWallAndTriggersThatSetTheToken(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "lease"} {
		for _, level := range []string{"enforce", "attested"} {
			_, conn := walled(t, mode, level)
			exec(t, conn, `CREATE TABLE other (id int); SELECT fencing.register('other', 'lease'); SELECT fencing.wall('other');`+hash)
			for _, name := range []string{"aaa", "zzz", "~fencing_aaa", "~fencing_v", "~zz", "\u2603"} {
				for op, sql := range map[string]string{
					"UPDATE": "UPDATE t SET v = 'new', last_token = 60 WHERE id = 1", "INSERT": "INSERT INTO t VALUES (3, 'new', 60)",
					"INSERT of two": "INSERT INTO t VALUES (3, 'new', 60), (4, 'new', 60)",
					"upsert":        "INSERT INTO t VALUES (1, 'new', 60) ON CONFLICT (id) DO UPDATE SET v = excluded.v, last_token = excluded.last_token",
					"merge":         "MERGE INTO t USING (SELECT 3 AS k) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT VALUES (3, 'new', 60)",
				} {
					for what, body := range lowering {
						if op == "upsert" && name > "~fencing_insert" {
							continue // EXCLUDED has what it makes of the row: the doctor's error
						}
						exec(t, conn, "BEGIN")
						theirs(t, conn, name, body)
						_, err := conn.Exec(t.Context(), "SET LOCAL fencing.token = '60';"+sql)
						if err == nil {
							// arithmetic on the mark and its end cancels out where the row keeps what was written
							require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM t WHERE v = 'new' AND last_token <> 60"), "%s, %s: %q, %s: %s", mode, level, name, op, what)
						} else {
							require.Regexp(t, "^FN00[1-4] ~fencing_", refusal(t, err), "%s, %s: %q, %s: %s", mode, level, name, op, what)
						}
						exec(t, conn, "ROLLBACK")
					}
					for what, body := range untouching {
						if level == "attested" && regexp.MustCompile("nested").MatchString(what) {
							body = "PERFORM set_config('fencing.token', '60', true)"
						}
						exec(t, conn, "BEGIN")
						theirs(t, conn, name, body)
						_, err := conn.Exec(t.Context(), "SET LOCAL fencing.token = '60';"+sql)
						require.NoError(t, err, "%s, %s: %q, %s: %s", mode, level, name, op, what)
						require.NotZero(t, get[int64](t, conn, "SELECT count(*) FROM t WHERE last_token = 60"))
						exec(t, conn, "ROLLBACK")
					}
				}
			}
			// it has no say in what the statement doesn't write
			exec(t, conn, "BEGIN")
			theirs(t, conn, "aaa", "NEW.last_token := 60")
			_, err := conn.Exec(t.Context(), "SET LOCAL fencing.token = '60'; UPDATE t SET v = 'new' WHERE id = 1")
			require.Regexp(t, "^FN00[24] ~fencing_", refusal(t, err))
			exec(t, conn, "ROLLBACK")
		}
	}
}

// What the doctor says of triggers: an error where the token may be lowered and
// the wall doesn't catch it, or refuses what the trigger makes of each write.
func TestDoctorOnTriggersThatSetTheToken(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE other (id int, last_token int); SELECT fencing.register('t', 'strict');`+hash)
	whole := []string{"by jsonb", "by jsonb, negated", "into NEW", "RETURN a row", "RETURN jsonb", "EXECUTE"}
	found := func(name, body string) []string {
		exec(t, conn, "BEGIN")
		defer exec(t, conn, "ROLLBACK")
		theirs(t, conn, name, body)
		return get[[]string](t, conn, "SELECT coalesce(array_agg(severity || ' ' || code ORDER BY code), '{}') FROM fencing.doctor() WHERE code ~ '^D6'")
	}
	const sets = "error D606 trigger-sets-token"
	for _, level := range []string{"off", "report", "enforce", "attested"} {
		exec(t, conn, "SELECT fencing.wall('t', '"+level+"')")
		for what, body := range lowering {
			got := found("aaa", body)
			if slices.Contains(whole, what) && (level == "enforce" || level == "attested") {
				require.NotContains(t, got, sets, "%s: %s: the wall catches it", level, what)
				require.Contains(t, found("!a", body), sets, "%s: %s: before the wall's mark", level, what)
				require.Contains(t, found("~zz", body), sets, "%s: %s: after the wall's check of an upsert", level, what)
			} else {
				require.Contains(t, got, sets, "%s: %s", level, what)
			}
		}
		for what, body := range untouching {
			if what == "same again" || what == "NEW by jsonb" {
				continue
			}
			require.NotContains(t, found("aaa", body), sets, "%s: %s", level, what)
		}
		for _, body := range []string{
			"NEW.v := now()::text", "IF NEW.last_token = OLD.last_token THEN RETURN NULL; END IF", "-- NEW.last_token := 3\n NEW.v := ''",
			"/* NEW := OLD; */ NEW.v := ''",
			"INSERT INTO log SELECT NEW.id, NEW.last_token", "INSERT INTO log VALUES (NEW.last_token)", "RETURN coalesce(NEW, OLD)",
			"RETURN NULL", "NEW.old_last_token := 3", "SELECT 'x' INTO NEW.v",
			"IF NEW IS DISTINCT FROM OLD THEN NEW.v := ''; END IF",
		} {
			require.NotContains(t, found("aaa", body), sets, "%s: %s", level, body)
		}
	}
	// in another language, and with the column as an argument
	exec(t, conn, `SELECT fencing.wall('t', 'off'); CREATE TRIGGER a BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`)
	require.NotContains(t, codes(diagnose(t, dsn), "error"), "D606 trigger-sets-token")
	exec(t, conn, `CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger('last_token')`)
	require.Contains(t, codes(diagnose(t, dsn), "error"), "D606 trigger-sets-token")
	exec(t, conn,
		`DROP TRIGGER b ON t; SELECT fencing.unregister('t'); ALTER TABLE t RENAME last_token TO "a [b] %s""\c"; `+
			`SELECT fencing.register('t', 'lease', 'a [b] %s"\c')`)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "t", migrations.WallEnforce))
	require.NotContains(t, found("aaa", "NEW.v := ''"), sets)
}

// Where the doctor says to put a trigger no stale write passes, and nothing
// leads from there to another place.
func TestDoctorAdvisesAPlaceForTriggers(t *testing.T) {
	for _, tt := range []struct{ name, mode, trigger, body, want, remedy, rename string }{
		{"touch in mode lease", "lease", "keep", "NEW.v := 'x'", "warning D603 trigger-sees-mark", `RENAME TO "!a_keep"`, "!a_keep"},
		{"a long name", "lease", "k23456789012345678901234567890123456789012345678901234567890123", "NEW.v := 'x'", "warning D603 trigger-sees-mark",
			`RENAME TO "!a_k23456789012345678901234567890123456789012345678901234567"`, "!a_k23456789012345678901234567890123456789012345678901234567"},
		{"the row of OLD in mode lease", "lease", "keep", "NEW := jsonb_populate_record(OLD, jsonb_build_object('v', NEW.v))",
			"error D603 trigger-sees-mark", "leave its name as it is", ""},
		{"the row of OLD, returned", "lease", "keep", "RETURN jsonb_populate_record(OLD, jsonb_build_object('v', NEW.v))",
			"error D603 trigger-sees-mark", "leave its name as it is", ""},
		{"the row of NEW in mode lease", "lease", "keep", "NEW := jsonb_populate_record(NEW, '{}')", "warning D603 trigger-sees-mark", "leave its name as it is", ""},
		{"the row, early in mode lease", "lease", "!a", "NEW := jsonb_populate_record(OLD, jsonb_build_object('v', NEW.v))",
			"error D606 trigger-sets-token", "or DROP TRIGGER", ""},
		{"the row, early in mode strict", "strict", "!a", "NEW := jsonb_populate_record(NEW, '{}')", "error D606 trigger-sets-token", `RENAME TO "!g_!a"`, "!g_!a"},
		{"the column in mode lease", "lease", "keep", "NEW.last_token := OLD.last_token", "error D606 trigger-sets-token", "leave that column alone", ""},
		{"the column, early in mode lease", "lease", "!a", "NEW.last_token := OLD.last_token", "error D606 trigger-sets-token", "leave that column alone", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn,
				fmt.Sprintf(`CREATE TABLE t (id int PRIMARY KEY, v text); SELECT fencing.register('t', '%s'), fencing.wall('t'); SELECT setval('fencing.write_epoch', 100); INSERT INTO t VALUES (1, '', 50);
				CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN %s; RETURN NEW; END$$; CREATE TRIGGER %q BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION keep()`, tt.mode, tt.body, tt.trigger))
			const sixes = `SELECT coalesce(array_agg(severity || ' ' || code ORDER BY code), '{}') FROM fencing.doctor() WHERE code IN ('D603 ` +
				`trigger-sees-mark', 'D606 trigger-sets-token')`
			require.Equal(t, []string{tt.want}, get[[]string](t, conn, sixes))
			remedy := get[string](t, conn, `SELECT remedy FROM fencing.doctor() WHERE code IN ('D603 trigger-sees-mark', 'D606 trigger-sets-token')`)
			require.Contains(t, remedy, tt.remedy)
			if tt.rename == "" {
				require.NotContains(t, remedy, "RENAME")
				return
			}
			exec(t, conn, fmt.Sprintf("ALTER TRIGGER %q ON t RENAME TO %q", tt.trigger, tt.rename))
			require.Empty(t, get[[]string](t, conn, sixes))
			_, err := conn.Exec(t.Context(), "UPDATE t SET v = 'stale', last_token = 20")
			requireRefused(t, err, "FN001")
			exec(t, conn, "UPDATE t SET v = 'new', last_token = 60")
		})
	}
}

// The consequence says what the wall does of a function that sets the column,
// which depends on where its trigger sorts.
func TestDoctorOnTriggersThatSetTheColumn(t *testing.T) {
	for trigger, words := range map[string]string{"!a": "a stale write passes", "keep": "the wall refuses each write whose token it changes",
		"~zz": "takes from EXCLUDED"} {
		dsn := localpg.Database(t, installed)
		conn := open(t, dsn)
		exec(t, conn, `CREATE TABLE t (id int PRIMARY KEY, v text); SELECT fencing.register('t', 'lease'), fencing.wall('t')`)
		theirs(t, conn, trigger, "NEW.last_token := 53")
		require.Contains(t, get[string](t, conn, "SELECT consequence FROM fencing.doctor() WHERE code LIKE 'D606%'"), words)
	}
}
