package migrations_test

import (
	"fmt"
	"slices"
	"strings"
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

// writes are writes under token 60 of tables as walled makes them.
var writes = map[string]string{
	"UPDATE": "UPDATE t SET v = 'new', last_token = 60 WHERE id = 1", "INSERT": "INSERT INTO t VALUES (3, 'new', 60)",
	"INSERT of two": "INSERT INTO t VALUES (3, 'new', 60), (4, 'new', 60)",
	"upsert":        "INSERT INTO t VALUES (1, 'new', 60) ON CONFLICT (id) DO UPDATE SET v = excluded.v, last_token = excluded.last_token",
	"merge":         "MERGE INTO t USING (SELECT 3 AS k) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT VALUES (3, 'new', 60)",
}

// writeUnder puts a trigger on t and sends each of the writes, which it takes back after
// a look at what it came to.
func writeUnder(t *testing.T, conn *pgx.Conn, name, body string, look func(op string, err error)) {
	t.Helper()
	exec(t, conn, "BEGIN")
	theirs(t, conn, name, body)
	exec(t, conn, "SAVEPOINT s")
	for op, sql := range writes {
		_, err := conn.Exec(t.Context(), "SET LOCAL fencing.token = '60';"+sql)
		look(op, err)
		exec(t, conn, "ROLLBACK TO s")
	}
	exec(t, conn, "ROLLBACK")
}

// A trigger that changes the token of a write is caught, whatever it is named
// after the wall's first mark, and one that doesn't isn't.
func TestWallAndTriggersThatSetTheToken(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "lease"} {
		for _, level := range []string{"enforce", "attested"} {
			_, conn := walled(t, mode, level)
			exec(t, conn, `CREATE TABLE other (id int); SELECT fencing.register('other', 'lease'); SELECT fencing.wall('other');`+hash)
			for _, name := range []string{"aaa", "zzz", "~fencing_aaa", "~fencing_v", "~zz", "\u2603"} {
				for what, body := range lowering {
					writeUnder(t, conn, name, body, func(op string, err error) {
						if op == "upsert" && name > "~fencing_insert" {
							return // EXCLUDED has what it makes of the row: the doctor's error
						}
						if err == nil {
							// arithmetic on the mark and its end cancels out where the row keeps what was written
							require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM t WHERE v = 'new' AND last_token <> 60"), "%s, %s: %q, %s: %s", mode, level, name, op, what)
						} else {
							require.Regexp(t, "^FN00[1-4] ~fencing_", refusal(t, err), "%s, %s: %q, %s: %s", mode, level, name, op, what)
						}
					})
				}
				for what, body := range untouching {
					if level == "attested" && strings.Contains(what, "nested") {
						body = "PERFORM set_config('fencing.token', '60', true)"
					}
					writeUnder(t, conn, name, body, func(op string, err error) {
						require.NoError(t, err, "%s, %s: %q, %s: %s", mode, level, name, op, what)
						require.NotZero(t, get[int64](t, conn, "SELECT count(*) FROM t WHERE last_token = 60"))
					})
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

// aboutTriggers is the part of the doctor that reads triggers: of hundreds of functions
// the whole of it would take minutes.
const aboutTriggers = "(SELECT fencing.doctor_family() AS f) family, fencing.doctor_triggers(f, '[]')"

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
		return get[[]string](t, conn, "SELECT coalesce(array_agg(severity || ' ' || code ORDER BY code), '{}') FROM "+aboutTriggers+" WHERE code ~ '^D6'")
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
			"IF NEW IS DISTINCT FROM OLD THEN NEW.v := ''; END IF", "DECLARE _new record; BEGIN _new := NEW; _new.\"v\" = ''; RETURN _new; END",
			"DECLARE r record; s record; BEGIN r = NEW; IF TG_OP = 'UPDATE' THEN s := OLD; r.v := s.v; END IF; RETURN r; END",
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
	const touch, row, ofOld, column = "NEW.v := 'x'", "NEW := jsonb_populate_record(NEW, '{}')", "NEW := jsonb_populate_record(OLD, jsonb_build_object('v', NEW.v))", "NEW.last_token := OLD.last_token"
	const sets = "error D606 trigger-sets-token"
	for _, tt := range []struct{ name, mode, trigger, body, want, rename string }{
		{"touch in mode lease", "lease", "keep", touch, "", ""},
		{"touch, early", "lease", "!a", touch, "", ""},
		{"the row of OLD in mode lease", "lease", "keep", ofOld, "", ""},
		{"the row of OLD, returned", "lease", "keep", "RETURN jsonb_populate_record(OLD, jsonb_build_object('v', NEW.v))", "", ""},
		{"the row of NEW in mode lease", "lease", "keep", row, "", ""},
		{"the row, by a name of its own", "lease", "keep", "DECLARE n ALIAS FOR NEW; BEGIN n := jsonb_populate_record(n, '{\"last_token\": 60}'); END", "", ""},
		{"the row, early, by a name of its own", "lease", "!a", "DECLARE n ALIAS FOR NEW; BEGIN n := jsonb_populate_record(n, '{\"last_token\": 60}'); END", sets, "!g_!a"},
		{"the row, early in mode lease", "lease", "!a", ofOld, sets, "!g_!a"},
		{"the row, early in mode strict", "strict", "!a", row, sets, "!g_!a"},
		{"a long name, early", "strict", "!23456789012345678901234567890123456789012345678901234567890123", row, sets, "!g_!23456789012345678901234567890123456789012345678901234567"},
		{"touch, beside the check", "lease", "~fencing_p", touch, "warning D603 trigger-sees-mark", "!g_~fencing_p"},
		{"the row, beside the check", "lease", "~fencing_p", row, "warning D603 trigger-sees-mark", "!g_~fencing_p"},
		{"the column in mode lease", "lease", "keep", column, sets, ""},
		{"the column, early in mode lease", "lease", "!a", column, sets, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn,
				fmt.Sprintf(`CREATE TABLE t (id int PRIMARY KEY, v text); SELECT fencing.register('t', '%s'), fencing.wall('t'); SELECT setval('fencing.write_epoch', 100); INSERT INTO t VALUES (1, '', 50);
				CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN %s; RETURN NEW; END$$; CREATE TRIGGER %q BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION keep()`, tt.mode, tt.body, tt.trigger))
			const sixes = `SELECT coalesce(string_agg(severity || ' ' || code, ', ' ORDER BY code), '') FROM ` + aboutTriggers + ` WHERE code IN ('D603 trigger-sees-mark', 'D606 trigger-sets-token')`
			require.Equal(t, tt.want, get[string](t, conn, sixes))
			remedy := get[string](t, conn, `SELECT coalesce((SELECT remedy FROM `+aboutTriggers+` WHERE code IN ('D603 trigger-sees-mark', 'D606 trigger-sets-token')), '')`)
			if tt.rename == "" {
				require.NotContains(t, remedy, "RENAME")
			} else {
				require.Contains(t, remedy, fmt.Sprintf("RENAME TO %q", tt.rename))
				exec(t, conn, fmt.Sprintf("ALTER TRIGGER %q ON t RENAME TO %q", tt.trigger, tt.rename))
				require.Empty(t, get[string](t, conn, sixes))
			}
			if tt.want == "" || tt.rename != "" {
				_, err := conn.Exec(t.Context(), "UPDATE t SET v = 'stale', last_token = 20")
				require.Contains(t, []string{"FN001", "FN004"}, refusal(t, err)[:5])
			}
			if tt.body == touch {
				exec(t, conn, "UPDATE t SET v = 'new', last_token = 60")
			}
		})
	}
}

// hidden are bodies that change the token, and look as if they did not.
var hidden = map[string]string{
	"a name of its own":           "DECLARE n ALIAS FOR NEW; BEGIN n.last_token := 53; END",
	"a name of its own, the row":  `DECLARE n ALIAS FOR NEW; BEGIN n := jsonb_populate_record(n, '{"last_token": 53}'); END`,
	"after a comment's mark":      "NEW.v := NEW.v || ' -- '; NEW.last_token := 53",
	"between comments' marks":     "NEW.v := NEW.v || '/*'; NEW.last_token := 53; NEW.v := NEW.v || '*/'",
	"after an escaped quote":      `NEW.v := E'\'' || '/*'; NEW.last_token := 53; NEW.v := '*/'`,
	"in a nested comment's rest":  "/* /* */ */ NEW.last_token := 53 /* */",
	"FOR NEW IN":                  "FOR NEW IN SELECT NEW.id, NEW.v, 53::bigint LOOP EXIT; END LOOP",
	"FOR of columns":              "FOR NEW.v, NEW.last_token IN SELECT 'x', 53 LOOP NULL; END LOOP",
	"FOREACH":                     "FOREACH NEW.last_token IN ARRAY ARRAY[53] LOOP NULL; END LOOP",
	"a Unicode escape":            `NEW.U&"last_to\006ben" := 53`,
	"quoted":                      `"new"."last_token" := 53`,
	"by the label":                "theirs.new.last_token := 53",
	"INTO by the label":           "SELECT 53 INTO theirs.new.last_token",
	"INTO, the second":            "SELECT 'x', 53 INTO NEW.v, NEW.last_token",
	"INTO STRICT by the label":    "SELECT 'x', 53 INTO STRICT theirs.new.v, theirs.new.last_token",
	"RETURNING INTO":              "INSERT INTO other VALUES (1, 53) RETURNING last_token INTO NEW.last_token",
	"FETCH":                       "DECLARE c CURSOR FOR SELECT 53; BEGIN OPEN c; FETCH c INTO NEW.last_token; CLOSE c; END",
	"GET DIAGNOSTICS":             "PERFORM generate_series(1, 53); GET DIAGNOSTICS NEW.last_token = ROW_COUNT",
	"GET DIAGNOSTICS, the second": "PERFORM generate_series(1, 53); GET CURRENT DIAGNOSTICS NEW.v = PG_CONTEXT, NEW.last_token := ROW_COUNT",
	"CALL":                        "CALL fifty3(NEW.last_token)",
	"a copy":                      "DECLARE r record; BEGIN r := NEW; r.last_token := 53; RETURN r; END",
	"a copy with =":               "DECLARE r record; BEGIN r = NEW; r.last_token = 53; RETURN r; END",
	"a copy by the label":         "<<l>> DECLARE r record; BEGIN r := NEW; l.r.last_token := 53; RETURN r; END",
	"a copy, the row":             `DECLARE r record; BEGIN r := NEW; r := jsonb_populate_record(NEW, '{"last_token": 53}'); RETURN r; END`,
	"a copy, INTO":                "DECLARE r record; BEGIN r := NEW; SELECT NEW.id, NEW.v, 53::bigint INTO r; RETURN r; END",
	"a copy, FOR":                 "DECLARE r record; BEGIN FOR r IN SELECT NEW.id, NEW.v, 53::bigint LOOP RETURN r; END LOOP; END",
	"a copy in quotes":            `DECLARE "R" record; BEGIN "R" := NEW; "R".last_token := 53; RETURN "R"; END`,
	"a copy of a copy":            "DECLARE r record; s record; BEGIN r := NEW; s := r; s.last_token := 53; RETURN s; END",
	"a copy in another block":     `DECLARE r record; BEGIN r := NEW; DECLARE r record; BEGIN r := jsonb_populate_record(NEW, '{"last_token": 53}'); RETURN r; END; END`,
	"a copy's name of its own":    "DECLARE r record; o ALIAS FOR r; BEGIN r := NEW; o.last_token := 53; RETURN r; END",
	"a variable":                  "DECLARE r t; BEGIN r := NEW; r.last_token := 53; RETURN r; END",
	"a variable called new":       "DECLARE new t; BEGIN new.id := 3; RETURN new; END",
	"OLD":                         "IF TG_OP = 'UPDATE' THEN OLD.v := NEW.v; RETURN OLD; END IF",
	"EXECUTE":                     "EXECUTE 'SELECT 53' INTO NEW.last_token",
	"in a dollar quote's look":    "NEW.v := $a$ /* $a$; NEW.last_token := 53; NEW.v := '*/'",
	"in an ELSE":                  "IF NEW.id = 0 THEN NULL; ELSE NEW.last_token = 53; END IF",
	"a comment in between":        "NEW /* . */ . -- last\n last_token = 53",
}

// ordinary are bodies of triggers as people write them, which leave the token
// alone.
var ordinary = map[string]string{
	"touch":                "NEW.v = now()",
	"two columns":          "NEW.v := lower(NEW.v); NEW.id = NEW.id + 0",
	"a variable":           "DECLARE n int; BEGIN SELECT count(*) INTO n FROM other WHERE id = NEW.id; NEW.v := n::text; END",
	"a loop":               "DECLARE r record; BEGIN FOR r IN SELECT * FROM other WHERE id = NEW.id LOOP NEW.v := r.id; END LOOP; END",
	"by what is done":      "IF TG_OP = 'INSERT' THEN NEW.v := coalesce(NEW.v, 'it''s new'); ELSIF NEW.v IS DISTINCT FROM OLD.v THEN RAISE NOTICE 'changed %', NEW.id; END IF",
	"RETURN of a CASE":     "RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END",
	"RETURN coalesce":      "RETURN coalesce(NEW, OLD)",
	"RETURN OLD":           "IF TG_OP = 'DELETE' THEN RETURN OLD; END IF",
	"a log":                "INSERT INTO other (id) VALUES (NEW.id)",
	"a log of the row":     "PERFORM to_jsonb(NEW), row_to_json(OLD)",
	"compares rows":        "IF NEW IS DISTINCT FROM OLD THEN NEW.v := ''; END IF; IF NEW = OLD THEN RETURN NULL; END IF",
	"a dynamic statement":  "EXECUTE format('INSERT INTO %I SELECT $1', 'other') USING NEW.id",
	"an exception":         "BEGIN NEW.v := 1 / 0; EXCEPTION WHEN division_by_zero THEN NEW.v := ''; END",
	"a regular expression": `NEW.v := regexp_replace(NEW.v, '\d+\s', E'\'', 'g')`,
	"comments":             "-- it's NEW := OLD;\n NEW.v := '' /* NEW.last := 3 */",
	"diagnostics":          "DECLARE n int; BEGIN PERFORM 1 FROM other WHERE id = NEW.id; GET DIAGNOSTICS n = ROW_COUNT; NEW.v := n; END",
}

// A function that changes the token in a way that a search for its text doesn't
// see is found all the same, and one that doesn't isn't.
func TestDoctorReadsTriggerFunctions(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE other (id int, last_token int); SELECT fencing.register('t', 'lease'); SELECT setval('fencing.write_epoch', 100); INSERT INTO t VALUES (1, '', 50);
		CREATE PROCEDURE fifty3(INOUT n bigint) LANGUAGE plpgsql AS 'BEGIN n := 53; END'`)
	const errors = "SELECT coalesce(string_agg(severity || ' ' || code, ', ' ORDER BY code), '') FROM " + aboutTriggers + " WHERE code ~ '^D6'"
	for _, level := range []string{"off", "enforce"} {
		exec(t, conn, "SELECT fencing.wall('t', '"+level+"')")
		for _, name := range []string{"aaa", "!a", "~zz"} {
			for what, body := range hidden {
				exec(t, conn, "BEGIN")
				theirs(t, conn, name, body)
				found := get[string](t, conn, errors)
				_, err := conn.Exec(t.Context(), "UPDATE t SET v = 'stale', last_token = 20 WHERE id = 1; INSERT INTO t VALUES (1, 'x', 20) ON CONFLICT (id) DO UPDATE SET v = 'stale', last_token = EXCLUDED.last_token")
				if err == nil || level == "off" || name != "aaa" {
					require.Contains(t, found, "error D606 trigger-sets-token", "%s: %s: %s", level, name, what)
				} else {
					require.Regexp(t, "^FN00[1-4]", refusal(t, err), "%s: %s: %s", level, name, what)
				}
				exec(t, conn, "ROLLBACK")
			}
			for what, body := range ordinary {
				exec(t, conn, "BEGIN")
				theirs(t, conn, name, body)
				require.NotContains(t, get[string](t, conn, errors), "error", "%s: %s: %s", level, name, what)
				if name == "aaa" {
					require.Empty(t, get[string](t, conn, errors), "%s: %s", level, what)
				}
				exec(t, conn, "ROLLBACK")
			}
		}
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
