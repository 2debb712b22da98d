package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/chaos/proxy"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) { localpg.Main(m) }

// newCluster starts a cluster with a table t, and watches that nothing stays.
func newCluster(t *testing.T, config Config) *Cluster {
	t.Helper()
	config.Setup = func(ctx context.Context, dsn string) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE TABLE t (v int PRIMARY KEY); INSERT INTO t VALUES (0)")
		return errors.Join(err, conn.Close(ctx))
	}
	c, err := Start(t.Context(), config)
	if errors.Is(err, localpg.ErrNoServer) && os.Getenv("FENCEROW_DATABASE_URL") != "" {
		t.Skipf("this test needs servers of its own: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		primary, standby, _ := c.servers()
		require.NoError(t, c.Stop())
		require.NoError(t, c.Stop())
		require.NoDirExists(t, filepath.Dir(primary.DataDir()))
		if standby != nil {
			require.NoDirExists(t, filepath.Dir(standby.DataDir()))
		}
	})
	return c
}

func open(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	return fencetest.Open(t, dsn)
}

func write(t *testing.T, c *Cluster, v int) {
	t.Helper()
	_, err := open(t, c.DSN(c.Addr())).Exec(t.Context(), "INSERT INTO t VALUES ($1)", v)
	require.NoError(t, err)
}

func rows(t *testing.T, dsn string) []int {
	t.Helper()
	conn := open(t, dsn)
	defer conn.Close(context.Background())
	r, err := conn.Query(t.Context(), "SELECT v FROM t ORDER BY v")
	require.NoError(t, err)
	vs, err := pgx.CollectRows(r, pgx.RowTo[int])
	require.NoError(t, err)
	return vs
}

// requireStandby waits until the standby has the rows.
func requireStandby(t *testing.T, c *Cluster, want ...int) {
	t.Helper()
	_, standby, _ := c.servers()
	require.NotNil(t, standby)
	fencetest.Eventually(t, func() bool { return len(rows(t, standby.DSN(""))) == len(want) })
	require.Equal(t, want, rows(t, standby.DSN("")))
}

// What the standby has not got is lost, although it was committed; and once
// more after a rebuild.
func TestAsync(t *testing.T) {
	c := newCluster(t, Config{Settings: map[string]string{"wal_writer_delay": "10s"}})
	first, firstDir := c.Addr(), filepath.Dir(c.primary.DataDir())
	write(t, c, 1)
	requireStandby(t, c, 0, 1)
	require.EqualError(t, c.Rebuild(t.Context()), "there is a standby: call Failover first")

	c.HoldReplication()
	write(t, c, 2)
	c.ResumeReplication()
	requireStandby(t, c, 0, 1, 2)

	c.HoldReplication()
	write(t, c, 3)
	require.NoError(t, c.Failover(t.Context()))
	require.NotEqual(t, first, c.Addr())
	require.NoDirExists(t, firstDir)
	require.Equal(t, []int{0, 1, 2}, rows(t, c.PrimaryDSN()))
	write(t, c, 4)
	require.EqualError(t, c.Failover(t.Context()), "there is no standby to fail over to: call Rebuild first")
	c.HoldReplication() // of nothing
	c.ResumeReplication()

	require.NoError(t, c.Rebuild(t.Context()))
	requireStandby(t, c, 0, 1, 2, 4)
	write(t, c, 5)
	requireStandby(t, c, 0, 1, 2, 4, 5)
	c.HoldReplication()
	write(t, c, 6)
	require.NoError(t, c.Failover(t.Context()))
	require.Equal(t, []int{0, 1, 2, 4, 5}, rows(t, c.PrimaryDSN()))
	var timeline, wal string
	err := open(t, c.PrimaryDSN()).QueryRow(t.Context(), "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), current_setting('wal_writer_delay')").Scan(&timeline, &wal)
	require.NoError(t, err)
	require.Equal(t, "00000003", timeline)
	require.Equal(t, "10s", wal, "the settings are those of every server")
}

// A commit waits for the standby, so a failover loses none that returned.
func TestSync(t *testing.T) {
	c := newCluster(t, Config{Sync: true})
	for failover := range 2 {
		v := 10 * failover
		write(t, c, v+1)
		c.HoldReplication()
		returned := held(t, c, v+2)
		c.ResumeReplication()
		require.NoError(t, <-returned)

		c.HoldReplication()
		returned = held(t, c, v+3)
		require.NoError(t, c.Failover(t.Context()))
		require.Error(t, <-returned)
		write(t, c, v+4) // nobody waits for a standby that is not there
		require.NoError(t, c.Rebuild(t.Context()))
	}
	require.Equal(t, []int{0, 1, 2, 4, 11, 12, 14}, rows(t, c.PrimaryDSN()))
	requireStandby(t, c, 0, 1, 2, 4, 11, 12, 14)
}

// held begins a write and returns when its commit waits for the standby.
func held(t *testing.T, c *Cluster, v int) <-chan error {
	t.Helper()
	conn := open(t, c.PrimaryDSN())
	returned := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "INSERT INTO t VALUES ($1)", v)
		returned <- err
	}()
	primary, _, _ := c.servers()
	require.NoError(t, await(t.Context(), primary, "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')"))
	select {
	case err := <-returned:
		require.Fail(t, "the commit did not wait", "%v", err)
	default:
	}
	return returned
}

// A crash loses nothing that was committed, and clients find the primary again
// where it was. The standby follows on.
func TestCrash(t *testing.T) {
	c := newCluster(t, Config{Sync: true, Settings: map[string]string{"fsync": "on"}})
	p, err := proxy.Listen(c.Addr())
	require.NoError(t, err)
	defer p.Close()
	app := open(t, c.DSN(p.Addr()))
	for v := range 3 {
		write(t, c, v+1)
		require.NoError(t, c.Crash(t.Context()))
	}
	_, err = app.Exec(t.Context(), "SELECT")
	require.Error(t, err)
	require.Equal(t, []int{0, 1, 2, 3}, rows(t, c.DSN(p.Addr())))
	write(t, c, 4)
	requireStandby(t, c, 0, 1, 2, 3, 4)

	c.HoldReplication()
	require.NoError(t, c.Crash(t.Context()))
	returned := held(t, c, 5)
	c.ResumeReplication()
	require.NoError(t, <-returned)
	requireStandby(t, c, 0, 1, 2, 3, 4, 5)
}

// A standby made while the primary is written to has every row that was
// committed before and after.
func TestRebuildUnderLoad(t *testing.T) {
	c := newCluster(t, Config{})
	require.NoError(t, c.Failover(t.Context()))
	conn := open(t, c.PrimaryDSN())
	stop, written := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 1
		for ; ; n++ {
			select {
			case <-stop:
				written <- n
				return
			default:
			}
			if _, err := conn.Exec(context.Background(), "INSERT INTO t VALUES ($1)", n); err != nil {
				written <- -1
				return
			}
		}
	}()
	err := c.Rebuild(t.Context())
	close(stop)
	n := <-written
	require.NoError(t, err)
	require.Positive(t, n)
	_, standby, _ := c.servers()
	fencetest.Eventually(t, func() bool { return len(rows(t, standby.DSN(""))) == n })
	require.NoError(t, c.Failover(t.Context()))
	require.Len(t, rows(t, c.PrimaryDSN()), n)
}

// That no server stays is seen by Main: one that runs has a goroutine.
func TestStartFails(t *testing.T) {
	_, err := Start(t.Context(), Config{Settings: map[string]string{"synchronous_standby_names": "x"}})
	require.EqualError(t, err, "synchronous_standby_names changes with the standby: leave it out and set Sync")

	_, err = Start(t.Context(), Config{Setup: func(context.Context, string) error { return errors.New("no") }})
	if errors.Is(err, localpg.ErrNoServer) {
		t.Skip(err)
	}
	require.EqualError(t, err, "set up the primary: no")
	_, err = Start(t.Context(), Config{Settings: map[string]string{"wal_level": "minimal", "max_wal_senders": "0"}})
	require.ErrorContains(t, err, "back up the primary")
}
