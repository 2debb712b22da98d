package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/localpg"
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
	tables := []gate.Table{{Table: rewrite.Table{Schema: "public", Name: "orders", TokenColumn: "last_token"}}}
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
	_, err = c.protect(nil, &gate.Reading{Generation: 1, Begun: 1}, found)
	require.NoError(t, err)
	now, stamp, err := c.stampNow(t.Context(), conn)
	require.NoError(t, err)
	require.Equal(t, int64(5), now.Generation)
	require.Empty(t, stamp)
}
