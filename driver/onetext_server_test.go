package driver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// oneTextSchema has code that writes orders only by what it is given, or by the name of
// the table that it fires for. No text of it names orders.
const oneTextSchema = textsSchema + `
CREATE SCHEMA oth;
CREATE FUNCTION run_1(q text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN 1; END $$;
CREATE FUNCTION run_sum(s int, q text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN s; END $$;
CREATE PROCEDURE run_proc(q text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; END $$;
CREATE TYPE ty AS (a int); CREATE FUNCTION run_cast(q text) RETURNS ty LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN ROW(1); END $$;
CREATE FUNCTION by_name() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', TG_TABLE_NAME || 'ers'); RETURN NEW; EXCEPTION WHEN undefined_table THEN RETURN NEW; END $$;
CREATE FUNCTION by_argument() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''HIT''', TG_ARGV[0] || TG_ARGV[1]); RETURN NEW; END $$;
CREATE TABLE ord (id int); CREATE TABLE abc (id int); CREATE TRIGGER t AFTER INSERT ON abc FOR EACH ROW EXECUTE FUNCTION by_name();
CREATE TABLE parted (id int) PARTITION BY LIST (id); CREATE TRIGGER t AFTER INSERT ON parted FOR EACH ROW EXECUTE FUNCTION by_name();
CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; RETURN 1; END $$;
CREATE FUNCTION on_event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.writes(); END $$;
CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION on_event(); ALTER EVENT TRIGGER e DISABLE;
`

// anotherWay is a change of the catalog that gives code another name or another place,
// and a statement that then writes orders by it.
type anotherWay struct{ ddl, use string }

var otherWays = map[string]anotherWay{
	"function renamed":          {`ALTER FUNCTION run(text, int) RENAME TO run_x`, `SELECT run_x('UPDATE orders SET v = ''HIT''')`},
	"procedure renamed":         {`ALTER PROCEDURE run_proc(text) RENAME TO run_x`, `CALL run_x('UPDATE orders SET v = ''HIT''')`},
	"function moved":            {`ALTER FUNCTION run(text, int) SET SCHEMA oth`, `SELECT oth.run('UPDATE orders SET v = ''HIT''')`},
	"operator":                  {`CREATE OPERATOR !@# (FUNCTION = run_1, RIGHTARG = text)`, `SELECT !@# 'UPDATE orders SET v = ''HIT'''`},
	"aggregate":                 {`CREATE AGGREGATE run_all(text) (SFUNC = run_sum, STYPE = int, INITCOND = 0)`, `SELECT run_all('UPDATE orders SET v = ''HIT''')`},
	"cast":                      {`CREATE CAST (text AS ty) WITH FUNCTION run_cast(text)`, `SELECT ('UPDATE orders SET v = ''HIT'''::text)::ty`},
	"trigger by its table":      {`CREATE TRIGGER t AFTER INSERT ON ord FOR EACH ROW EXECUTE FUNCTION by_name()`, `INSERT INTO ord VALUES (1)`},
	"trigger by its arguments":  {`CREATE TRIGGER t AFTER INSERT ON plain FOR EACH ROW EXECUTE FUNCTION by_argument('ord', 'ers')`, `INSERT INTO plain VALUES (1)`},
	"table renamed":             {`DROP TABLE ord; ALTER TABLE abc RENAME TO ord`, `INSERT INTO ord VALUES (1)`},
	"partition":                 {`DROP TABLE ord; CREATE TABLE ord PARTITION OF parted DEFAULT`, `INSERT INTO parted VALUES (1)`},
	"partition attached":        {`ALTER TABLE parted ATTACH PARTITION ord DEFAULT`, `INSERT INTO parted VALUES (1)`},
	"event trigger enabled":     {`ALTER EVENT TRIGGER e ENABLE`, `CREATE TABLE zz (a int)`},
	"event trigger, by a query": {`ALTER EVENT TRIGGER e ENABLE`, `SELECT 1 AS a INTO zz`},
}

// perform makes statements of PL/pgSQL of a text's.
func perform(text string) string {
	if strings.HasPrefix(text, "SELECT 1 AS a INTO") {
		return "CREATE TABLE zz (a int)"
	}
	if strings.HasPrefix(text, "SELECT") {
		return "PERFORM" + strings.TrimPrefix(text, "SELECT")
	}
	return text
}

// oneText are the ways to have both in one text or in one transaction.
var oneText = map[string]func(w anotherWay) []string{
	"one text":            func(w anotherWay) []string { return []string{w.ddl + "; " + w.use} },
	"separate statements": func(w anotherWay) []string { return []string{w.ddl, w.use} },
	"DO": func(w anotherWay) []string {
		return []string{"DO $do$ BEGIN " + w.ddl + "; " + perform(w.use) + "; END $do$"}
	},
	"a function's body": func(w anotherWay) []string {
		return []string{"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $do$ BEGIN " + w.ddl + "; " + perform(w.use) + "; END $do$; SELECT f()"}
	},
}

// What a text's own changes of the catalog give another name, or bind to something, isn't
// used by the same text, nor by what follows.
func TestOneText(t *testing.T) {
	for name, way := range otherWays {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t)
			run(t, dsn, oneTextSchema)
			plain, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer plain.Close(context.Background())
			state := func(q interface {
				QueryRow(context.Context, string, ...any) pgx.Row
			}) (s string) {
				require.NoError(t, q.QueryRow(t.Context(), `SELECT string_agg(o::text, ',') FROM orders o`).Scan(&s))
				return s
			}
			db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			ctx := tokenctx.With(t.Context(), 10)
			for form, texts := range oneText {
				tx, err := plain.Begin(t.Context())
				require.NoError(t, err)
				for _, text := range texts(way) {
					_, err = tx.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol)
					require.NoError(t, err, form)
				}
				require.NotEqual(t, "(1,new,9)", state(tx), "the bypass is real: %s", form)
				require.NoError(t, tx.Rollback(t.Context()))

				held, err := db.BeginTx(ctx, nil)
				require.NoError(t, err)
				for _, text := range texts(way) {
					if _, err = held.ExecContext(ctx, text); err != nil {
						break
					}
				}
				require.ErrorIs(t, err, rewrite.ErrRefused, form)
				require.NoError(t, held.Rollback())
				if form != "separate statements" { // what can be made would stay
					_, err = db.ExecContext(ctx, texts(way)[0])
					require.ErrorIs(t, err, rewrite.ErrRefused, form)
				}
			}
			require.Equal(t, "(1,new,9)", state(plain))
			for _, text := range oneText["separate statements"](way) {
				if _, err = db.ExecContext(ctx, text); err != nil {
					break
				}
			}
			require.ErrorIs(t, err, rewrite.ErrRefused)
			require.Equal(t, "(1,new,9)", state(plain))
		})
	}
}

// migrationTexts are what migrations send as one text each. They go on working in a
// database that has such code.
var migrationTexts = []string{
	`CREATE TABLE a (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), n int CHECK (n > 0)); CREATE INDEX ON a (created_at); INSERT INTO a (n) VALUES (1)`,
	`ALTER TABLE a ADD COLUMN note text; UPDATE a SET note = 'x'; ALTER TABLE a ALTER COLUMN note SET NOT NULL, ADD CONSTRAINT a_note CHECK (note <> ''); COMMENT ON TABLE a IS 'x'`,
	`BEGIN; CREATE TABLE b (id int PRIMARY KEY, a bigint REFERENCES a ON DELETE CASCADE); INSERT INTO b SELECT id, id FROM a; CREATE UNIQUE INDEX b_a ON b (a); COMMIT`,
	`CREATE TYPE mood AS ENUM ('sad', 'happy'); ALTER TABLE b ADD m mood DEFAULT 'sad'; UPDATE b SET m = 'happy'; GRANT SELECT ON b TO PUBLIC`,
	`CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.created_at = now(); RETURN NEW; END $$; CREATE TRIGGER touch BEFORE UPDATE ON a FOR EACH ROW EXECUTE FUNCTION touch(); UPDATE a SET n = 2`,
	`CREATE VIEW over_a AS SELECT id, n FROM a; CREATE SEQUENCE s; SELECT nextval('s'), count(*) FROM over_a`,
	`CREATE TABLE p (id int, d date) PARTITION BY RANGE (id); CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p VALUES (1, now())`,
	`CREATE TABLE p_2 (LIKE p INCLUDING ALL); ALTER TABLE p ATTACH PARTITION p_2 FOR VALUES FROM (10) TO (20); INSERT INTO p SELECT i, now() FROM generate_series(11, 15) i`,
	`ALTER TABLE b RENAME TO c; ALTER TABLE c RENAME COLUMN m TO mm; ALTER INDEX b_a RENAME TO c_a; INSERT INTO a (n, note) SELECT 5, 'y'; UPDATE c SET mm = 'sad'`,
	`CREATE SCHEMA app; CREATE TABLE app.a (LIKE public.a INCLUDING DEFAULTS); INSERT INTO app.a (id, note, created_at) SELECT id, note, now() FROM public.a; DROP TABLE app.a; DROP SCHEMA app`,
	`CREATE EXTENSION IF NOT EXISTS pgcrypto; CREATE TABLE u (id uuid DEFAULT gen_random_uuid()); INSERT INTO u DEFAULT VALUES`,
	`CREATE INDEX ON u (id); DO $$ BEGIN ALTER TABLE u ADD COLUMN n int; UPDATE u SET n = 1; END $$`,
	`DROP VIEW over_a; DROP TABLE c; DROP TYPE mood; DROP TRIGGER touch ON a; DROP FUNCTION touch(); DELETE FROM a`,
}

func TestOneTextOfMigrations(t *testing.T) {
	for name, schema := range map[string]string{"with such code": oneTextSchema, "without": `CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0)`} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t)
			run(t, dsn, schema)
			db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			for _, text := range migrationTexts {
				_, err := db.ExecContext(t.Context(), text)
				require.NoError(t, err, text)
			}
		})
	}
	// a rename, a move and a new extension are no ways while no code is there
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0); CREATE SCHEMA app; CREATE TABLE a (id int); CREATE TYPE pair AS (a int)`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, text := range []string{`ALTER TABLE a SET SCHEMA app; INSERT INTO app.a VALUES (1)`, `ALTER SCHEMA app RENAME TO app_2; UPDATE app_2.a SET id = 2`, `ALTER TYPE pair ADD ATTRIBUTE b int; SELECT ROW(1, 2)::pair`} {
		_, err := db.ExecContext(t.Context(), text)
		require.NoError(t, err, text)
	}
}
