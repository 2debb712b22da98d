package driver_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const (
	triggerSchema = `
CREATE EXTENSION hstore;
CREATE TABLE orders (id bigint PRIMARY KEY, code text, n int, last_token bigint NOT NULL DEFAULT 0, updated_at timestamptz, t text);
INSERT INTO orders VALUES (1, 'ABC', 9, 9);
`
	tokenUpdate = `UPDATE orders SET n = 10, last_token = 10 WHERE id = 1 AND last_token <= 10`
	tokenInsert = `INSERT INTO orders (id, n, last_token) VALUES (2, 10, 10)`
	tokenUpsert = `INSERT INTO orders AS o (id, n, last_token) VALUES (1, 10, 10) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, last_token = EXCLUDED.last_token WHERE o.last_token <= EXCLUDED.last_token`
	tokenDelete = `DELETE FROM orders WHERE id = 1 AND last_token <= 10`
	// the token of what was written isn't 10
	tokenHarm = `SELECT NOT EXISTS (SELECT FROM orders WHERE n = 10 AND last_token = 10)`
)

func changing(on, body string) string {
	return `CREATE FUNCTION changes() RETURNS trigger LANGUAGE plpgsql AS $f$ ` + body + ` $f$; CREATE TRIGGER changes BEFORE ` + on + ` FOR EACH ROW EXECUTE FUNCTION changes();`
}

// A table's own trigger that may change the token takes back what a statement
// has proved.
func TestTriggersThatChangeTheToken(t *testing.T) {
	refuses := func(on, body string) bypass {
		return bypass{setup: changing(on, body), refused: []string{tokenUpdate}, harm: tokenHarm, passes: []string{tokenDelete}}
	}
	passes := func(on, body string) bypass {
		return bypass{setup: changing(on, body), passes: []string{tokenUpdate, tokenInsert, tokenUpsert, tokenDelete}}
	}
	const update, both, all = "UPDATE ON orders", "INSERT OR UPDATE ON orders", "INSERT OR UPDATE OR DELETE ON orders"
	checkBypasses(t, triggerSchema, map[string]bypass{
		"the old one":       refuses(update, `BEGIN NEW.last_token := OLD.last_token; RETURN NEW; END`),
		"in quotes, with =": refuses(update, `BEGIN IF true THEN NEW . "last_token" = 5; END IF; RETURN NEW; END`),
		"in a branch":       refuses(update, `BEGIN CASE WHEN false THEN NULL; ELSE NEW.last_token = 5; END CASE; RETURN NEW; END`),
		"by the label":      refuses(update, `<<outside>> BEGIN changes.NEW.last_token := 5; RETURN NEW; END`),
		"INTO":              refuses(update, `BEGIN SELECT 5, 'x' INTO STRICT NEW.last_token, NEW.t; RETURN NEW; END`),
		"INTO, second":      refuses(update, `BEGIN SELECT 'x', 5 INTO NEW.t, NEW.last_token FROM orders LIMIT 1; RETURN NEW; END`),
		"INTO NEW":          refuses(update, `BEGIN SELECT * INTO NEW FROM orders WHERE id = NEW.id; RETURN NEW; END`),
		"EXECUTE INTO":      refuses(update, `BEGIN EXECUTE 'SELECT ($1 #= hstore(''last_token'', ''5'')).*' INTO NEW USING NEW; RETURN NEW; END`),
		"hstore":            refuses(update, `BEGIN NEW := NEW #= hstore('last_token', '5'); RETURN NEW; END`),
		"jsonb":             refuses(update, `BEGIN NEW = jsonb_populate_record(NEW, '{"last_token": 5}'); RETURN NEW; END`),
		"FOR, a list":       refuses(update, `DECLARE x int; BEGIN FOR x, NEW.last_token IN SELECT 1, 5 LOOP END LOOP; RETURN NEW; END`),
		"FOR, a labelled":   refuses(update, `<<l>> DECLARE x int; BEGIN FOR l.x, NEW.last_token IN SELECT 1, 5 LOOP END LOOP; RETURN NEW; END`),
		"FOR":               refuses(update, `BEGIN FOR NEW.last_token IN SELECT 5 LOOP END LOOP; RETURN NEW; END`),
		"FOREACH":           refuses(update, `BEGIN FOREACH NEW.last_token IN ARRAY ARRAY[5] LOOP END LOOP; RETURN NEW; END`),
		"GET DIAGNOSTICS":   refuses(update, `BEGIN PERFORM 1; GET DIAGNOSTICS NEW.n = ROW_COUNT, NEW.last_token = ROW_COUNT; NEW.n := 10; RETURN NEW; END`),
		"FETCH":             refuses(update, `DECLARE c CURSOR FOR SELECT 5; BEGIN OPEN c; FETCH c INTO NEW.last_token; RETURN NEW; END`),
		"CALL": {
			setup:   `CREATE PROCEDURE lowers(INOUT x bigint) LANGUAGE plpgsql AS $$ BEGIN x := 5; END $$;` + changing(update, `BEGIN CALL lowers(NEW.last_token); RETURN NEW; END`),
			refused: []string{tokenUpdate}, harm: tokenHarm,
		},
		"an alias":           refuses(update, `DECLARE r ALIAS FOR NEW; BEGIN r.last_token := 5; RETURN r; END`),
		"a copy":             refuses(update, `DECLARE r orders; BEGIN r := NEW; r.last_token := 5; RETURN r; END`),
		"an expression":      refuses(update, `BEGIN RETURN jsonb_populate_record(NEW, '{"last_token": 5}'); END`),
		"the old row":        refuses(update, `BEGIN RETURN OLD; END`),
		"the old row, mixed": refuses(all, `BEGIN IF TG_OP = 'DELETE' THEN RETURN NULL; ELSIF TG_OP = 'UPDATE' THEN RETURN OLD; END IF; RETURN NEW; END`),
		"on INSERT": {setup: changing("INSERT ON orders", `BEGIN NEW.last_token := 5; RETURN NEW; END`), refused: []string{tokenInsert}, harm: tokenHarm,
			passes: []string{tokenUpdate, tokenDelete}},
		"an upsert": {setup: changing(both, `BEGIN NEW.last_token := 9; RETURN NEW; END`), refused: []string{tokenInsert, tokenUpdate, tokenUpsert}, harm: tokenHarm},
		"of a partition": {setup: `DROP TABLE orders; CREATE TABLE orders (id bigint, code text, n int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (id); CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1, 2); INSERT INTO orders VALUES (1, 'ABC', 9, 9);` +
			changing("INSERT OR UPDATE ON orders_1", `BEGIN NEW.last_token := 5; RETURN NEW; END`),
			refused: []string{tokenUpdate, tokenInsert, `UPDATE orders_1 SET n = 10, last_token = 10 WHERE id = 1 AND last_token <= 10`}, harm: tokenHarm},
		"of a child": {setup: `CREATE TABLE orders_2 () INHERITS (orders); INSERT INTO orders_2 SELECT 5, code, n, last_token FROM orders;` + changing("UPDATE ON orders_2", `BEGIN NEW.last_token := 5; RETURN NEW; END`),
			refused: []string{`UPDATE orders SET n = 10, last_token = 10 WHERE id = 5 AND last_token <= 10`}, harm: tokenHarm, passes: []string{tokenInsert}},

		"touched":            passes(both, `BEGIN NEW.updated_at := now(); RETURN NEW; END`),
		"touched by a query": passes(both, `BEGIN SELECT now(), upper(NEW.code) INTO NEW.updated_at, NEW.t FROM orders LIMIT 1; RETURN NEW; END`),
		"only read": passes(both, `DECLARE was bigint; BEGIN IF TG_OP = 'UPDATE' AND NEW.last_token < OLD.last_token THEN RAISE 'stale %', NEW.last_token; END IF;
			was := CASE WHEN NEW.n > 5 THEN NEW.last_token ELSE NEW.last_token + 1 END; SELECT NEW.last_token INTO was; NEW.t := was; PERFORM to_jsonb(NEW); RETURN NEW; END`),
		"returned in brackets": passes(all, `BEGIN IF (TG_OP = 'DELETE') THEN RETURN OLD; END IF; RETURN (NEW); END`),
		"returned by COALESCE": passes(all, `BEGIN RETURN COALESCE(NEW, OLD); END`),
		"deleted":              passes("DELETE ON orders", `BEGIN RETURN OLD; END`),
		"told": passes(both, `BEGIN RAISE NOTICE 'NEW.last_token := OLD.last_token'; /* NEW := OLD; */ -- NEW.last_token := 1;
			RETURN NEW; END`),
		"PostgreSQL's own": {setup: `CREATE TRIGGER z BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger(); ALTER TABLE orders ADD v tsvector;
			CREATE TRIGGER v BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger(v, 'pg_catalog.english', code)`, passes: []string{tokenUpdate, tokenInsert, tokenUpsert, tokenDelete}},
		"AFTER": {
			setup:  `CREATE FUNCTION changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.last_token := 5; RETURN NEW; END $$; CREATE TRIGGER t AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION changes()`,
			passes: []string{tokenUpdate, tokenUpsert},
		},
		"disabled": {setup: changing(both, `BEGIN NEW.last_token := 5; RETURN NEW; END`) + `ALTER TABLE orders DISABLE TRIGGER changes`, passes: []string{tokenUpdate, tokenUpsert}},
	})
}

// The wall sees the row as the trigger has made it, and a guarded function that
// can't be read is taken at its word. The refusal names the trigger.
func TestTriggersThatChangeTheTokenElsewhere(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, triggerSchema+changing("UPDATE ON orders", `BEGIN NEW.last_token := OLD.last_token; RETURN NEW; END`))
	ctx := tokenctx.With(t.Context(), 10)
	refuses := func(want bool, opts ...driver.Option) {
		db, err := driver.Open(dsn, opts...)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		_, err = db.ExecContext(ctx, tokenUpdate)
		var v *rewrite.Violation
		if !want {
			require.NoError(t, err)
			return
		}
		require.ErrorAs(t, err, &v)
		require.Equal(t, rewrite.TokenChanged, v.Rule)
		require.Equal(t, "orders", v.Table)
		require.ErrorContains(t, err, `trigger "changes"`)
	}
	refuses(true, driver.Protect("orders", rewrite.Lease))
	refuses(true, driver.Protect("orders", rewrite.Lease), driver.WithGuardedFunctions("changes"))
	run(t, dsn, `CREATE OR REPLACE FUNCTION changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN jsonb_populate_record(NEW, '{"code": "x"}'); END $$`)
	refuses(true, driver.Protect("orders", rewrite.Lease))
	refuses(false, driver.Protect("orders", rewrite.Lease), driver.WithGuardedFunctions("changes"))
	run(t, dsn, `CREATE OR REPLACE FUNCTION changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.last_token := OLD.last_token; RETURN NEW; END $$;
		ALTER TABLE orders DISABLE TRIGGER changes; UPDATE orders SET last_token = 9; ALTER TABLE orders ENABLE TRIGGER changes`)

	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	run(t, dsn, `SELECT setval('fencing.write_epoch', 100)`)
	refuses(true)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", migrations.WallReport))
	refuses(true)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", migrations.WallEnforce))
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(ctx, tokenUpdate)
	var byWall *pgconn.PgError
	require.ErrorAs(t, err, &byWall)
	require.Equal(t, "FN", byWall.Code[:2])

	// before the wall's first trigger it changes the row unseen
	run(t, dsn, `ALTER TRIGGER changes ON orders RENAME TO "!a"`)
	early, err := driver.Open(dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, early.Close()) }()
	_, err = early.ExecContext(ctx, tokenUpdate)
	var v *rewrite.Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, rewrite.TokenChanged, v.Rule)
}
