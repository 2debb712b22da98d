package driver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// One lease in another: a table that names no resource takes neither's token, and the
// outer lease goes on. A table that names one takes its token.
func TestNestedLeases(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text); INSERT INTO orders VALUES (17, 'new');
		CREATE TABLE invoices (id bigint PRIMARY KEY, status text); INSERT INTO invoices VALUES (1, 'new')`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "invoices", Mode: migrations.Lease, Resource: "billing"}))
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	defer db.Close()
	const (
		order   = `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`
		invoice = `UPDATE invoices SET status = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`
	)
	requireNamed := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, rewrite.ErrRefused)
		require.ErrorContains(t, err, `"orders"`)
		require.ErrorContains(t, err, `of "outer" and, within it, of "billing"`)
	}
	require.NoError(t, lease.Run(t.Context(), db, "outer", time.Hour, func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, lease.Run(ctx, db, "billing", time.Hour, func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, order, "billed", tokenctx.Arg, 17)
			requireNamed(err)
			_, err = tx.ExecContext(ctx, order, "billed", tokenctx.Arg, 17)
			requireNamed(err)
			_, err = db.ExecContext(ctx, invoice, "billed", tokenctx.Arg, 1)
			require.NoError(t, err)
			return lease.Run(ctx, db, "innermost", time.Hour, func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, order, "billed", tokenctx.Arg, 17)
				require.ErrorIs(t, err, rewrite.ErrRefused)
				_, err = db.ExecContext(ctx, invoice, "billed", tokenctx.Arg, 1)
				return err
			})
		}))
		require.NoError(t, tx.Rollback())
		_, err = db.ExecContext(ctx, order, "done", tokenctx.Arg, 17)
		return err
	}))
	other := tokenctx.WithResource(tokenctx.With(t.Context(), 5), "one", 5)
	tx, err := db.BeginTx(other, nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(tokenctx.WithResource(tokenctx.With(t.Context(), 6), "two", 6), order, "x", tokenctx.Arg, 17)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.ErrorContains(t, err, `token 6 of "two"`)
	require.ErrorContains(t, err, `token 5 of "one"`)
	require.NoError(t, tx.Rollback())
}

// Two leases that write the same rows: each holder is told that the newer token is none
// of its own lease's, which is still held.
func TestTwoLeasesOfOneRow(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text); INSERT INTO orders VALUES (17, 'new'), (18, 'new'), (19, 'new')`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	db, err := driver.Open(dsn, driver.WithRewrite())
	require.NoError(t, err)
	defer db.Close()
	one, err := lease.Take(t.Context(), db, "one", time.Hour, lease.WithoutRenewal())
	require.NoError(t, err)
	two, err := lease.Take(t.Context(), db, "two", time.Hour, lease.WithoutRenewal())
	require.NoError(t, err)
	_, err = db.ExecContext(two.Context(t.Context()), `UPDATE orders SET status = 'second' WHERE id = 17`)
	require.NoError(t, err)

	// contexts that don't end with the lease
	under := tokenctx.WithResource(tokenctx.With(t.Context(), one.Token()), "one", one.Token())
	_, err = db.ExecContext(under, `UPDATE orders SET status = 'first' WHERE id = 17`)
	var stale *driver.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, driver.StaleError{Table: "orders", Token: one.Token(), Current: two.Token(), Lease: "one"}, *stale)
	require.ErrorContains(t, err, `which isn't one of lease "one": that is still held`)
	require.NotContains(t, err.Error(), "another holder has taken over")
	_, err = db.ExecContext(under, `UPDATE orders SET status = 'first' WHERE id < 19`)
	var partial *driver.PartialError
	require.ErrorAs(t, err, &partial)
	require.Equal(t, driver.PartialError{Table: "orders", Token: one.Token(), Applied: 1, Stale: 1, Lease: "one"}, *partial)
	require.ErrorContains(t, err, `lease "one"`)

	ctx := one.Context(t.Context())
	_, err = db.ExecContext(ctx, `UPDATE orders SET status = 'first' WHERE id = 17`)
	require.ErrorIs(t, err, driver.ErrStale)
	require.ErrorIs(t, context.Cause(ctx), lease.ErrLost)
	require.ErrorContains(t, context.Cause(ctx), "another lease writes the same rows")

	run(t, dsn, `DELETE FROM fencing.lease WHERE resource = 'one'`)
	_, err = db.ExecContext(under, `UPDATE orders SET status = 'first' WHERE status = 'gone'`)
	require.ErrorIs(t, err, driver.ErrUndetermined)
	require.ErrorContains(t, err, `fencing.lease has no row of "one": it was deleted`)
	run(t, dsn, `INSERT INTO fencing.lease VALUES ('one', 'another', 100, 'infinity')`)
	_, err = db.ExecContext(under, `UPDATE orders SET status = 'first' WHERE id = 17`)
	require.ErrorAs(t, err, &stale)
	require.Empty(t, stale.Lease, "somebody has taken it since")
	require.ErrorContains(t, err, "another holder has taken over")
}
