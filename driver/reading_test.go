package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/rewrite"
)

// A reading that waits for a lock gives up, and leaves the session's settings.
func TestReadingDoesNotWait(t *testing.T) {
	dsn := localpg.Database(t)
	fencetest.Run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)`, `CREATE TABLE plain (id bigint PRIMARY KEY, v text)`,
		`CREATE TABLE ruled (id bigint)`, `CREATE RULE r AS ON DELETE TO ruled DO ALSO DELETE FROM plain`)
	setup, reads := fencetest.Open(t, dsn), fencetest.Open(t, dsn)
	c, err := NewConnector(*setup.Config(), Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	tables := []heldTable{{Table: rewrite.Table{Schema: "public", Name: "orders", TokenColumn: "last_token"}}}
	_, err = setup.Exec(t.Context(), `BEGIN; ALTER TABLE plain ADD q int`)
	require.NoError(t, err)
	_, err = c.readCatalog(t.Context(), reads, tables, false)
	require.ErrorContains(t, err, "is locked")
	_, err = setup.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	_, err = c.readCatalog(t.Context(), reads, tables, false)
	require.NoError(t, err)
	var timeout string
	require.NoError(t, reads.QueryRow(t.Context(), `SHOW lock_timeout`).Scan(&timeout))
	require.Equal(t, "0", timeout)
}

// Where nothing is protected, neither the catalog nor its stamp is read.
func TestNothingIsReadForNothing(t *testing.T) {
	dsn := localpg.Database(t)
	fencetest.Run(t, dsn, `CREATE SCHEMA fencing`, `CREATE TABLE fencing.generation (value bigint)`, `INSERT INTO fencing.generation VALUES (5)`)
	conn := fencetest.Open(t, dsn)
	c, err := NewConnector(*conn.Config())
	require.NoError(t, err)
	found, err := c.readCatalog(t.Context(), nil, nil, false)
	require.NoError(t, err)
	_, err = c.protect(nil, &reading{generation: 1, begun: 1}, found)
	require.NoError(t, err)
	now, stamp, err := c.stampNow(t.Context(), conn)
	require.NoError(t, err)
	require.Equal(t, int64(5), now.generation)
	require.Empty(t, stamp)
}

// Each scope has its own closure: of the tables at its levels, and none if no table
// is at a level that only that scope has.
func TestClosuresOfScopes(t *testing.T) {
	tables := []heldTable{
		{Table: rewrite.Table{Schema: "public", Name: "orders", Mode: rewrite.Strict}, level: Report, wall: true},
		{Table: rewrite.Table{Schema: "public", Name: "events", Mode: rewrite.Strict}},
	}
	found, err := reach.Read(t.Context(), cannedSession(`{"Held": [[0, 1], [1, 2]], "Relations": [
		{"OID": 1, "Schema": "public", "Name": "orders", "IsTable": true}, {"OID": 2, "Schema": "public", "Name": "events", "IsTable": true},
		{"OID": 3, "Schema": "public", "Name": "recent_orders"}, {"OID": 4, "Schema": "public", "Name": "recent_events"}], "Views": [[1, 3], [2, 4]]}`), reachTables(tables))
	require.NoError(t, err)
	closures := closuresOf(tables, found, nil)
	name := func(name string) rewrite.Name { return rewrite.Name{Schema: "public", Name: name} }
	require.Equal(t, []rewrite.Name{name("recent_events")}, closures[enforcedTables].Views)
	require.Equal(t, []rewrite.Name{name("recent_orders"), name("recent_events")}, closures[watchedTables].Views)
	require.Equal(t, rewrite.Closure{}, closures[allTables])
	p, err := newProtection(tables, closures, defaultCacheBytes)
	require.NoError(t, err)
	require.NoError(t, p.enforced.Plan(`DELETE FROM recent_orders`).Refusal())
	require.ErrorIs(t, p.watched.Plan(`DELETE FROM recent_orders`).Refusal(), rewrite.ErrRefused)
}
