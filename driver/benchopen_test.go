package driver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/tokenctx"
)

// BenchmarkOpen opens a handle with its defaults, and sends a first statement, where the protected table
// has few partitions or many. It is to take less than half a second either way.
func BenchmarkOpen(b *testing.B) {
	for _, partitions := range []int{2, 200} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			dsn := localpg.Database(b, fencetest.Installed)
			fencetest.Run(b, dsn, `CREATE TABLE orders (id bigint, n int, last_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id)) PARTITION BY RANGE (id)`,
				fmt.Sprintf(`DO $$ BEGIN FOR i IN 1..%d LOOP EXECUTE format('CREATE TABLE orders_%%s PARTITION OF orders FOR VALUES FROM (%%s) TO (%%s)', i, i, i + 1); END LOOP; END $$`, partitions),
				`SELECT fencing.register('orders', 'lease')`, `SELECT fencing.wall('orders')`)
			ctx := tokenctx.With(b.Context(), 7)
			for b.Loop() {
				db, err := driver.Open(dsn)
				require.NoError(b, err)
				_, err = db.ExecContext(ctx, `UPDATE orders SET n = 1, last_token = $1 WHERE id = 1 AND last_token <= $1`, tokenctx.Arg)
				require.NoError(b, err)
				require.NoError(b, db.Close())
			}
		})
	}
}
