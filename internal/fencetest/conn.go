// Package fencetest has what the tests of several packages share: plain
// connections, an installed database, and one way to wait.
package fencetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// Installed is a database in which migrations.Up has run.
var Installed = localpg.Template{Name: "installed", Setup: migrations.Up}

// InstalledWith is [Installed] where more was done, which all tests that give the name
// share: a copy is made in a fraction of the time.
func InstalledWith(name string, setup func(ctx context.Context, dsn string) error) localpg.Template {
	return localpg.Template{Name: name, Setup: func(ctx context.Context, dsn string) error {
		if err := migrations.Up(ctx, dsn); err != nil {
			return err
		}
		return setup(ctx, dsn)
	}}
}

// Exec runs statements in the setup of a template.
func Exec(ctx context.Context, dsn string, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// Open opens a plain connection, which is closed when the test ends.
func Open(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Run sends statements over a connection of [With].
func Run(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	With(t, dsn, func(conn *pgx.Conn) {
		t.Helper()
		for _, s := range statements {
			_, err := conn.Exec(context.Background(), s) // also in a cleanup
			require.NoError(t, err, s)
		}
	})
}

// With calls use with a plain connection. Afterwards the session is reset: what use has
// left open is rolled back, and what it has set is forgotten. The connection is kept for the next call with the same DSN until the
// test ends that was the first to call: to connect costs more than most statements.
// Goroutines may call it side by side, and so may cleanups.
func With(t testing.TB, dsn string, use func(conn *pgx.Conn)) {
	t.Helper()
	conn := take(t, dsn)
	defer give(dsn, conn)
	use(conn)
}

// Disconnect closes the connections that With keeps for the DSN, for a test that needs a
// database to itself or counts its sessions.
func Disconnect(dsn string) {
	kept.Lock()
	conns := kept.idle[dsn]
	if conns != nil {
		kept.idle[dsn] = []*pgx.Conn{}
	}
	kept.Unlock()
	closeAll(conns)
}

// kept are the idle connections by DSN. A DSN has an entry as long as its first test runs.
var kept = struct {
	sync.Mutex
	idle map[string][]*pgx.Conn
}{idle: make(map[string][]*pgx.Conn)}

// take returns an idle connection that still works, or a new one.
func take(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	for conn := pop(t, dsn); conn != nil; conn = pop(t, dsn) {
		if conn.Ping(context.Background()) == nil {
			return conn
		}
		_ = conn.Close(context.Background()) // it was cut off
	}
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no prepared statements: a reset drops them
	conn, err := pgx.ConnectConfig(context.Background(), config)
	require.NoError(t, err)
	return conn
}

// reset makes a session what it was when it began, so that it holds nobody up.
func reset(ctx context.Context, conn *pgx.Conn) error {
	if conn.PgConn().TxStatus() != 'I' {
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "DISCARD ALL")
	return err
}

// pop returns an idle connection, or nil. The first test that asks makes the entry, and
// removes it when it ends.
func pop(t testing.TB, dsn string) *pgx.Conn {
	kept.Lock()
	defer kept.Unlock()
	idle, isKnown := kept.idle[dsn]
	if !isKnown {
		kept.idle[dsn] = []*pgx.Conn{}
		t.Cleanup(func() { forget(dsn) })
	}
	if len(idle) == 0 {
		return nil
	}
	conn := idle[len(idle)-1]
	kept.idle[dsn] = idle[:len(idle)-1]
	return conn
}

// give keeps a connection, or closes it if the test has ended that was the first.
func give(dsn string, conn *pgx.Conn) {
	if conn.IsClosed() || reset(context.Background(), conn) != nil {
		closeAll([]*pgx.Conn{conn})
		return
	}
	kept.Lock()
	idle, isKnown := kept.idle[dsn]
	if isKnown {
		kept.idle[dsn] = append(idle, conn)
	}
	kept.Unlock()
	if !isKnown {
		closeAll([]*pgx.Conn{conn})
	}
}

func forget(dsn string) {
	kept.Lock()
	idle := kept.idle[dsn]
	delete(kept.idle, dsn)
	kept.Unlock()
	closeAll(idle)
}

func closeAll(conns []*pgx.Conn) {
	for _, conn := range conns {
		_ = conn.Close(context.Background())
	}
}
