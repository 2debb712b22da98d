package driver_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// A listening handle knows of a change at once, and of the next one although
// its connection was killed in between.
func TestRegistryListener(t *testing.T) {
	dsn := registered(t)
	lost := make(chan driver.Event, 16)
	db, err := driver.Open(dsn, driver.WithRegistryListener(), driver.WithRefreshInterval(time.Hour), driver.WithReporter(func(_ context.Context, e driver.Event) {
		if e.Kind == driver.EventUnread {
			lost <- e
		}
	}))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}))
	requireRefusedSoon(t, db, `UPDATE orders SET status = 'x'`)

	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	fencetest.Eventually(t, func() bool {
		var n int
		require.NoError(t, admin.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN fencerow_registry'`).Scan(&n))
		return n == 1
	})
	require.ErrorContains(t, (<-lost).Err, "listen for changes of the registry")
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "jobs", Mode: migrations.Strict}))
	requireRefusedSoon(t, db, `UPDATE jobs SET status = 'x'`)
}

func TestListenerNeedsARegistry(t *testing.T) {
	_, err := driver.Open("host=nowhere", driver.Protect("orders", rewrite.Strict), driver.WithRegistryListener())
	require.ErrorContains(t, err, "is for tables from the registry")
}
