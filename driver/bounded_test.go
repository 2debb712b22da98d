package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

// locks are what somebody holds while others read. What a backend needs to start
// isn't among them: plain pgx can't connect then either.
var locks = map[string]string{
	"registry":   `LOCK fencing.registry IN ACCESS EXCLUSIVE MODE`,
	"generation": `LOCK fencing.generation IN ACCESS EXCLUSIVE MODE`,
	"schema":     `ALTER TABLE fencing.registry ADD COLUMN q int`,
	"catalog":    `LOCK pg_catalog.pg_constraint IN ACCESS EXCLUSIVE MODE`,
	"inherits":   `LOCK pg_catalog.pg_inherits IN ACCESS EXCLUSIVE MODE`,
	"a table":    `LOCK orders IN ACCESS EXCLUSIVE MODE`,
}

// holdLock has a lock held until release is called.
func holdLock(t *testing.T, dsn, lock string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `BEGIN`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), lock)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func() {
		_, err := conn.Exec(t.Context(), `ROLLBACK`)
		require.NoError(t, err)
	}
}

// backends returns the backends of a handle's connections.
func backends(t *testing.T, conns []*sql.Conn) (pids []int) {
	t.Helper()
	for _, conn := range conns {
		var pid int
		require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
		pids = append(pids, pid)
	}
	return pids
}

// takeAll takes n connections of a handle at once.
func takeAll(t *testing.T, db *sql.DB, n int) (conns []*sql.Conn) {
	t.Helper()
	for range n {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	return conns
}

func giveBack(t *testing.T, conns []*sql.Conn) {
	t.Helper()
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
}

// While somebody holds a lock that the looks need, the handle's connections stay,
// and statements go by what is known, with and without a deadline; new connections
// too, and afterwards the handle learns what has changed. The test's own bound is
// that of the lock, which is held until all of it has happened.
func TestLockedOut(t *testing.T) {
	for name, lock := range locks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := registered(t)
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
			run(t, dsn, `CREATE TABLE notes (id int)`)
			var log eventLog
			db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond), log.option())
			require.NoError(t, err)
			defer db.Close()
			db.SetMaxIdleConns(4)
			conns := takeAll(t, db, 3)
			pids := backends(t, conns)
			giveBack(t, conns)
			release := holdLock(t, dsn, lock)

			for range 3 {
				_, err = db.Exec(`INSERT INTO notes VALUES (1)`)
				require.NoError(t, err)
				_, err = db.Exec(`DELETE FROM orders`)
				require.ErrorIs(t, err, rewrite.ErrRefused)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_, err = db.ExecContext(ctx, `INSERT INTO notes VALUES (1)`)
				cancel()
				require.NoError(t, err)
			}
			conns = takeAll(t, db, 4)
			require.Subset(t, backends(t, conns), pids, "a look that was locked out costs no connection")
			_, err = conns[3].ExecContext(t.Context(), `DELETE FROM orders`)
			require.ErrorIs(t, err, rewrite.ErrRefused, "a new connection goes by what is known")
			giveBack(t, conns)
			if name != "a table" { // which nothing has to be read from
				require.True(t, log.has(driver.EventUnread))
			}

			release()
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "jobs", Mode: migrations.Lease}))
			requireRefusedSoon(t, db, bareJobs)
		})
	}
}

// A handle that has never read the registry has nothing to go by: it gives an
// error that says what is in the way, and isn't left open.
func TestLockedOutAtFirst(t *testing.T) {
	dsn := registered(t)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	release := holdLock(t, dsn, locks["registry"])
	db, err := sql.Open("fencerow", dsn)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(bareOrders)
	require.ErrorContains(t, err, "somebody holds a lock on the registry")
	require.NotErrorIs(t, err, rewrite.ErrRefused)
	release()
	_, err = db.Exec(bareOrders)
	require.ErrorIs(t, err, rewrite.ErrRefused)
}

// silent lets the connections that are dialed while it is on, go dead after their
// server has let them in.
type silent struct{ on atomic.Bool }

type silentConn struct {
	net.Conn
	dead atomic.Bool
}

func (s *silent) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil || !s.on.Load() {
		return conn, err
	}
	return &silentConn{Conn: conn}, nil
}

// Write lets go of nothing but what a session begins with.
func (c *silentConn) Write(b []byte) (int, error) {
	if len(b) > 0 && (b[0] == 'P' || b[0] == 'Q') {
		c.dead.Store(true)
	}
	if c.dead.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A handle whose new connection has gone silent, while a change of its own is
// unread, makes nobody else wait for it.
func TestSilentConnection(t *testing.T) {
	dsn := registered(t)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	run(t, dsn, `CREATE TABLE notes (id int)`)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	var s silent
	config.DialFunc = s.dial
	connector, err := driver.NewConnector(*config, driver.WithRefreshInterval(time.Hour))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	healthy := takeAll(t, db, 2)
	_, err = healthy[0].ExecContext(t.Context(), `CREATE VIEW other AS SELECT * FROM notes`)
	require.NoError(t, err)
	s.on.Store(true)
	opened := make(chan error, 1)
	ended, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		conn, err := db.Conn(ended) // reads what has changed, and hears nothing
		if err == nil {
			err = errors.Join(errors.New("opened"), conn.Close())
		}
		opened <- err
	}()
	fencetest.Eventually(t, func() bool { return db.Stats().OpenConnections == 3 })
	giveBack(t, healthy)
	for range 3 {
		_, err = db.Exec(`INSERT INTO notes VALUES (1)`)
		require.NoError(t, err)
		_, err = db.Exec(bareOrders)
		require.ErrorIs(t, err, rewrite.ErrRefused)
	}
	select {
	case err := <-opened:
		require.NoError(t, err, "the new connection has ended before the others were asked")
	default:
	}
	require.ErrorContains(t, <-opened, "timeout", "without a deadline of the caller's")
}
