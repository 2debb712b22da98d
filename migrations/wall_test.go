package migrations_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// walled makes a table t with rows 1, written under token 50, and 2, which no
// token has written, puts a wall on it, and has 100 tokens issued.
func walled(t testing.TB, mode, level string) (dsn string, conn *pgx.Conn) {
	t.Helper()
	dsn = localpg.Database(t, prepared(fmt.Sprintf(`CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL DEFAULT '');
		SELECT fencing.register('t', '%s'); INSERT INTO t VALUES (1, 'old', 50), (2, 'old', 0);
		SELECT setval('fencing.write_epoch', 100); SELECT fencing.wall('t', '%s')`, mode, level)))
	return dsn, open(t, dsn)
}

// refusal is a text with what a refusal says: SQLSTATE, trigger and DETAIL.
func refusal(t testing.TB, err error) string {
	t.Helper()
	var pg *pgconn.PgError
	if err == nil {
		return ""
	}
	if !errors.As(err, &pg) || !strings.HasPrefix(pg.Code, "FN") {
		return err.Error()
	}
	var d struct{ Token, Current, Mode, Resource, Relation *string }
	require.NoError(t, json.Unmarshal([]byte(pg.Detail), &d))
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	require.True(t, strings.HasPrefix(pg.Message, "fencing: "), pg.Message)
	require.Contains(t, pg.Message, pg.SchemaName+"."+pg.TableName)
	return strings.Join([]string{pg.Code, pg.ConstraintName, text(d.Token), text(d.Current)}, " ")
}

// inTx runs statements in one transaction.
func inTx(t testing.TB, conn *pgx.Conn, sql string) error {
	t.Helper()
	_, err := conn.Exec(t.Context(), "BEGIN;"+sql+";COMMIT")
	if err != nil {
		exec(t, conn, "ROLLBACK")
	}
	return err
}

// try runs statements in a transaction that it rolls back, and returns the rows
// that they left.
func try(t testing.TB, conn *pgx.Conn, sql string) (rows string, err error) {
	t.Helper()
	defer func() { exec(t, conn, "ROLLBACK") }()
	if _, err := conn.Exec(t.Context(), "BEGIN;"+sql); err != nil {
		return "", err
	}
	return get[string](t, conn, "SELECT coalesce(string_agg(t::text, ' ' ORDER BY id), '') FROM t"), nil
}

const attest = "SET LOCAL fencing.token = '%d';"

// Each kind of statement at each level and in each mode, as any client may send
// it. Row 1 has token 50, 100 is the last issued.
func TestWallStatements(t *testing.T) {
	t.Parallel()
	const merge = "MERGE INTO t USING (VALUES (1)) s(id) ON t.id = s.id WHEN MATCHED THEN "
	const upsert = "INSERT INTO t VALUES (1, 'new', %s) ON CONFLICT (id) DO UPDATE SET v = excluded.v"
	conns := map[string]map[string]*pgx.Conn{"strict": {}, "lease": {}}
	for mode := range conns {
		for _, level := range []string{"off", "report", "enforce", "attested"} {
			_, conns[mode][level] = walled(t, mode, level)
		}
	}
	on := func(trigger, rest string) string { return strings.Replace(rest, " ", " ~fencing_"+trigger+" ", 1) }
	for _, tt := range []struct {
		name, sql     string
		strict, lease string // the refusal at enforce; "" is none
		attested      string // at attested, if it is another
		token         int    // what the setting has at attested
	}{
		{name: "guarded", sql: "UPDATE t SET v = 'new', last_token = 60 WHERE id = 1 AND last_token < 60", token: 60},
		{name: "a row from before", sql: "UPDATE t SET v = 'new', last_token = 1 WHERE id = 2", token: 1},
		{name: "unattested", sql: "UPDATE t SET v = 'new', last_token = 60 WHERE id = 1", attested: on("update", "FN002 60 50")},
		{name: "attested as another", sql: "UPDATE t SET v = 'new', last_token = 60 WHERE id = 1", token: 61, attested: on("update", "FN004 60 50")},
		{name: "equal", sql: "UPDATE t SET v = 'new', last_token = 50 WHERE id = 1", token: 50, strict: on("update", "FN001 50 50")},
		{name: "stale", sql: "UPDATE t SET v = 'new', last_token = 49 WHERE id = 1", token: 49,
			strict: on("update", "FN001 49 50"), lease: on("update", "FN001 49 50")},
		{name: "unguarded", sql: "UPDATE t SET v = 'new' WHERE id = 1", token: 60,
			strict: on("update", "FN001 50 50"), lease: on("update", "FN002 - 50")},
		{name: "unguarded, a row from before", sql: "UPDATE t SET v = 'new' WHERE id = 2", token: 60,
			strict: on("update", "FN001 0 0"), lease: on("update", "FN002 - 0")},
		{name: "forged", sql: "UPDATE t SET v = 'new', last_token = 9223372036854775807 WHERE id = 1",
			strict: on("update", "FN003 9223372036854775807 50"), lease: on("update", "FN003 9223372036854775807 50")},
		{name: "not issued yet", sql: "UPDATE t SET v = 'new', last_token = 101 WHERE id = 1", token: 101,
			strict: on("update", "FN003 101 50"), lease: on("update", "FN003 101 50")},
		{name: "negative", sql: "UPDATE t SET v = 'new', last_token = -60 WHERE id = 1",
			strict: on("update", "FN001 -60 50"), lease: on("update", "FN002 - 50")},
		{name: "negative, the smallest", sql: "UPDATE t SET v = 'new', last_token = -9223372036854775808 WHERE id = 1",
			strict: on("update", "FN001 -9223372036854775808 50"), lease: on("update", "FN002 - 50")},
		{name: "zero", sql: "UPDATE t SET v = 'new', last_token = 0 WHERE id = 2",
			strict: on("update", "FN001 0 0"), lease: on("update", "FN002 0 0")},
		{name: "null", sql: "UPDATE t SET v = 'new', last_token = NULL WHERE id = 1",
			strict: on("update", "FN001 - 50"), lease: on("update", "FN002 - 50")},
		{name: "the row's own token", sql: "UPDATE t SET v = 'new', last_token = last_token WHERE id = 1", token: 60,
			strict: on("update", "FN001 50 50"), attested: on("update", "FN004 50 50")},
		{name: "no row", sql: "UPDATE t SET v = 'new' WHERE id = 9"},

		{name: "insert", sql: "INSERT INTO t VALUES (3, 'new', 60)", token: 60},
		{name: "insert attested as another", sql: "INSERT INTO t VALUES (3, 'new', 60)", token: 7, attested: on("insert", "FN004 60 -")},
		{name: "insert unattested", sql: "INSERT INTO t VALUES (3, 'new', 60)", attested: on("insert", "FN002 60 -")},
		{name: "insert without", sql: "INSERT INTO t VALUES (3, 'new')", token: 60, strict: on("insert", "FN002 0 -"), lease: on("insert", "FN002 0 -")},
		{name: "insert negative", sql: "INSERT INTO t VALUES (3, 'new', -1)", strict: on("insert", "FN002 -1 -"), lease: on("insert", "FN002 -1 -")},
		{name: "insert null", sql: "INSERT INTO t VALUES (3, 'new', NULL)", strict: on("insert", "FN002 - -"), lease: on("insert", "FN002 - -")},
		{name: "insert forged", sql: "INSERT INTO t VALUES (3, 'new', 9223372036854775807)",
			strict: on("insert", "FN003 9223372036854775807 -"), lease: on("insert", "FN003 9223372036854775807 -")},

		{name: "upsert", sql: fmt.Sprintf(upsert, "60") + ", last_token = excluded.last_token", token: 60},
		{name: "upsert, stale", sql: fmt.Sprintf(upsert, "40") + ", last_token = excluded.last_token", token: 40,
			strict: on("update", "FN001 40 50"), lease: on("update", "FN001 40 50")},
		{name: "upsert, unguarded arm", sql: fmt.Sprintf(upsert, "60"), token: 60,
			strict: on("update", "FN001 50 50"), lease: on("update", "FN002 - 50")},
		{name: "upsert without", sql: fmt.Sprintf(upsert, "DEFAULT"), strict: on("insert", "FN002 0 -"), lease: on("insert", "FN002 0 -")},

		{name: "merge", sql: merge + "UPDATE SET v = 'new', last_token = 60", token: 60},
		{name: "merge, stale", sql: merge + "UPDATE SET v = 'new', last_token = 40", token: 40,
			strict: on("update", "FN001 40 50"), lease: on("update", "FN001 40 50")},
		{name: "merge, unguarded", sql: merge + "UPDATE SET v = 'new'",
			strict: on("update", "FN001 50 50"), lease: on("update", "FN002 - 50")},
		{name: "merge, delete", sql: merge + "DELETE", strict: on("delete", "FN002 - 50"), lease: on("delete", "FN002 - 50")},
		{name: "merge, delete, set", sql: fmt.Sprintf(attest, 60) + merge + "DELETE"},

		{name: "delete", sql: fmt.Sprintf(attest, 60) + "DELETE FROM t WHERE id = 1"},
		{name: "delete, a row from before", sql: fmt.Sprintf(attest, 1) + "DELETE FROM t WHERE id = 2"},
		{name: "delete, equal", sql: fmt.Sprintf(attest, 50) + "DELETE FROM t WHERE id = 1", strict: on("delete", "FN001 50 50")},
		{name: "delete, stale", sql: fmt.Sprintf(attest, 49) + "DELETE FROM t WHERE id = 1",
			strict: on("delete", "FN001 49 50"), lease: on("delete", "FN001 49 50")},
		{name: "delete, forged", sql: fmt.Sprintf(attest, 101) + "DELETE FROM t WHERE id = 1",
			strict: on("delete", "FN003 101 50"), lease: on("delete", "FN003 101 50")},
		{name: "delete without", sql: "DELETE FROM t WHERE id = 1", strict: on("delete", "FN002 - 50"), lease: on("delete", "FN002 - 50")},
		{name: "delete, empty", sql: "SET LOCAL fencing.token = ''; DELETE FROM t WHERE id = 1", strict: on("delete", "FN002 - 50"),
			lease: on("delete", "FN002 - 50")},
		{name: "delete, no number", sql: "SET LOCAL fencing.token = '6x'; DELETE FROM t WHERE id = 1",
			strict: on("delete", "FN004 - 50"), lease: on("delete", "FN004 - 50")},
		{name: "delete, no bigint", sql: "SET LOCAL fencing.token = '9999999999999999999'; DELETE FROM t WHERE id = 1",
			strict: on("delete", "FN004 - 50"), lease: on("delete", "FN004 - 50")},
		{name: "truncate", sql: fmt.Sprintf(attest, 60) + "TRUNCATE t", strict: on("truncate", "FN004 - -"), lease: on("truncate", "FN004 - -")},
		{name: "copy", sql: "INSERT INTO t SELECT 3, 'new', 0", strict: on("insert", "FN002 0 -"), lease: on("insert", "FN002 0 -")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for mode, want := range map[string]string{"strict": tt.strict, "lease": tt.lease} {
				_, err := try(t, conns[mode]["enforce"], tt.sql)
				require.Equal(t, want, refusal(t, err), mode)

				sql := tt.sql
				if tt.token > 0 {
					sql = fmt.Sprintf(attest, tt.token) + sql
				}
				if tt.attested != "" && want == "" {
					want = tt.attested
				}
				_, err = try(t, conns[mode]["attested"], sql)
				require.Equal(t, want, refusal(t, err), mode+", attested")

				// as without a wall, but for a negative token
				off, errOff := try(t, conns[mode]["off"], tt.sql)
				got, err := try(t, conns[mode]["report"], tt.sql)
				if strings.HasSuffix(tt.name, "null") {
					requireRefused(t, errOff, "23502")
					requireRefused(t, err, "23502")
					continue
				}
				require.NoError(t, errOff)
				require.NoError(t, err)
				if mode == "lease" && strings.HasPrefix(tt.name, "negative") {
					off = "(1,new,50) (2,old,0)"
				}
				require.Equal(t, off, got, mode+", report")
			}
		})
	}
}

// What an error says besides the SQLSTATE, also of a write to a partition.
func TestWallErrorFields(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE SCHEMA app; CREATE TABLE app."Order" (id int PRIMARY KEY) PARTITION BY RANGE (id);
		CREATE TABLE app.part PARTITION OF app."Order" FOR VALUES FROM (0) TO (9);
		SELECT fencing.register('app."Order"', 'lease', 'fence', 'orders/EU'); SELECT setval('fencing.write_epoch', 9);
		SELECT fencing.wall('app."Order"'); INSERT INTO app."Order" VALUES (1, 5)`)
	_, err := conn.Exec(t.Context(), `UPDATE app.part SET fence = 4`)
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "FN001", pg.Code)
	require.Equal(t, []string{"app", "Order", "fence", "~fencing_update"}, []string{pg.SchemaName, pg.TableName, pg.ColumnName, pg.ConstraintName})
	require.JSONEq(t, `{"token": "4", "current": "5", "mode": "lease", "resource": "orders/EU", "operation": "UPDATE", "relation": "app.part"}`, pg.Detail)
	require.Equal(t, `fencing: stale token 4 on UPDATE of app."Order", where 5 has written: stop working on it, another has taken the lock`, pg.Message)

	_, err = conn.Exec(t.Context(), `DELETE FROM app."Order"`)
	require.ErrorContains(t, err, `DELETE from app."Order" without a token: put it into the setting 'fencing.token_orders$2f$45$55' of the transaction first`)
	require.NoError(t, inTx(t, conn, `SELECT set_config('fencing.token_orders$2f$45$55', '5', true); DELETE FROM app."Order"`))
}

// The server and Go agree on the name of a resource's setting.
func TestSettingNames(t *testing.T) {
	conn := open(t, localpg.Database(t, installed))
	require.Equal(t, "fencing.token", get[string](t, conn, "SELECT fencing.setting_name(NULL)"))
	check := func(resource string) {
		require.Equal(t, rewrite.SettingName(resource), get[string](t, conn, "SELECT fencing.setting_name($1)", resource), "%q", resource)
	}
	for _, r := range []string{"", "orders", "Orders", "orders/EU", "é", "日本", "a'b", `a\b`, "\n", "$m", "{}", strings.Repeat("r", 57),
		strings.Repeat("r", 58), strings.Repeat("/", 19), strings.Repeat("é", 5000)} {
		check(r)
	}
	bytes := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 80), func(b []byte) string { return string(b) })
	any := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9_]{50,64}`),
		bytes).Filter(func(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") })
	rapid.Check(t, func(rt *rapid.T) { check(any.Draw(rt, "resource")) })
}

func TestWallRefuses(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE orders (id int); CREATE TABLE plain (id int); CREATE VIEW v AS SELECT 1 AS id; SELECT fencing.register('orders', 'lease');
		CREATE TABLE renamed (id int); SELECT fencing.register('renamed', 'lease'); ALTER TABLE renamed RENAME last_token TO lt;
		CREATE TABLE loose (id int); SELECT fencing.register('loose', 'lease'); ALTER TABLE loose ALTER last_token DROP NOT NULL`)
	before := generation(t, conn)
	for _, tt := range []struct {
		args, state string
		words       []string
	}{
		{"'orders', 'loud'", "22023", []string{"unknown level 'loud' for the wall of public.orders", "'attested'"}},
		{"'orders', NULL", "22023", []string{"no level given for the wall of public.orders"}},
		{"'plain', 'off'", "55000", []string{"public.plain is not registered", "fencing.register('public.plain', ...)"}},
		{"'plain'", "55000", []string{"public.plain is not registered"}},
		{"'v'", "42809", []string{"public.v is a view"}},
		{"NULL", "42P01", []string{"no table given"}},
		{"987654321", "42P01", []string{"no table given"}},
		{"'renamed'", "42703", []string{"public.renamed has no column last_token", "its name back"}},
		{"'loose'", "42804", []string{"token column last_token of public.loose is nullable"}},
	} {
		_, err := conn.Exec(t.Context(), "SELECT fencing.wall("+tt.args+")")
		requireHint(t, err, tt.state, tt.words...)
	}
	require.Equal(t, before, generation(t, conn))
	requireRefused(t, migrations.Wall(t.Context(), dsn, "plain", migrations.WallOff), "55000",
		"set the wall of plain: fencing: public.plain is not registered: Register it first")
	requireRefused(t, migrations.Wall(t.Context(), dsn, "missing", migrations.WallOff), "42P01", "set the wall of missing: ", "correct the name")
	for _, tt := range []struct {
		table string
		level migrations.WallLevel
		words string
	}{
		{"orders", "", "set the wall of orders: no level given: choose migrations.WallOff"},
		{"orders", "Off", `set the wall of orders: unknown level "Off"`},
		{"", migrations.WallOff, "set the wall of: a table without a name"},
	} {
		require.ErrorContains(t, migrations.Wall(t.Context(), "host=/nonexistent", tt.table, tt.level), tt.words)
	}
	exec(t, conn, "DROP FUNCTION fencing.wall")
	err := migrations.Wall(t.Context(), dsn, "orders", migrations.WallEnforce)
	require.ErrorIs(t, err, migrations.ErrNotInstalled)
	requireRefused(t, err, "42883", "set the wall of orders: schema fencing is not installed as this program needs it: run migrations.Up")
}

// fencing.wall mends triggers that bear the right name and function and look at
// another column, or under another condition.
func TestWallMendsDefinitions(t *testing.T) {
	const triggers = `SELECT array_agg(pg_get_triggerdef(oid) || tgenabled::text ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 't'::regclass`
	for _, mode := range []string{"strict", "lease"} {
		_, conn := walled(t, mode, "enforce")
		want := get[[]string](t, conn, triggers)
		for name, event := range map[string]string{
			"!fencing_mark": "BEFORE UPDATE OF v", "~fencing_late": "AFTER UPDATE WHEN (NEW.last_token < 0)", "~fencing_late_insert": "AFTER INSERT WHEN (false)",
			"~fencing_update": "BEFORE UPDATE OF v", "~fencing_delete": "BEFORE DELETE WHEN (OLD.id = 7)",
		} {
			event, cond, _ := strings.Cut(event, "WHEN")
			if cond != "" {
				cond = "WHEN" + cond
			}
			exec(t, conn, fmt.Sprintf(`DO $$ DECLARE f text := (SELECT tgfoid::regproc FROM pg_trigger WHERE tgrelid = 't'::regclass AND tgname = '%[1]s');
				BEGIN EXECUTE format('CREATE OR REPLACE TRIGGER "%[1]s" %[2]s ON t FOR EACH ROW %[3]s EXECUTE FUNCTION %%s(''enforce'')', f); END $$`, name, event, cond))
			require.NotEqual(t, want, get[[]string](t, conn, triggers), name)
			exec(t, conn, "SELECT fencing.wall('t')")
			require.Equal(t, want, get[[]string](t, conn, triggers), name)
		}
		ids := get[string](t, conn, `SELECT string_agg(xmin::text, ' ' ORDER BY oid) FROM pg_trigger WHERE tgrelid = 't'::regclass`)
		exec(t, conn, "SET quote_all_identifiers = on; SELECT fencing.wall('t')")
		require.Equal(t, ids, get[string](t, conn, `SELECT string_agg(xmin::text, ' ' ORDER BY oid) FROM pg_trigger WHERE tgrelid = 't'::regclass`), "right already")
		exec(t, conn,
			"RESET quote_all_identifiers; ALTER TABLE t RENAME last_token TO was; ALTER TABLE t ADD last_token bigint NOT NULL DEFAULT 0; SELECT fencing.confirm_columns('t', 'token'), fencing.wall('t')")
		require.Equal(t, want, get[[]string](t, conn, triggers), "the column has another number")
	}
}
