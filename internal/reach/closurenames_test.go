package reach

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// namesSchema has relations that share a bare name with orders, events or
// their families, and views over what the system keeps.
const namesSchema = `
CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0);
CREATE TABLE events (id bigint, day int, last_token bigint NOT NULL DEFAULT 0) PARTITION BY LIST (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1);
CREATE TABLE documents (last_token bigint NOT NULL DEFAULT 0); ALTER TABLE orders INHERIT documents;
CREATE SCHEMA a; CREATE SCHEMA b; CREATE SCHEMA fencing;
CREATE TABLE a.orders (id int); CREATE VIEW b.orders AS SELECT 1 AS one; CREATE MATERIALIZED VIEW a.documents AS SELECT 1 AS one;
CREATE TABLE a.events (id int) PARTITION BY LIST (id); CREATE TABLE b.events PARTITION OF a.events FOR VALUES IN (1);
CREATE FOREIGN DATA WRAPPER fdw; CREATE SERVER far FOREIGN DATA WRAPPER fdw; CREATE FOREIGN TABLE a.events_1 (id int) SERVER far OPTIONS (table_name 'elsewhere');
CREATE TABLE a.plain (id int); CREATE TABLE b.plain (id int); CREATE SCHEMA d; CREATE TABLE d.t (id int); CREATE INDEX orders ON d.t (id); CREATE SEQUENCE fencing.orders; CREATE TYPE a.events_2 AS (x int);
CREATE TEMP TABLE orders (id int);

CREATE TABLE fencing.registry (id int);
CREATE VIEW settings AS SELECT name, setting FROM pg_settings; CREATE VIEW over_settings AS SELECT name AS n FROM settings; CREATE VIEW a.twice AS SELECT * FROM over_settings;
CREATE VIEW classes AS SELECT oid, relname FROM pg_class WHERE oid IN (SELECT id::oid FROM a.plain); CREATE VIEW columns AS SELECT * FROM information_schema.columns;
CREATE VIEW registered AS SELECT * FROM fencing.registry; CREATE VIEW fencing.registered AS SELECT * FROM fencing.registry; CREATE TEMP VIEW procs AS SELECT * FROM pg_proc;
CREATE FOREIGN TABLE b.registry (id int) SERVER far OPTIONS (schema_name 'fencing');
CREATE VIEW harmless AS SELECT id, now() AS at, 'pg_class'::regclass AS c FROM a.plain; CREATE TABLE registry (id int);
`

// Relations of a protected name, views over the system's own and comparisons are
// found, and others aren't.
func TestClosureNames(t *testing.T) {
	tables := closureTables()
	name := func(schema, name string) check.Name { return check.Name{Schema: schema, Name: name} }
	found := readingOf(t, namesSchema, tables)
	c := found.Closure(tables, nil)
	for i := range c.Namesakes {
		require.NotZero(t, c.Namesakes[i].OID)
		c.Namesakes[i].OID = 0
	}
	table := func(schema, n string) check.Namesake {
		return check.Namesake{Name: name(schema, n), IsTable: true}
	}
	other := func(schema, n string) check.Namesake { return check.Namesake{Name: name(schema, n)} }
	require.ElementsMatch(t, []check.Namesake{other("a", "documents"), table("a", "events"), other("a", "events_1"), table("a", "orders"), table("b", "events"), other("b", "orders")}, c.Namesakes)
	temp := c.SystemViews[len(c.SystemViews)-1:]
	for i, v := range c.SystemViews {
		if v.Name == "procs" {
			require.Contains(t, v.Schema, "pg_temp_")
			temp = c.SystemViews[i : i+1]
		}
	}
	require.ElementsMatch(t, append([]check.Name{name("public", "settings"), name("public", "over_settings"), name("a", "twice"), name("public", "classes"), name("public", "columns"),
		name("public", "registered"), name("fencing", "registered"), name("b", "registry")}, temp...), c.SystemViews)
	require.False(t, found.facts.Comparisons)
}

// A table that isn't chosen, or isn't there, is told from one that is.
func TestNamesakesOfChosenTables(t *testing.T) {
	tables := closureTables()
	tables[1].Schema, tables[1].Name, tables[1].IsChosen = "a", "orders", false
	tables = append(tables, Table{Schema: "gone", Name: "plain", TokenColumn: "last_token", IsChosen: true})
	found := readingOf(t, namesSchema, tables)
	names := func() (out []string) {
		for _, n := range found.Closure(tables, nil).Namesakes {
			out = append(out, n.Schema+"."+n.Name.Name)
		}
		return out
	}
	require.ElementsMatch(t, []string{"a.documents", "a.orders", "a.plain", "b.orders", "b.plain"}, names())
	tables[1].IsChosen = true
	require.ElementsMatch(t, []string{"a.documents", "a.plain", "b.orders", "b.plain"}, names())
}

func TestClosureComparisons(t *testing.T) {
	const schema = `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0); CREATE SCHEMA evil; CREATE DOMAIN number AS bigint;
		CREATE FUNCTION evil.le(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'; CREATE FUNCTION evil.le(bigint, smallint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE FUNCTION evil.le(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true'; CREATE FUNCTION evil.le(numeric, numeric) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE FUNCTION evil.le(text, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';`
	for operator, want := range map[string]bool{
		`<= (LEFTARG = bigint, RIGHTARG = bigint`: true, `< (LEFTARG = bigint, RIGHTARG = bigint`: true, `> (LEFTARG = bigint, RIGHTARG = smallint`: true, `>= (LEFTARG = int, RIGHTARG = int`: true,
		`<<= (LEFTARG = bigint, RIGHTARG = bigint`: false, `<= (LEFTARG = numeric, RIGHTARG = numeric`: false, `<= (LEFTARG = text, RIGHTARG = bigint`: false,
	} {
		t.Run(operator, func(t *testing.T) {
			tables := closureTables()[:1]
			c := readingOf(t, schema+`CREATE OPERATOR evil.`+operator+`, FUNCTION = evil.le)`, tables)
			require.Equal(t, want, c.facts.Comparisons)
		})
	}
}
