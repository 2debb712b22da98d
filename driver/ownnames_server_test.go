package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// resettingSchema has code that takes the setting away by which the schema fencing
// knows a session of the driver.
const resettingSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0, last_token bigint NOT NULL DEFAULT 0);
CREATE TABLE log (id int);
CREATE FUNCTION set_tenant(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', t, false); END $$;
CREATE FUNCTION reset_all() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RESET ALL; RETURN 1; END $$;
CREATE FUNCTION reset_one() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RESET fencing.session; END $$;
CREATE FUNCTION set_any(name text, value text) RETURNS text LANGUAGE sql AS 'SELECT set_config($1, $2, false)';
CREATE PROCEDURE run_reset(what text) LANGUAGE plpgsql AS $$ BEGIN IF what = 'ALL' THEN RESET ALL; END IF; END $$;
CREATE TABLE login (what text);
CREATE FUNCTION on_login() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.what = 'ALL' THEN RESET ALL; END IF; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON login FOR EACH ROW EXECUTE FUNCTION on_login();
`

// resets are who takes the setting away.
var resets = map[string]struct {
	text   string
	args   []any
	option stdlib.OptionOpenDB
}{
	"nobody":                      {},
	"a function, RESET ALL":       {text: `SELECT reset_all()`},
	"a function, RESET":           {text: `SELECT reset_one()`},
	"a function, set_config":      {text: `SELECT set_any($1, $2)`, args: []any{"fencing.session", ""}},
	"a function, another setting": {text: `SELECT set_any($1, $2)`, args: []any{"fencing.session", "mine"}},
	"a procedure":                 {text: `CALL run_reset('ALL')`},
	"a trigger":                   {text: `INSERT INTO login VALUES ('ALL')`},
	"a hook of the pool": {option: stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `DISCARD ALL`)
		return err
	})},
	"a rollback": {text: `ROLLBACK`, option: stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `BEGIN`)
		return err
	})},
}

// ownTables are the tables of the schema fencing, with an UPDATE for each.
var ownTables = map[string]string{
	"registry": "SET driver_level = 'off'", "generation": "SET value = value + 1", "incarnation": "SET tli = tli + 1", "tombstone": "SET token = 0",
	"repairs": "SET reason = ''", "allowed_function": "SET reason = ''", "lease": "SET token = 0", "epoch": "SET token = 0",
}

// ownUses are statements on one of them by a bare name.
var ownUses = map[string]string{
	"UPDATE":          `UPDATE %[1]s %[2]s`,
	"UPDATE ONLY":     `UPDATE ONLY %[1]s AS x %[2]s`,
	"quoted":          `UPDATE "%[1]s" %[2]s`,
	"upper case":      `update %[3]s %[2]s`,
	"DELETE":          `DELETE FROM %[1]s`,
	"INSERT":          `INSERT INTO %[1]s SELECT * FROM %[1]s WHERE false`,
	"upsert":          `INSERT INTO %[1]s SELECT * FROM %[1]s ON CONFLICT DO NOTHING`,
	"MERGE":           `MERGE INTO %[1]s USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE`,
	"TRUNCATE":        `TRUNCATE %[1]s`,
	"TRUNCATE of two": `TRUNCATE log, %[1]s`,
	"WITH":            `WITH x AS (DELETE FROM %[1]s RETURNING 1) SELECT count(*) FROM x`,
	"a reset beside":  `WITH x AS (DELETE FROM %[1]s RETURNING 1) SELECT public.reset_all()`,
	"EXPLAIN":         `EXPLAIN ANALYZE UPDATE %[1]s %[2]s`,
	"COPY":            `COPY (DELETE FROM %[1]s RETURNING 1) TO STDOUT`,
	"ALTER TABLE":     `ALTER TABLE %[1]s DISABLE TRIGGER ALL`,
	"GRANT":           `GRANT ALL ON %[1]s TO PUBLIC`,
	"a trigger":       `CREATE TRIGGER mine BEFORE UPDATE ON %[1]s FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
	"a rule":          `CREATE RULE mine AS ON UPDATE TO %[1]s DO INSTEAD NOTHING`,
	"a rule's action": `CREATE RULE mine AS ON INSERT TO public.log DO ALSO UPDATE %[1]s %[2]s`,
	"a view":          `CREATE VIEW public.mine AS SELECT * FROM %[1]s`,
	"a child":         `CREATE TABLE public.mine () INHERITS (%[1]s)`,
	"DROP":            `DROP TABLE %[1]s CASCADE`,
	"DO":              `DO $$ BEGIN UPDATE %[1]s %[2]s; END $$`,
	"DO, a list":      `DO $$ BEGIN TRUNCATE public.log, %[1]s; END $$`,
}

// ownCalls are calls that change what the driver goes by.
var ownCalls = map[string]string{
	"level":      `SELECT driver_level('orders', 'off')`,
	"unregister": `SELECT unregister('orders')`,
	"register":   `SELECT register('log', 'lease')`,
	"rewriting":  `SELECT driver_rewrite('orders', true)`,
	"in FROM":    `SELECT * FROM driver_level('orders', 'off')`,
	"the wall":   `SELECT wall('orders', 'off')`,
	"in a write": `INSERT INTO public.log SELECT 1 FROM unregister('orders')`,
	"DO":         `DO $$ BEGIN PERFORM unregister('orders'); END $$`,
	"dropped":    `DROP FUNCTION unregister`,
	"replaced":   `CREATE OR REPLACE FUNCTION lease_ttl(ttl interval) RETURNS interval LANGUAGE sql AS 'SELECT ttl'`,
}

// openReset opens a handle of one connection on which somebody has taken the
// setting away and led the search path into the schema fencing.
func openReset(t *testing.T, dsn, who string) *sql.DB {
	change := resets[who]
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	var options []driver.Option
	if change.option != nil {
		options = append(options, driver.WithPgx(change.option))
	}
	connector, err := driver.NewConnector(*config, options...)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if change.text != "" {
		_, err = db.Exec(change.text, change.args...)
		require.NoError(t, err)
	}
	return db
}

// Nothing of the schema fencing is changed by a bare name, whoever has taken away
// the setting that tells its triggers of the driver's sessions.
func TestOwnNames(t *testing.T) {
	statements := make(map[string]string)
	for table, set := range ownTables {
		for use, text := range ownUses {
			statements[table+", "+use] = fmt.Sprintf(text, table, set, strings.ToUpper(table))
		}
	}
	for call, text := range ownCalls {
		statements["a call, "+call] = text
	}
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, resettingSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	for name, text := range statements { // the bypass is real
		if strings.HasPrefix(text, "COPY") {
			continue
		}
		_, err := plain.Exec(t.Context(), `BEGIN; SELECT set_config('fencing.session', 'driver', false); SELECT public.reset_all(); SELECT public.set_tenant('fencing, public')`)
		require.NoError(t, err)
		_, err = plain.Exec(t.Context(), text)
		if !strings.HasPrefix(text, "CREATE OR REPLACE") && !strings.HasSuffix(name, "TRUNCATE of two") {
			require.NoError(t, err, name)
		}
		_, err = plain.Exec(t.Context(), `ROLLBACK`)
		require.NoError(t, err)
	}
	for who := range resets {
		t.Run(who, func(t *testing.T) {
			db := openReset(t, dsn, who)
			before := ownState(t, dsn)
			for name, text := range statements {
				conn, err := db.Conn(t.Context())
				require.NoError(t, err)
				_, err = conn.ExecContext(t.Context(), `SELECT public.set_tenant('fencing, public')`)
				require.NoError(t, err)
				_, err = conn.ExecContext(t.Context(), text)
				require.ErrorIs(t, err, rewrite.ErrRefused, name)
				require.True(t, driver.NotApplied(err))
				require.NoError(t, conn.Close())
			}
			require.Equal(t, before, ownState(t, dsn))
		})
	}
}

// Every relation and function of the schema fencing is known by its name.
func TestOwnNamesAreAll(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, resettingSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	db := openReset(t, dsn, "nobody")
	rows, err := db.Query(`
		SELECT format('DROP FUNCTION %I', proname) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace
		UNION SELECT format('SELECT * FROM %I()', proname) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace AND provolatile = 'v' AND prorettype <> 'trigger'::regtype
		                AND proname NOT IN ('next_token', 'take', 'renew', 'release', 'doctor', 'doctor_seal', 'fail', 'seal_fail', 'check_tokens', 'is_own_write', 'incarnation_now', 'lease_wait')
		UNION SELECT format('ALTER TABLE %I RENAME TO mine', relname) FROM pg_class WHERE relnamespace = 'fencing'::regnamespace AND relkind IN ('r', 'p', 'S') AND relname NOT LIKE 'goose%'`)
	require.NoError(t, err)
	var texts []string
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		texts = append(texts, text)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(texts), 70)
	_, err = db.Exec(`SELECT public.set_tenant('fencing, public')`)
	require.NoError(t, err)
	for _, text := range texts {
		_, err := db.Exec(text)
		require.ErrorIs(t, err, rewrite.ErrRefused, text)
	}
}

// ownState is what the tables of the schema fencing have.
func ownState(t *testing.T, dsn string) (out map[string]string) {
	out = make(map[string]string)
	fencetest.With(t, dsn, func(conn *pgx.Conn) {
		for table := range ownTables {
			var rows string
			require.NoError(t, conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(x::text, ' ' ORDER BY x::text), '') FROM fencing.`+table+` x`).Scan(&rows))
			out[table] = rows
		}
		var sequence, functions string
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT concat(last_value, is_called), (SELECT md5(string_agg(prosrc, '' ORDER BY oid)) FROM pg_proc WHERE pronamespace = 'fencing'::regnamespace) FROM fencing.write_epoch`).Scan(&sequence, &functions))
		out["write_epoch"], out["functions"] = sequence, functions
	})
	return out
}

// Code in the database that writes the schema fencing isn't run through the driver,
// whatever it does with the setting first.
func TestCodeThatWritesOwn(t *testing.T) {
	const body = ` LANGUAGE plpgsql AS $$ BEGIN RESET ALL; `
	for name, c := range map[string]struct {
		made, use string
	}{
		"a table":            {`CREATE FUNCTION f() RETURNS void` + body + `UPDATE fencing.registry SET driver_level = 'off'; END $$`, `SELECT f()`},
		"a procedure":        {`CREATE PROCEDURE f()` + body + `UPDATE fencing.registry SET driver_level = 'off'; END $$`, `CALL f()`},
		"quoted":             {`CREATE FUNCTION f() RETURNS void` + body + `DELETE FROM "fencing"."lease"; END $$`, `SELECT f()`},
		"a string":           {`CREATE FUNCTION f() RETURNS void` + body + `EXECUTE 'TRUNCATE fencing.generation'; END $$`, `SELECT f()`},
		"pieces":             {`CREATE FUNCTION f() RETURNS void` + body + `EXECUTE 'UPDATE ' || quote_ident('fencing') || '.' || 'registry SET driver_level = ''off'''; END $$`, `SELECT f()`},
		"format":             {`CREATE FUNCTION f() RETURNS void` + body + `EXECUTE format('UPDATE %I.%I SET driver_level = %L', 'fencing', 'registry', 'off'); END $$`, `SELECT f()`},
		"a function's":       {`CREATE FUNCTION f() RETURNS void` + body + `PERFORM fencing.unregister('orders'); END $$`, `SELECT f()`},
		"its own path":       {`CREATE FUNCTION f() RETURNS void` + body + `SET search_path = fencing, public; UPDATE registry SET driver_level = 'off'; END $$`, `SELECT f()`},
		"its own path, call": {`CREATE FUNCTION f() RETURNS void` + body + `PERFORM set_config('search_path', 'fencing, public', true); PERFORM driver_level('orders', 'off'); END $$`, `SELECT f()`},
		"the function's path": {
			`CREATE FUNCTION f() RETURNS void SET search_path = fencing, public LANGUAGE plpgsql AS $$ BEGIN RESET fencing.session; UPDATE registry SET driver_level = 'off'; END $$`,
			`SELECT f()`,
		},
		"the function's mark": {`CREATE FUNCTION f() RETURNS void SET fencing.session = 'none' LANGUAGE plpgsql AS $$ BEGIN UPDATE fencing.registry SET driver_level = 'off'; END $$`, `SELECT f()`},
		"SQL":                 {`CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT set_config('fencing.session', '', false); UPDATE fencing.registry SET driver_level = 'off' $$`, `SELECT f()`},
		"what another calls": {
			`CREATE FUNCTION g() RETURNS void` + body + `DELETE FROM fencing.registry; END $$; CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM g(); END $$`,
			`SELECT f()`,
		},
		"a trigger": {
			`CREATE FUNCTION f() RETURNS trigger` + body + `DELETE FROM fencing.registry; RETURN NEW; END $$; CREATE TRIGGER t BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION f()`,
			`INSERT INTO log VALUES (1)`,
		},
		"a default": {
			`CREATE FUNCTION f() RETURNS int` + body + `DELETE FROM fencing.registry; RETURN 1; END $$; ALTER TABLE log ADD COLUMN x int DEFAULT f()`,
			`INSERT INTO log (id) VALUES (1)`,
		},
		"the sequence":          {`CREATE FUNCTION f() RETURNS void` + body + `PERFORM setval('fencing.write_epoch', 7); END $$`, `SELECT f()`},
		"the sequence, altered": {`CREATE FUNCTION f() RETURNS void` + body + `ALTER SEQUENCE fencing.write_epoch RESTART WITH 7; END $$`, `SELECT f()`},
		"the sequence, dynamic": {`CREATE FUNCTION f() RETURNS void` + body + `EXECUTE format('ALTER SEQUENCE %I.write_epoch RESTART WITH 7', 'fencing'); END $$`, `SELECT f()`},
		"a function, replaced": {
			`CREATE FUNCTION f() RETURNS void` + body + `CREATE OR REPLACE FUNCTION fencing.next_token() RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint'; END $$`, `SELECT f()`,
		},
		"a function, dropped":   {`CREATE FUNCTION f() RETURNS void` + body + `DROP FUNCTION fencing.next_token(); END $$`, `SELECT f()`},
		"a rule":                {`CREATE RULE r AS ON INSERT TO log DO ALSO DELETE FROM fencing.registry`, `INSERT INTO log VALUES (reset_all())`},
		"a view that it writes": {`CREATE FUNCTION f() RETURNS void` + body + `CREATE TEMP VIEW v AS SELECT * FROM fencing.registry; UPDATE v SET driver_level = 'off'; END $$`, `SELECT f()`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := localpg.Database(t, fencetest.Installed)
			run(t, dsn, resettingSchema)
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
			run(t, dsn, `INSERT INTO fencing.lease SELECT (jsonb_populate_record(NULL::fencing.lease, '{"resource": "r", "token": 1, "holder": "h", "expires_at": "2000-01-01"}')).* ON CONFLICT DO NOTHING`, c.made)
			before := ownState(t, dsn)
			db := openReset(t, dsn, "nobody")
			_, err := db.Exec(c.use)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			require.Equal(t, before, ownState(t, dsn))
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			_, err = plain.Exec(t.Context(), `SELECT set_config('fencing.session', 'driver', false)`)
			require.NoError(t, err)
			_, err = plain.Exec(t.Context(), c.use)
			require.NoError(t, err)
			require.NotEqual(t, before, ownState(t, dsn), "the bypass is real")
		})
	}
}

// Neither is code that takes the schema away.
func TestCodeThatMovesTheSchema(t *testing.T) {
	for _, statement := range []string{`ALTER SCHEMA fencing RENAME TO away`, `DROP SCHEMA fencing CASCADE`, `EXECUTE format('DROP SCHEMA %I CASCADE', 'fencing')`} {
		dsn := localpg.Database(t, fencetest.Installed)
		run(t, dsn, resettingSchema)
		require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
		run(t, dsn, `CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN `+statement+`; END $$`)
		_, err := openReset(t, dsn, "nobody").Exec(`SELECT f()`)
		require.ErrorIs(t, err, rewrite.ErrRefused, statement)
		run(t, dsn, `SELECT 'fencing.registry'::regclass`, `SELECT f()`) // which a plain connection may
	}
}

// Functions that write or call by a bare name what the schema fencing has, too, do
// that to one's own objects only.
func TestCodeWithOwnNames(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, resettingSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	run(t, dsn, `CREATE FUNCTION f1() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE registry SET driver_level = 'off'; END $$`,
		`CREATE FUNCTION f2() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM unregister('orders'); END $$`,
		`CREATE FUNCTION f3() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM public.f1(); END $$`,
		`CREATE PROCEDURE f4() LANGUAGE plpgsql AS $$ BEGIN DELETE FROM generation; END $$`,
		`CREATE FUNCTION "F 5"() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'TRUNCATE generation'; END $$`)
	uses := []string{`SELECT f1()`, `SELECT f2()`, `SELECT public.F3()`, `CALL f4()`, `SELECT "F 5"()`, `INSERT INTO log SELECT 1 FROM f1()`}
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	for _, use := range uses { // the bypass is real
		use = strings.NewReplacer("SELECT f", "SELECT public.f", "CALL f", "CALL public.f", `SELECT "`, `SELECT public."`, "INTO log", "INTO public.log", "FROM f", "FROM public.f").Replace(use)
		_, err := plain.Exec(t.Context(), `BEGIN; SELECT set_config('fencing.session', 'driver', false); SELECT public.reset_all(); SELECT public.set_tenant('fencing, public')`)
		require.NoError(t, err)
		_, err = plain.Exec(t.Context(), use)
		require.NoError(t, err, use)
		_, err = plain.Exec(t.Context(), `ROLLBACK`)
		require.NoError(t, err)
	}
	for who := range resets {
		db := openReset(t, dsn, who)
		before := ownState(t, dsn)
		for _, use := range uses {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), `SELECT public.set_tenant('fencing, public')`)
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), use)
			require.ErrorIs(t, err, rewrite.ErrRefused, "%s: %s", who, use)
			require.NoError(t, conn.Close())
		}
		require.Equal(t, before, ownState(t, dsn), who)
	}
}

// Code that reads the schema fencing, or calls what any session may, runs as before,
// and so does code on tables of one's own that are called like those.
func TestCodeBesideOwn(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, resettingSchema)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	run(t, dsn, `CREATE TABLE public.lease (id int)`,
		`CREATE FUNCTION draw() RETURNS bigint LANGUAGE sql AS 'SELECT fencing.next_token()'`,
		`CREATE FUNCTION noted() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log SELECT count(*) FROM fencing.registry; END $$`,
		`CREATE FUNCTION held() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log SELECT 1 FROM fencing.take('mine', '1 h', 'me'); END $$`,
		`CREATE FUNCTION leased() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO lease VALUES (1); UPDATE public.lease SET id = 2; EXECUTE 'DELETE FROM lease'; END $$`)
	db := openReset(t, dsn, "nobody")
	for _, text := range []string{`SELECT draw()`, `SELECT noted()`, `SELECT held()`, `SELECT leased()`, `INSERT INTO log VALUES (1)`} {
		_, err := db.Exec(text)
		require.NoError(t, err, text)
	}
}

// A session is the driver's again before code runs that is given the name of the
// schema fencing, whoever has taken the setting away.
func TestMarkedBeforeAText(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, resettingSchema, `CREATE FUNCTION run(what text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE what; END $$`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	before := ownState(t, dsn)
	for who := range resets {
		for _, text := range []string{
			`SELECT run($$UPDATE fencing.registry SET driver_level = 'off'$$)`, `SELECT run('DELETE FROM "fencing".registry'::text)`,
			`SELECT run('SELECT ' || 'fencing.' || $$unregister('orders')$$)`,
		} {
			_, err := openReset(t, dsn, who).Exec(text)
			require.Error(t, err, "%s: %s", who, text)
			require.Equal(t, before, ownState(t, dsn), "%s: %s", who, text)
		}
	}
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())
	_, err = plain.Exec(t.Context(), `SELECT set_config('fencing.session', 'driver', false); SELECT reset_all(); SELECT run($$UPDATE fencing.registry SET driver_level = 'off'$$)`)
	require.NoError(t, err)
	require.NotEqual(t, before, ownState(t, dsn), "the bypass is real")
}
