package driver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// usualTrigger is a trigger of a protected table, as applications have them. In it @ is the
// table's schema.
type usualTrigger struct {
	name    string
	extra   string // what else it needs
	body    string // of its function in PL/pgSQL; if empty, trigger is all
	trigger string // the clauses of CREATE TRIGGER; BEFORE INSERT OR UPDATE if empty
	refused bool   // for it may change the token, as it does over a plain connection
}

func (u usualTrigger) setup(schema string) string {
	var b strings.Builder
	b.WriteString(`CREATE SCHEMA @; CREATE TABLE @.orders (id bigint PRIMARY KEY, status text, n int DEFAULT 0, version int NOT NULL DEFAULT 0, doc tsvector,
		created_at timestamptz DEFAULT now(), updated_at timestamptz, updated_by text, last_token bigint NOT NULL DEFAULT 0);
		INSERT INTO @.orders (id, status, last_token) VALUES (1, 'new', 9);
		CREATE TABLE @.history (id bigserial, op text, at timestamptz DEFAULT now(), order_id bigint, token bigint, last_token bigint, was jsonb, became jsonb);`)
	b.WriteString(u.extra)
	trigger := u.trigger
	if trigger == "" {
		trigger = "BEFORE INSERT OR UPDATE ON @.orders FOR EACH ROW"
	}
	if u.body != "" {
		fmt.Fprintf(&b, `CREATE FUNCTION @.touch() RETURNS trigger LANGUAGE plpgsql AS $f$ %s $f$;`, u.body)
		trigger += " EXECUTE FUNCTION @.touch()"
	}
	fmt.Fprintf(&b, `CREATE TRIGGER touching %s;`, trigger)
	return strings.ReplaceAll(b.String(), "@", schema)
}

const audits = `INSERT INTO @.history (op, order_id, token, was, became) VALUES (TG_OP, NEW.id, NEW.last_token, to_jsonb(OLD), to_jsonb(NEW));`

// These keep a time, count versions, or write a history: nearly every database has some.
var usualTriggers = []usualTrigger{
	{name: "now()", body: `BEGIN NEW.updated_at := now(); RETURN NEW; END`},
	{name: "=", body: `BEGIN NEW.updated_at = now(); RETURN NEW; END;`},
	{name: "CURRENT_TIMESTAMP", body: `begin new.updated_at = current_timestamp; return new; end`},
	{name: "in quotes, as Hasura writes it", body: `DECLARE _new record; BEGIN NEW."updated_at" = NOW(); RETURN NEW; END`},
	{name: "a record copied, as Hasura writes it", body: `DECLARE _new record; BEGIN _new := NEW; _new."updated_at" = NOW(); RETURN _new; END;`},
	{name: "clock", body: `BEGIN NEW.updated_at := clock_timestamp() AT TIME ZONE 'UTC'; RETURN NEW; END`},
	{name: "timezone()", body: `BEGIN NEW.updated_at = timezone('utc', now()); RETURN NEW; END`},
	{name: "if distinct", body: `BEGIN IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at := now(); END IF; RETURN NEW; END`},
	{name: "if row distinct", body: `BEGIN IF row(NEW.*) IS DISTINCT FROM row(OLD.*) THEN NEW.updated_at = now(); RETURN NEW; ELSE RETURN NEW; END IF; END`},
	{name: "returns the old one if nothing changed", body: `BEGIN IF row(NEW.*) IS DISTINCT FROM row(OLD.*) THEN NEW.updated_at = now(); RETURN NEW; ELSE RETURN OLD; END IF; END`},
	{name: "as Diesel writes it", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `
		BEGIN
			IF (
				NEW IS DISTINCT FROM OLD AND
				NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at
			) THEN
				NEW.updated_at := current_timestamp;
			END IF;
			RETURN NEW;
		END;`},
	{name: "a column compared", body: `BEGIN IF TG_OP = 'UPDATE' AND NEW.status <> OLD.status THEN NEW.updated_at := now(); END IF; RETURN NEW; END`},
	{name: "OLD.*", body: `BEGIN IF (OLD.*) IS DISTINCT FROM (NEW.*) THEN NEW.updated_at := now(); END IF; RETURN NEW; END`},
	{name: "WHEN", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)", body: `BEGIN NEW.updated_at := now(); RETURN NEW; END`},
	{name: "on a column", trigger: "BEFORE UPDATE OF status ON @.orders FOR EACH ROW", body: `BEGIN NEW.updated_at := now(); RETURN NEW; END`},
	{name: "by TG_OP", body: `BEGIN IF TG_OP = 'INSERT' THEN NEW.created_at := now(); NEW.updated_at := NEW.created_at; ELSIF (TG_OP = 'UPDATE') THEN NEW.updated_at := now(); NEW.created_at := OLD.created_at; END IF; RETURN NEW; END`},
	{name: "by CASE", body: `BEGIN CASE TG_OP WHEN 'INSERT' THEN NEW.created_at = now(); ELSE NEW.updated_at = now(); END CASE; RETURN NEW; END`},
	{name: "COALESCE", body: `BEGIN NEW.updated_at := COALESCE(NEW.updated_at, now()); NEW.status := lower(trim(NEW.status)); RETURN NEW; END`},
	{name: "a version", body: `BEGIN NEW.version := NEW.version + 1; RETURN NEW; END`},
	{name: "a version of the old row", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `BEGIN NEW.version = OLD.version + 1; RETURN NEW; END`},
	{name: "a user", body: `BEGIN NEW.updated_by := current_setting('app.user', true); NEW.updated_at := now(); RETURN NEW; END`},
	{name: "a search document", body: `BEGIN NEW.doc := setweight(to_tsvector('english', coalesce(NEW.status, '')), 'A'); RETURN NEW; END`},
	{name: "a default by a query", body: `BEGIN SELECT count(*) INTO NEW.n FROM @.history h WHERE h.order_id = NEW.id; RETURN NEW; END`},
	{name: "a check that raises", body: `BEGIN IF NEW.n < 0 THEN RAISE EXCEPTION 'n of % is negative', NEW.id USING ERRCODE = '23514'; END IF; RETURN NEW; END`},
	{name: "moddatetime", extra: `CREATE EXTENSION moddatetime SCHEMA @;`, trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW EXECUTE PROCEDURE @.moddatetime(updated_at)"},
	{name: "an audit before", body: `BEGIN ` + audits + ` RETURN NEW; END`},
	{name: "an audit before, by EXECUTE", body: `BEGIN EXECUTE 'INSERT INTO @.history (op, became) VALUES ($1, $2)' USING TG_OP, to_jsonb(NEW); NEW.updated_at := now(); RETURN NEW; END`},
	{name: "an audit of the token too", body: `BEGIN INSERT INTO @.history (op, last_token) VALUES (TG_OP, NEW.last_token); RETURN NEW; END`},
	{name: "an audit after", trigger: "AFTER INSERT OR UPDATE OR DELETE ON @.orders FOR EACH ROW", body: `BEGIN
		IF (TG_OP = 'DELETE') THEN INSERT INTO @.history (op, was) SELECT 'D', to_jsonb(OLD); RETURN OLD;
		ELSIF (TG_OP = 'UPDATE') THEN INSERT INTO @.history (op, became) SELECT 'U', to_jsonb(NEW); RETURN NEW;
		ELSIF (TG_OP = 'INSERT') THEN INSERT INTO @.history (op, became) SELECT 'I', to_jsonb(NEW); RETURN NEW;
		END IF; RETURN NULL; END`},
	{name: "an audit by statement", trigger: "AFTER UPDATE ON @.orders REFERENCING NEW TABLE AS n OLD TABLE AS o FOR EACH STATEMENT", body: `BEGIN INSERT INTO @.history (op, became) SELECT 'U', to_jsonb(n) FROM n; RETURN NULL; END`},
	{name: "a notice", trigger: "AFTER INSERT OR UPDATE ON @.orders FOR EACH ROW", body: `BEGIN PERFORM pg_notify('orders', json_build_object('table', TG_TABLE_NAME, 'id', NEW.id)::text); RETURN NEW; END`},

	{name: "two copies", body: `DECLARE _new record; "_Old" record; x int; BEGIN _new := NEW; IF TG_OP = 'UPDATE' THEN "_Old" := OLD; x := "_Old".n; END IF; _new.n := _new.n + 1; RETURN _new; END`},
	{name: "a copy filled in branches", body: `DECLARE _new record; BEGIN IF NEW.n > 5 THEN _new = NEW; _new.n := 0; ELSE _new := NEW; END IF; RETURN _new; END`},
	{name: "the old one if it is not distinct", body: `BEGIN IF (OLD.*) IS NOT DISTINCT FROM (NEW.*) THEN RETURN OLD; END IF; NEW.updated_at := now(); RETURN NEW; END`},

	{name: "the token set", body: `BEGIN NEW.updated_at := now(); NEW.last_token := 5; RETURN NEW; END`, refused: true},
	{name: "the token set if distinct", body: `BEGIN IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at := now(); NEW.last_token = 5; END IF; RETURN NEW; END`, refused: true},
	{name: "the row set by EXECUTE", body: `BEGIN NEW.updated_at := now(); EXECUTE 'SELECT (jsonb_populate_record($1, ''{"last_token": 5}'')).*' INTO NEW USING NEW; RETURN NEW; END`, refused: true},
	{name: "the token of a copied record", body: `DECLARE _new record; BEGIN _new := NEW; _new."updated_at" = NOW(); _new.last_token = 5; RETURN _new; END;`, refused: true},
	{name: "another record", body: `DECLARE _new record; BEGIN SELECT * INTO _new FROM @.orders WHERE id = 1; IF _new IS NULL THEN _new := NEW; END IF; _new."updated_at" = NOW(); RETURN _new; END;`, refused: true},
	{name: "a copy filled by EXECUTE", body: `DECLARE r record; BEGIN r := NEW; EXECUTE 'SELECT (jsonb_populate_record($1, ''{"last_token": 5}'')).*' INTO r USING NEW; RETURN r; END`, refused: true},
	{name: "a copy filled by a loop", body: `DECLARE r record; BEGIN r := NEW; FOR r IN SELECT (jsonb_populate_record(NEW, '{"last_token": 5}')).* LOOP END LOOP; RETURN r; END`, refused: true},
	{name: "a copy by its label", body: `<<l>> DECLARE r record; BEGIN r := NEW; l.r.last_token := 5; RETURN r; END`, refused: true},
	{name: "a copy in a list of targets", body: `DECLARE r record; x text; BEGIN r := NEW; SELECT 'x', 5 INTO x, r.last_token; RETURN r; END`, refused: true},
	{name: "a copy's alias", body: `DECLARE r record; o ALIAS FOR r; BEGIN r := NEW; o.last_token := 5; RETURN r; END`, refused: true},
	{name: "a copy called like the token", body: `DECLARE last_token record; BEGIN last_token := NEW; NEW.last_token := 5; RETURN NEW; END`, refused: true},
	{name: "a copy of the name in another block", body: `DECLARE r record; BEGIN r := NEW; DECLARE r record; BEGIN r := jsonb_populate_record(NEW, '{"last_token": 5}'); RETURN r; END; END`, refused: true},
	{name: "a copy of the old row", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `DECLARE r record; BEGIN r := OLD; r.status := NEW.status; RETURN r; END`, refused: true},
	{name: "a copy of a copy", body: `DECLARE r record; s record; BEGIN r := NEW; s := r; s.last_token := 5; RETURN s; END`, refused: true},
	{name: "a copy in quotes", body: `DECLARE "R" record; BEGIN "R" := NEW; "R"."last_token" = 5; RETURN "R"; END`, refused: true},
	{name: "the old one if it is distinct", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `BEGIN IF row(NEW.*) IS DISTINCT FROM row(OLD.*) THEN RETURN OLD; ELSE NEW.updated_at = now(); RETURN NEW; END IF; END`, refused: true},
	{name: "the old one if a column is not distinct", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `BEGIN IF NEW.n IS DISTINCT FROM OLD.n THEN NEW.updated_at = now(); RETURN NEW; ELSE RETURN OLD; END IF; END`, refused: true},
	{name: "the old one behind ELSE of another", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `BEGIN IF NEW IS DISTINCT FROM OLD THEN IF false THEN NULL; ELSE RETURN OLD; END IF; END IF; RETURN NEW; END`, refused: true},
	{name: "the old one after the comparison", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `BEGIN IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at := now(); ELSE NULL; END IF; RETURN OLD; END`, refused: true},
	{name: "the old one by a function called row", trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", extra: `CREATE FUNCTION @."row"(@.orders) RETURNS int LANGUAGE sql AS 'SELECT 1';`,
		body: `BEGIN IF @."row"(NEW.*) IS DISTINCT FROM @."row"(OLD.*) THEN RETURN NEW; ELSE RETURN OLD; END IF; END`, refused: true},
	{name: "another row returned", body: `BEGIN NEW.updated_by := 'x'; RETURN jsonb_populate_record(NEW, '{"last_token": 5}'); END`, refused: true},
}

// An upsert that takes its token from EXCLUDED passes with a trigger that leaves the token
// alone. One that may change it is named by the refusal.
func TestUsualTriggers(t *testing.T) {
	dsn := localpg.Database(t)
	for i, u := range usualTriggers {
		schema := fmt.Sprintf("s%d", i)
		t.Run(u.name, func(t *testing.T) { u.try(t, dsn, schema) })
	}
}

func (u usualTrigger) try(t *testing.T, dsn, schema string) {
	run(t, dsn, u.setup(schema))
	statements := []string{
		`INSERT INTO @.orders (id, status, last_token) VALUES (1, 'upserted', 10) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`,
		`INSERT INTO @.orders (id, status, last_token) VALUES (2, 'inserted', 10) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token <= EXCLUDED.last_token`,
		`UPDATE @.orders SET status = 'updated', last_token = 10 WHERE id = 1 AND last_token <= 10`,
	}
	harm := strings.ReplaceAll(`SELECT EXISTS (SELECT FROM @.orders WHERE last_token <> 10)`, "@", schema)
	db, err := driver.Open(dsn, driver.Protect(schema+".orders", rewrite.Lease))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ctx := tokenctx.With(t.Context(), 10)
	harmed := false
	for _, sql := range statements {
		sql = strings.ReplaceAll(sql, "@", schema)
		_, err := db.ExecContext(ctx, sql)
		if !u.refused {
			require.NoError(t, err, sql)
			continue
		}
		require.ErrorIs(t, err, rewrite.ErrRefused, sql)
		require.ErrorContains(t, err, `trigger "touching"`)
		harmed = bypass{harm: harm}.harms(t, dsn, sql) || harmed
	}
	if u.refused {
		require.True(t, harmed, "over a plain connection")
		return
	}
	require.False(t, bypass{harm: harm}.harms(t, dsn, "SELECT 1"), "each row has the token")
}

// Behind a wall a trigger that changes the token is let be, but EXCLUDED shows what it has made
// of the token: the refusal names it.
func TestExcludedBehindAChangingTrigger(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text); CREATE FUNCTION caps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.last_token := least(NEW.last_token, 3); RETURN NEW; END $$;
		CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.status := lower(NEW.status); RETURN NEW; END $$; CREATE TRIGGER touching BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch()`)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", migrations.WallEnforce))
	run(t, dsn, `SELECT setval('fencing.write_epoch', 100)`)
	ctx := tokenctx.With(t.Context(), 10)
	upsert := func(token string) error {
		db, err := driver.Open(dsn)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		_, err = db.ExecContext(ctx, `INSERT INTO orders AS o (id, status, last_token) VALUES (1, 'x', 10) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = `+token+` WHERE o.last_token <= `+token)
		return err
	}
	require.NoError(t, upsert("EXCLUDED.last_token"))
	run(t, dsn, `CREATE TRIGGER capping BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION caps()`)
	err := upsert("EXCLUDED.last_token")
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.ErrorContains(t, err, `with EXCLUDED, where trigger "capping", whose function caps may change it`)
	require.NotContains(t, err.Error(), "touching")
}

// RETURN OLD counts as NEW where the two aren't distinct, but not where a database has an
// equality of its own.
func TestOldRowByAnotherEquality(t *testing.T) {
	u := usualTrigger{trigger: "BEFORE UPDATE ON @.orders FOR EACH ROW", body: `BEGIN IF NEW IS DISTINCT FROM OLD THEN NEW.updated_at := now(); RETURN NEW; ELSE RETURN OLD; END IF; END`}
	dsn := localpg.Database(t)
	u.try(t, dsn, "builtin")
	u.extra = `CREATE FUNCTION @.same(@.orders, @.orders) RETURNS boolean LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR public.= (LEFTARG = @.orders, RIGHTARG = @.orders, FUNCTION = @.same);`
	u.refused = true
	u.try(t, dsn, "own")
}
