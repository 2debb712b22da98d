package driver

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// chainSchema has 300 tables, each of which references the one before it.
const chainSchema = `CREATE TABLE t0 (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0);
DO $$ BEGIN FOR i IN 1..300 LOOP
	EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY, p bigint REFERENCES t%s ON DELETE CASCADE ON UPDATE CASCADE, last_token bigint NOT NULL DEFAULT 0)', i, i-1);
END LOOP; END $$`

func BenchmarkChain(b *testing.B) {
	conn, err := pgx.Connect(b.Context(), localpg.Database(b))
	require.NoError(b, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(b.Context(), chainSchema)
	require.NoError(b, err)
	c, err := NewConnector(*conn.Config(), Protect("t0", rewrite.Strict))
	require.NoError(b, err)
	for _, n := range []int{1, 10, 100, 300} {
		var tables []heldTable
		for i := range n {
			tables = append(tables, heldTable{Table: rewrite.Table{Schema: "public", Name: fmt.Sprintf("t%d", i), TokenColumn: "last_token", Mode: rewrite.Strict}})
		}
		var found *catalog
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			for b.Loop() {
				found, err = c.readCatalog(b.Context(), conn, tables)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("closure/%d", n), func(b *testing.B) {
			for b.Loop() {
				found.closureOf(tables, nil, Enforce)
			}
		})
		closures := closuresOf(tables, found, nil)
		b.Run(fmt.Sprintf("protection/%d", n), func(b *testing.B) {
			for b.Loop() {
				_, err := newProtection(tables, closures, 1<<20)
				require.NoError(b, err)
			}
		})
	}
}
