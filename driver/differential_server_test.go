package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// environment is a database in which much leads to the protected table orders
// that no statement shows: keys that change unnamed, code that leaves something
// behind, namesakes, comparisons and search paths of others.
const environment = `
CREATE TABLE generated (id int PRIMARY KEY, name text, code text GENERATED ALWAYS AS (upper(name)) STORED UNIQUE);
CREATE TABLE triggered (id int PRIMARY KEY, name text, code text UNIQUE);
CREATE FUNCTION set_code() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.code := upper(NEW.name); RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION set_code();
CREATE TABLE top (id int PRIMARY KEY, name text UNIQUE, note text);
CREATE TABLE middle (id int PRIMARY KEY, base text REFERENCES top (name) ON UPDATE CASCADE, code text GENERATED ALWAYS AS (upper(base)) STORED UNIQUE);
CREATE TABLE dropped (code text PRIMARY KEY, note text);
CREATE TABLE orders (id bigint PRIMARY KEY, v text DEFAULT 'new',
  g text REFERENCES generated (code) ON UPDATE CASCADE, t text REFERENCES triggered (code) ON UPDATE CASCADE ON DELETE SET NULL,
  m text REFERENCES middle (code) ON UPDATE CASCADE, d text DEFAULT 'x' REFERENCES dropped (code) ON DELETE SET DEFAULT, last_token bigint NOT NULL DEFAULT 0);
CREATE VIEW seen AS SELECT id, name FROM generated;
CREATE SCHEMA other; CREATE TABLE other.orders (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0);
CREATE FUNCTION rename_generated(n text) RETURNS void LANGUAGE sql AS 'UPDATE generated SET name = n';
CREATE FUNCTION snapshot() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE IF NOT EXISTS orders AS SELECT * FROM public.orders; END $$;
CREATE FUNCTION shadow() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'CREATE OR REPLACE TEMP VIEW ord'
  'ers AS SELECT * FROM other.orders'; END $$;
CREATE FUNCTION scratch() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TEMP TABLE IF NOT EXISTS scratched (id int); END $$;
CREATE TABLE todo (place int, ddl text);
CREATE FUNCTION make(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE (SELECT ddl FROM todo WHERE place = n); RETURN n; END $$;
CREATE TABLE makes (n int); CREATE FUNCTION make_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM make(NEW.n); RETURN NEW; END $$;
CREATE TRIGGER t AFTER INSERT ON makes FOR EACH ROW EXECUTE FUNCTION make_row();
CREATE VIEW making AS SELECT make(1);
CREATE FUNCTION replaced() RETURNS void LANGUAGE sql AS '';
INSERT INTO todo VALUES (1, 'CREATE OR REPLACE VIEW made AS SELECT * FROM orders'),
  (2, 'CREATE OR REPLACE FUNCTION replaced() RETURNS void LANGUAGE sql AS $f$ UPDATE orders SET v = NULL $f$'),
  (3, 'CREATE TEMP VIEW mine AS SELECT * FROM orders'), (4, 'CREATE CAST (point AS int) WITH FUNCTION int_of(point)');
CREATE FUNCTION int_of(point) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'cast'; RETURN 1; END $$;
CREATE VIEW given AS SELECT query_to_xml('SELECT public.rename_generated(''q'')', true, false, '');
CREATE TABLE targets (name text); INSERT INTO targets VALUES ('orders');
CREATE FUNCTION sweep() RETURNS void LANGUAGE plpgsql AS $$ DECLARE t text; BEGIN FOR t IN SELECT name FROM targets LOOP EXECUTE format('UPDATE %I SET v = ''swept''', t); END LOOP; END $$;
CREATE FUNCTION purge(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('DELETE FROM %I', t); END $$;
CREATE FUNCTION purge_both() RETURNS void LANGUAGE plpgsql AS $$ DECLARE t text := 'orders'; BEGIN PERFORM purge('todo_2'), purge(t); END $$;
CREATE TABLE todo_2 (); CREATE TABLE logged (t text);
CREATE FUNCTION log_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = ''logged''', replace(TG_TABLE_NAME, 'logged', NEW.t)); RETURN NEW; END $$;
CREATE TRIGGER t AFTER INSERT ON logged FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE FUNCTION set_tenant(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.set_config('search_path', t, false); END $$;
CREATE SCHEMA evil;
CREATE FUNCTION evil.both(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR evil.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.both);
CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.both);
CREATE TABLE touched (id bigint PRIMARY KEY, v text, last_token bigint NOT NULL DEFAULT 0);
CREATE FUNCTION keep_token() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.last_token := OLD.last_token; RETURN NEW; END $$;
CREATE TRIGGER keep BEFORE UPDATE ON touched FOR EACH ROW EXECUTE FUNCTION keep_token();
CREATE TABLE copied (LIKE touched INCLUDING ALL); CREATE TABLE swapped (LIKE touched INCLUDING ALL); CREATE TABLE dated (LIKE touched INCLUDING ALL);
CREATE FUNCTION keep_copied() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN r := OLD; r.v := NEW.v; RETURN r; END $$;
CREATE TRIGGER keep BEFORE UPDATE ON copied FOR EACH ROW EXECUTE FUNCTION keep_copied();
CREATE FUNCTION keep_swapped() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN OLD.v := NEW.v; IF NEW IS DISTINCT FROM OLD THEN RETURN OLD; ELSE RETURN NEW; END IF; END $$;
CREATE TRIGGER keep BEFORE UPDATE ON swapped FOR EACH ROW EXECUTE FUNCTION keep_swapped();
CREATE FUNCTION keep_dated() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE _new record; BEGIN _new := NEW; _new."v" = now(); RETURN _new; END $$;
CREATE TRIGGER keep BEFORE INSERT OR UPDATE ON dated FOR EACH ROW EXECUTE FUNCTION keep_dated();
`

// environmentRows puts the rows in place: the token of the statements' holder is
// 7, and of each protected table one row is newer and one older.
const environmentRows = `
DROP VIEW IF EXISTS made; DROP CAST IF EXISTS (point AS int); CREATE OR REPLACE FUNCTION replaced() RETURNS void LANGUAGE sql AS '';
TRUNCATE orders, other.orders, generated, triggered, middle, top, dropped, touched, copied, swapped, dated;
INSERT INTO generated VALUES (1, 'a'), (2, 'b'); INSERT INTO triggered VALUES (1, 'a'), (2, 'b'); INSERT INTO top VALUES (1, 'a'), (2, 'b');
INSERT INTO middle VALUES (1, 'a'), (2, 'b'); INSERT INTO dropped VALUES ('x'), ('y');
INSERT INTO orders VALUES (1, 'new', 'A', 'A', 'A', 'y', 9), (2, 'new', 'B', 'B', 'B', 'y', 3); INSERT INTO other.orders VALUES (1, 'other', 9), (2, 'other', 3);
INSERT INTO touched VALUES (1, 'new', 9), (2, 'new', 3); INSERT INTO copied TABLE touched; INSERT INTO swapped TABLE touched; INSERT INTO dated VALUES (2, 'new', 3);`

// guardedStale is a guarded write of a row that a newer holder has written.
const guardedStale = `UPDATE orders SET v = 'stale', last_token = $1 WHERE id = 1 AND last_token <= $1`

// environmentStatements are what sessions send, harmful and harmless. A "$1" is
// the token.
var environmentStatements = []string{
	guardedStale,
	`UPDATE orders SET v = 'mine', last_token = $1 WHERE id = 2 AND last_token <= $1`,
	`DELETE FROM orders WHERE last_token < $1`,
	`INSERT INTO orders (id, last_token) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET v = 'stale', last_token = $1 WHERE orders.last_token <= $1`,
	`UPDATE orders SET v = 'unguarded'`, `DELETE FROM orders`, `INSERT INTO orders (id, v) VALUES (50, 'unguarded')`, `UPDATE public.orders SET v = 'unguarded'`,
	`UPDATE other.orders SET v = 'free'`, `INSERT INTO other.orders (id) VALUES (77) ON CONFLICT DO NOTHING`,
	`UPDATE generated SET name = 'z'`, `UPDATE generated SET id = 5 WHERE id = 1`, `UPDATE seen SET name = 'z'`, `INSERT INTO generated VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name`,
	`MERGE INTO generated g USING (VALUES (1)) s (id) ON g.id = s.id WHEN MATCHED THEN UPDATE SET name = 'z'`,
	`UPDATE triggered SET name = 'z'`, `UPDATE triggered SET id = id + 10`, `DELETE FROM triggered`, `UPDATE top SET name = 'z' WHERE id = 1`, `UPDATE top SET note = 'z'`, `UPDATE middle SET base = NULL WHERE id = 1`,
	`DELETE FROM dropped WHERE code = 'y'`, `UPDATE dropped SET note = 'z'`,
	`SELECT rename_generated('z')`, `SELECT snapshot()`, `SELECT shadow()`, `SELECT scratch()`,
	`SELECT set_tenant('other, public')`, `SELECT set_tenant('evil, pg_catalog, public')`, `SELECT set_tenant('public')`, `SET search_path = other, public`,
	`SELECT make(1)`, `SELECT make(2)`, `SELECT make(3)`, `SELECT make(4)`, `SELECT point '(1,2)'::integer`, `SELECT * FROM given`, `INSERT INTO makes VALUES (1)`, `SELECT * FROM making`, `UPDATE made SET v = 'unguarded'`, `UPDATE mine SET v = 'unguarded'`, `SELECT replaced()`,
	`UPDATE touched SET v = 'mine', last_token = $1 WHERE last_token <= $1`, `UPDATE copied SET v = 'mine', last_token = $1 WHERE last_token <= $1`, `UPDATE swapped SET v = 'mine', last_token = $1 WHERE last_token <= $1`,
	`INSERT INTO dated VALUES (2, 'mine', $1) ON CONFLICT (id) DO UPDATE SET v = 'mine', last_token = EXCLUDED.last_token WHERE dated.last_token <= EXCLUDED.last_token`,
	`SELECT sweep()`, `SELECT purge('orders')`, `SELECT purge(name) FROM targets`, `SELECT purge('todo_2')`, `SELECT purge_both()`, `INSERT INTO logged VALUES ('orders')`,
	`SELECT * FROM orders`, `SELECT count(*) FROM generated FOR UPDATE`,
}

// environmentState is every protected row, and its token.
func environmentState(ctx context.Context, conn *pgx.Conn) (map[string]string, map[string]int64, error) {
	rows, err := conn.Query(ctx, `SELECT 'orders ' || id, o::text, last_token FROM public.orders o UNION ALL SELECT 'touched ' || id, t::text, last_token FROM public.touched t
		UNION ALL SELECT 'copied ' || id, c::text, last_token FROM public.copied c UNION ALL SELECT 'swapped ' || id, s::text, last_token FROM public.swapped s UNION ALL SELECT 'dated ' || id, d::text, last_token FROM public.dated d`)
	if err != nil {
		return nil, nil, err
	}
	texts, tokens := make(map[string]string), make(map[string]int64)
	var key, text string
	var token int64
	_, err = pgx.ForEachRow(rows, []any{&key, &text, &token}, func() error {
		texts[key], tokens[key] = text, token
		return nil
	})
	return texts, tokens, err
}

// Whatever a session sends in such a database, and in whatever order: no row that
// a newer holder has written changes, no token falls, every row that is written
// carries the holder's, and no stale write passes for one that was written. The
// number of sessions is that of -rapid.checks.
func TestDifferentialEnvironments(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, environment)
	watch, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer watch.Close(context.Background())
	var handles []*sql.DB
	for _, opts := range [][]driver.Option{nil, {driver.WithRewrite()}} {
		db, err := driver.Open(dsn, append(opts, driver.Protect("orders", rewrite.Lease), driver.Protect("touched", rewrite.Lease), driver.Protect("copied", rewrite.Lease), driver.Protect("swapped", rewrite.Lease), driver.Protect("dated", rewrite.Lease), driver.WithGuardedFunctions("make"))...)
		require.NoError(t, err)
		defer db.Close()
		db.SetMaxIdleConns(0) // each session begins anew
		handles = append(handles, db)
	}
	sent, accepted := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		ctx := tokenctx.With(context.Background(), 7)
		if _, err := watch.Exec(ctx, environmentRows); err != nil {
			r.Fatal(err)
		}
		before, tokens, err := environmentState(ctx, watch)
		if err != nil {
			r.Fatal(err)
		}
		session, err := rapid.SampledFrom(handles).Draw(r, "handle").Conn(ctx)
		if err != nil {
			r.Fatal(err)
		}
		defer session.Close()
		var told []string
		statements := rapid.SliceOfN(rapid.SampledFrom(environmentStatements), 1, 4).Draw(r, "statements")
		if rapid.Bool().Draw(r, "transaction") {
			statements = slices.Concat([]string{`BEGIN`}, statements, []string{`COMMIT`})
		}
		for _, s := range statements {
			var args []any
			if strings.Contains(s, "$1") {
				args = append(args, tokenctx.Arg)
			}
			result, err := session.ExecContext(ctx, s, args...)
			if sent++; err == nil {
				accepted++
				if n, _ := result.RowsAffected(); s == guardedStale && n > 0 {
					told = append(told, s)
				}
			}
		}
		after, tokensAfter, err := environmentState(ctx, watch)
		if err != nil {
			r.Fatal(err)
		}
		if what := errors.Join(unharmed(before, after, tokens, tokensAfter), isTold(told, after)); what != nil {
			r.Fatal(what)
		}
	})
	t.Logf("sent %d, accepted %d", sent, accepted)
	require.NotZero(t, accepted)
}

// unharmed says what happened to the protected rows that may not.
func unharmed(before, after map[string]string, tokens, tokensAfter map[string]int64) error {
	for key, text := range before {
		now, there := after[key]
		switch {
		case there && now == text:
		case tokens[key] > 7:
			return fmt.Errorf("%s carried token %d and was changed: %s -> %s", key, tokens[key], text, now)
		case there && tokensAfter[key] != 7:
			return fmt.Errorf("%s was written and carries token %d: %s -> %s", key, tokensAfter[key], text, now)
		}
	}
	for key := range after {
		if _, there := before[key]; !there && tokensAfter[key] != 7 {
			return fmt.Errorf("%s was inserted with token %d", key, tokensAfter[key])
		}
	}
	return nil
}

// isTold says which stale write was told as one that was written, unless its name
// led to the table that isn't protected.
func isTold(told []string, after map[string]string) error {
	if len(told) == 0 {
		return nil
	}
	return fmt.Errorf("told as written: %v, and the row is %s", told, after["orders 1"])
}

// A few dozen sessions are the default.
func init() {
	if flag.Lookup("rapid.checks") != nil {
		_ = flag.Set("rapid.checks", "60")
	}
	if flag.Lookup("rapid.nofailfile") != nil {
		_ = flag.Set("rapid.nofailfile", "true")
	}
}
