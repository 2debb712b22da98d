package reach

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// closureSchema has one object of each kind that reaches orders or events, and
// ordinary ones beside them.
const closureSchema = `
CREATE TABLE customers (id bigint PRIMARY KEY, code text UNIQUE, name text);
CREATE TABLE carts (id bigint PRIMARY KEY, customer bigint REFERENCES customers ON DELETE CASCADE);
CREATE TABLE regions (code text PRIMARY KEY);
CREATE TABLE areas (id bigint PRIMARY KEY, region text UNIQUE REFERENCES regions ON UPDATE CASCADE);
CREATE TABLE plain (id bigint PRIMARY KEY, v text, updated_at timestamptz);
CREATE TABLE documents (last_token bigint NOT NULL DEFAULT 0);
CREATE TABLE orders (id bigint PRIMARY KEY, v text, cart bigint REFERENCES carts ON DELETE SET NULL, region text REFERENCES areas (region) ON UPDATE CASCADE,
	kept bigint REFERENCES plain, last_token bigint NOT NULL DEFAULT 0);
ALTER TABLE orders INHERIT documents;
CREATE TABLE notes (v text) INHERITS (documents);
CREATE TABLE events (id bigint, day int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1, 2) PARTITION BY LIST (day);
CREATE TABLE events_1a PARTITION OF events_1 FOR VALUES IN (1);

CREATE VIEW recent AS SELECT * FROM orders WHERE id > 5;
CREATE VIEW newest AS SELECT id, v FROM recent;
CREATE VIEW unrelated AS SELECT * FROM plain;
CREATE VIEW buyers AS SELECT id AS number, name FROM customers;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM orders;

CREATE FUNCTION touch(b bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
	-- set it
	UPDATE /* the */ ONLY public . "orders" SET v = 'x' WHERE id = b; RETURN b; END $$;
CREATE FUNCTION touch_all() RETURNS bigint LANGUAGE sql AS 'SELECT sum(TOUCH(id)) FROM plain';
CREATE FUNCTION touch_most() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT touch_all(); END;
CREATE FUNCTION atomic(b bigint) RETURNS bigint LANGUAGE sql BEGIN ATOMIC DELETE FROM orders WHERE id = b RETURNING id; END;
CREATE FUNCTION by_text(b text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %I SET v = 1', 'orders'); END $$;
CREATE FUNCTION by_string() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO events VALUES (1)'; END $$;
CREATE FUNCTION by_cascade() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DELETE FROM customers; END $$;
CREATE FUNCTION by_view() RETURNS void LANGUAGE sql AS 'UPDATE newest SET v = 1';
CREATE FUNCTION by_upsert() RETURNS void LANGUAGE sql AS 'INSERT INTO regions VALUES (1) ON CONFLICT (code) DO UPDATE SET code = EXCLUDED.code';
CREATE FUNCTION drops() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DROP TABLE IF EXISTS plain2, orders; END $$;
CREATE PROCEDURE proc() LANGUAGE plpgsql AS $$ BEGIN TRUNCATE TABLE plain, events_1a; END $$;
CREATE FUNCTION step(a bigint, b bigint) RETURNS bigint LANGUAGE sql AS 'SELECT a + touch(b)';
CREATE AGGREGATE summed(bigint) (SFUNC = step, STYPE = bigint, INITCOND = 0);
CREATE TYPE pair AS (a bigint);
CREATE FUNCTION pair_to_text(pair) RETURNS text LANGUAGE sql AS 'SELECT touch(1)::text';
CREATE TABLE defaulted (id bigint DEFAULT touch(1));

CREATE FUNCTION log_order() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM touch(NEW.id); RETURN NEW; END $$;
CREATE TABLE queue (id bigint PRIMARY KEY);
CREATE TRIGGER log AFTER INSERT OR UPDATE ON queue FOR EACH ROW EXECUTE FUNCTION log_order();
CREATE TABLE queue_parts (id bigint REFERENCES queue);
CREATE FUNCTION enqueue() RETURNS void LANGUAGE sql AS 'INSERT INTO queue VALUES (1)';
CREATE TABLE ruled (id bigint);
CREATE RULE also AS ON DELETE TO ruled DO ALSO UPDATE orders SET v = 'x';
CREATE RULE reads AS ON INSERT TO ruled DO ALSO INSERT INTO plain SELECT id FROM orders;

CREATE FUNCTION updated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at = now(); RETURN NEW; END $$;
CREATE TRIGGER updated BEFORE UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION updated();
CREATE FUNCTION defaults() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v = 'x'; RETURN NEW; END $$;
CREATE TRIGGER defaults BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION defaults();
CREATE FUNCTION archive() RETURNS void LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN
	SELECT id INTO n FROM orders WHERE id = 1 FOR UPDATE; -- update orders
	RAISE NOTICE 'copied "from orders, update later';
	INSERT INTO plain SELECT id, v FROM orders ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v; UPDATE plain p SET v = o.v FROM orders o WHERE o.id = p.id; END $$;
CREATE FUNCTION renames() RETURNS void LANGUAGE sql AS 'UPDATE customers SET name = ''id = 5'', code = name; UPDATE areas SET id = 7';
CREATE FUNCTION unqueue() RETURNS void LANGUAGE sql AS 'DELETE FROM queue';
CREATE FUNCTION partitions() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('DROP TABLE %I', 'plain_2020'); END $$;
CREATE SCHEMA other; CREATE TABLE other.orders (id bigint);
CREATE FUNCTION elsewhere() RETURNS void LANGUAGE sql AS 'DELETE FROM other.orders';
`

// closureTables are the tables orders and events, both chosen.
func closureTables() []Table {
	return []Table{
		{Schema: "public", Name: "orders", TokenColumn: "last_token", IsChosen: true},
		{Schema: "public", Name: "events", TokenColumn: "last_token", IsChosen: true},
	}
}

func TestClosureOfTheCatalog(t *testing.T) {
	tables := closureTables()
	found := readingOf(t, closureSchema, tables)
	c := found.Closure(tables, nil)
	public := func(names ...string) (out []check.Name) {
		for _, n := range names {
			out = append(out, check.Name{Schema: "public", Name: n})
		}
		return out
	}
	one := func(name string) check.Name { return public(name)[0] }
	require.ElementsMatch(t, []check.Relative{{Name: one("documents"), Of: one("orders")}, {Name: one("events_1"), Of: one("events")}, {Name: one("events_1a"), Of: one("events")}}, c.Relatives)
	require.ElementsMatch(t, public("recent", "newest"), c.Views)
	require.ElementsMatch(t, []check.Cascade{
		{Name: one("customers"), Into: one("orders"), Delete: true, Truncate: true},
		{Name: one("buyers"), Into: one("orders"), Delete: true, Truncate: true},
		{Name: one("carts"), Into: one("orders"), Delete: true, Truncate: true},
		{Name: one("regions"), Into: one("orders"), UpdateOf: []string{"code"}, Truncate: true},
		{Name: one("areas"), Into: one("orders"), UpdateOf: []string{"region"}, Truncate: true},
		{Name: one("plain"), Into: one("orders"), Truncate: true}, {Name: one("unrelated"), Into: one("orders"), Truncate: true},
	}, c.Cascades)
	require.ElementsMatch(t, []check.Writer{
		{Name: one("queue"), Into: one("orders"), Events: []string{"INSERT", "UPDATE"}},
		{Name: one("ruled"), Into: one("orders"), Events: []string{"DELETE"}},
		{Name: one("defaulted"), Into: one("orders"), Events: []string{"INSERT", "LIKE", "UPDATE"}},
	}, c.Writers)
	require.ElementsMatch(t, public("touch", "touch_all", "touch_most", "atomic", "by_text", "by_string", "by_cascade", "by_view", "by_upsert", "drops", "proc", "step", "summed",
		"pair_to_text", "log_order", "enqueue", "partitions"), c.Functions)
	require.ElementsMatch(t, []check.UnreadRoutine{
		{Name: one("by_text"), By: one("by_text"), Signature: "public.by_text(text)", Why: "runs SQL that it makes (EXECUTE of what is no constant)", Into: one("orders")},
		{Name: one("partitions"), By: one("partitions"), Signature: "public.partitions()", Why: "runs SQL that it makes (EXECUTE of what is no constant)", Into: one("orders")},
	}, c.Unread)
	require.Empty(t, c.Unseen)
	require.ElementsMatch(t, public("defaults"), c.TriggerFunctions)
	require.Empty(t, c.InsertTriggers)
	require.Empty(t, c.Sequences)

	p := policyFrom(t, found, tables)
	for _, sql := range []string{
		`SELECT archive()`, `SELECT renames()`, `SELECT unqueue()`, `SELECT elsewhere()`, `SELECT * FROM newest`, `UPDATE plain SET v = 'x'`,
		`UPDATE customers SET name = 'x', code = 'y'`, `DELETE FROM plain`, `INSERT INTO customers VALUES (1)`, `DELETE FROM queue`, `DELETE FROM notes`, `INSERT INTO ruled VALUES (1)`,
		`TRUNCATE notes`, `UPDATE areas SET id = 5`, `UPDATE unrelated SET v = 'x'`, `REFRESH MATERIALIZED VIEW counted`,
	} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
	for _, sql := range []string{
		`SELECT partitions()`, `SELECT touch_most()`, `SELECT summed(id) FROM plain`, `CALL proc()`, `DELETE FROM buyers`, `DELETE FROM customers`,
		`UPDATE regions SET code = 'x'`, `TRUNCATE plain CASCADE`, `DELETE FROM events_1a`, `DELETE FROM documents`, `INSERT INTO queue VALUES (1)`, `UPDATE newest SET v = 'x'`,
	} {
		require.ErrorIs(t, p.Plan(sql).Refusal(), check.ErrRefused, sql)
	}
}

// What reaches only tables that are not chosen is left out, and the wall of a
// table judges what cascades into it.
func TestClosureOfChosenTables(t *testing.T) {
	both := closureTables()
	found := readingOf(t, closureSchema, both)
	both[0].HasWall = true
	one := slices.Clone(both)
	one[0].IsChosen = false
	guarded := check.Name{Schema: "public", Name: "touch"}

	c := found.Closure(one, []check.Name{guarded})
	require.Equal(t, []check.Name{{Schema: "public", Name: "by_string"}, {Schema: "public", Name: "by_text"}, {Schema: "public", Name: "partitions"}, {Schema: "public", Name: "proc"}}, c.Functions)
	walled := slices.Clone(both)
	walled[1].HasWall = true
	require.Empty(t, found.Closure(walled, nil).Unread) // the walls judge what a body does that isn't read
	require.NotContains(t, found.Closure(walled, nil).Functions, check.Name{Schema: "public", Name: "partitions"})
	require.Empty(t, c.Views)
	require.Empty(t, c.Cascades)
	require.Len(t, c.Relatives, 2)

	c = found.Closure(both, []check.Name{guarded})
	require.Len(t, c.Relatives, 3)
	require.NotEmpty(t, c.Cascades)
	for _, cascade := range c.Cascades {
		require.True(t, cascade.ChildWall)
	}
	policy := policyFrom(t, found, both, guarded)
	require.NoError(t, policy.Plan(`SELECT touch(1)`).Refusal())
	require.NoError(t, policy.Plan(`DELETE FROM customers`).Refusal())
	require.NoError(t, policy.Plan(`SELECT touch_all()`).Refusal())
	require.ErrorIs(t, policy.Plan(`SELECT atomic(1)`).Refusal(), check.ErrRefused)
	require.NoError(t, policyFrom(t, found, one, guarded).Plan(`SELECT atomic(1)`).Refusal())
}
