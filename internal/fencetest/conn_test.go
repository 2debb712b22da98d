package fencetest_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) { localpg.Main(m) }

const others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

func TestRun(t *testing.T) {
	dsn := localpg.Database(t)
	watch := fencetest.Open(t, dsn)
	count := func() (n int) {
		require.NoError(t, watch.QueryRow(t.Context(), others).Scan(&n))
		return n
	}
	fencetest.Run(t, dsn, "CREATE TABLE seen AS SELECT pg_backend_pid() AS pid", "SET search_path = nowhere")
	t.Run("a subtest has the connection, but not its state", func(t *testing.T) {
		fencetest.Run(t, dsn, "INSERT INTO seen SELECT pg_backend_pid()")
		fencetest.Run(t, dsn, "BEGIN", "LOCK TABLE seen")
		_, err := watch.Exec(t.Context(), "BEGIN; LOCK TABLE seen NOWAIT; COMMIT")
		require.NoError(t, err, "an open transaction is rolled back at once")
	})
	require.Equal(t, 1, count())
	fencetest.Run(t, dsn, "DO 'BEGIN ASSERT (SELECT count(DISTINCT pid) = 1 FROM seen); END'")

	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { fencetest.Run(t, dsn, "INSERT INTO seen SELECT pg_backend_pid()") })
	}
	wg.Wait()

	fencetest.Run(t, dsn)
	_, err := watch.Exec(t.Context(), "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	require.NoError(t, err)
	fencetest.Run(t, dsn, "SELECT 1")

	fencetest.Disconnect(dsn)
	fencetest.EventuallyEqual(t, 0, count)
	fencetest.Run(t, dsn, "SELECT 1")
}

func TestInstalled(t *testing.T) {
	fencetest.Run(t, localpg.Database(t, fencetest.Installed), "SELECT fencing.next_token()")
}
