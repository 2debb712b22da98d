package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

const (
	bareOrders = `UPDATE orders SET status = 'x'`
	bareJobs   = `UPDATE jobs SET status = 'x'`
)

// lostState is a primary, and a standby that has not heard of its last changes:
// there orders is at enforce and jobs isn't registered. On the primary orders is at
// report and jobs at enforce.
type lostState struct{ primary, standby *localpg.Server }

func newLostState(t *testing.T) lostState {
	t.Helper()
	s := lostState{primary: localpg.StartServer(t)}
	run(t, s.primary.DSN(""), levelSchema)
	require.NoError(t, migrations.Up(t.Context(), s.primary.DSN("")))
	require.NoError(t, migrations.Register(t.Context(), s.primary.DSN(""), migrations.Table{Name: "orders", Mode: migrations.Lease}))
	require.NoError(t, s.primary.Kill())
	s.standby = localpg.StartServer(t, localpg.WithData(func(_ context.Context, dir string) error {
		return errors.Join(os.CopyFS(dir, withoutPID{os.DirFS(s.primary.DataDir())}), os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o600))
	}))
	require.NoError(t, s.primary.Restart(t.Context()))
	require.NoError(t, migrations.SetLevel(t.Context(), s.primary.DSN(""), "orders", migrations.Report))
	require.NoError(t, migrations.Register(t.Context(), s.primary.DSN(""), migrations.Table{Name: "jobs", Mode: migrations.Lease}))
	return s
}

// withoutPID is a data directory without the server's own files.
type withoutPID struct{ fs.FS }

func (d withoutPID) ReadDir(name string) (kept []fs.DirEntry, err error) {
	entries, err := fs.ReadDir(d.FS, name)
	for _, e := range entries {
		if e.Name() != "postmaster.pid" && e.Name() != "postmaster.opts" {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// switched is a handle whose new connections lead to the server that was chosen
// last.
type switched struct {
	*sql.DB
	to atomic.Pointer[localpg.Server]
}

func (s *switched) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	config, err := pgconn.ParseConfig(s.to.Load().DSN(""))
	if err != nil {
		return nil, err
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	return new(net.Dialer).DialContext(ctx, network, address)
}

func openSwitched(t *testing.T, to *localpg.Server, opts ...driver.Option) *switched {
	t.Helper()
	s := new(switched)
	s.to.Store(to)
	config, err := pgx.ParseConfig(to.DSN(""))
	require.NoError(t, err)
	config.DialFunc = s.dial
	connector, err := driver.NewConnector(*config, opts...)
	require.NoError(t, err)
	s.DB = sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// on has the statement sent by a new connection to a server.
func (s *switched) on(t *testing.T, to *localpg.Server, statement string) error {
	t.Helper()
	s.to.Store(to)
	s.SetMaxIdleConns(0)
	_, err := s.ExecContext(t.Context(), statement)
	s.SetMaxIdleConns(2)
	return err
}

// After a failover that has lost changes of the registry, a handle goes by what is
// left of it: a table at enforce isn't passed, and one whose registration was lost
// isn't refused. Neither a lagging standby nor an old primary that is still alive
// brings anything back.
func TestFailoverLosesTheRegistry(t *testing.T) {
	for name, opts := range map[string][]driver.Option{
		"interval": {driver.WithRefreshInterval(shortInterval)},
		"long":     {driver.WithRefreshInterval(time.Hour)},
		"listener": {driver.WithRefreshInterval(time.Hour), driver.WithRegistryListener()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLostState(t)
			db := openSwitched(t, s.primary, opts...)
			requireLost := func() {
				t.Helper()
				require.NoError(t, db.on(t, s.primary, bareOrders))
				require.ErrorIs(t, db.on(t, s.primary, bareJobs), rewrite.ErrRefused)
			}
			requireLost()
			var one int
			db.to.Store(s.standby)
			for range 3 {
				db.SetMaxIdleConns(0)
				require.NoError(t, db.QueryRow(`SELECT 1`).Scan(&one), "a connection to the standby opens")
			}
			requireLost()

			run(t, s.standby.DSN(""), `SELECT pg_promote(true, 60)`)
			requireKept := func(on *localpg.Server) {
				t.Helper()
				require.ErrorIs(t, db.on(t, on, bareOrders), rewrite.ErrRefused)
				require.NoError(t, db.on(t, on, bareJobs))
			}
			requireKept(s.standby)
			requireKept(s.primary) // alive, and old
			requireKept(s.standby)
			require.NoError(t, migrations.SetLevel(t.Context(), s.primary.DSN(""), "orders", migrations.Off))
			requireKept(s.primary)
			require.NoError(t, migrations.SetLevel(t.Context(), s.standby.DSN(""), "orders", migrations.Off))
			require.NoError(t, db.on(t, s.standby, bareOrders))
		})
	}
}

// The same by connections that are kept, which look again between statements.
func TestFailoverUnderKeptConnections(t *testing.T) {
	s := newLostState(t)
	db := openSwitched(t, s.primary, driver.WithRefreshInterval(time.Nanosecond))
	db.SetMaxIdleConns(8)
	old, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = old.ExecContext(t.Context(), bareOrders)
	require.NoError(t, err)
	db.to.Store(s.standby)
	kept, err := db.Conn(t.Context())
	require.NoError(t, err)
	_, err = kept.ExecContext(t.Context(), bareJobs)
	require.ErrorIs(t, err, rewrite.ErrRefused, "a standby tells nothing")
	require.NoError(t, kept.Close())
	run(t, s.standby.DSN(""), `SELECT pg_promote(true, 60)`)
	for range 3 { // old is taken, so this is kept
		_, err = db.Exec(bareOrders)
		require.ErrorIs(t, err, rewrite.ErrRefused)
		_, err = db.Exec(bareJobs)
		require.NoError(t, err)
	}
	held, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, old.Close())
	for range 3 { // by the connection to the old primary
		_, err = db.Exec(bareOrders)
		require.ErrorIs(t, err, rewrite.ErrRefused)
	}
	_, err = held.ExecContext(t.Context(), bareOrders)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.NoError(t, held.Close())
}

// A role that may not read the timeline or the system identifier still learns of
// what was restored.
func TestFailoverWithoutRights(t *testing.T) {
	for name, revoke := range map[string]string{
		"system identifier": `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`,
		"timeline":          `REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC`,
		"all":               `REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn), pg_current_wal_lsn(), pg_postmaster_start_time() FROM PUBLIC`,
	} {
		t.Run(name, func(t *testing.T) {
			dsn := registered(t)
			require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			role := "poor_" + config.Database
			run(t, dsn, revoke, `CREATE ROLE "`+role+`" LOGIN`, `GRANT USAGE ON SCHEMA fencing TO "`+role+`"`, `GRANT SELECT ON fencing.registry, fencing.generation TO "`+role+`"`, `GRANT ALL ON orders, jobs TO "`+role+`"`)
			t.Cleanup(func() { run2(t, dsn, `DROP OWNED BY "`+role+`"`, `DROP ROLE "`+role+`"`) })
			config.User = role
			connector, err := driver.NewConnector(*config, driver.WithRefreshInterval(shortInterval))
			require.NoError(t, err)
			db := sql.OpenDB(connector)
			defer db.Close()
			_, err = db.Exec(bareOrders)
			require.ErrorIs(t, err, rewrite.ErrRefused)
			run(t, dsn, `UPDATE fencing.registry SET driver_level = 'off'`, `UPDATE fencing.generation SET value = 1`)
			fencetest.Eventually(t, func() bool { _, err := db.Exec(bareOrders); return err == nil })
		})
	}
}

// restored puts the registry of the database that it is run in back to an older
// state by hand, as a restore does: orders at another level, and a generation that
// was there before.
func restored(level string, generation int) []string {
	return []string{
		`BEGIN`, `ALTER TABLE fencing.registry DISABLE TRIGGER ALL`, `UPDATE fencing.registry SET driver_level = '` + level + `' WHERE table_name = 'orders'`,
		`ALTER TABLE fencing.registry ENABLE TRIGGER ALL`, `UPDATE fencing.generation SET value = value + ` + strconv.Itoa(generation), `COMMIT`,
	}
}

// A registry that was restored counts, whether its generation is smaller, equal or
// greater than the one that was known.
func TestRestoredRegistry(t *testing.T) {
	for name, generation := range map[string]int{"smaller": -1, "much smaller": -100, "equal": 0, "greater": 1} {
		for _, levels := range [][2]string{{"report", "enforce"}, {"enforce", "off"}} {
			t.Run(name+"/"+levels[1], func(t *testing.T) {
				t.Parallel()
				dsn := registered(t)
				require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
				run(t, dsn, `UPDATE fencing.generation SET value = 200`)
				require.NoError(t, migrations.SetLevel(t.Context(), dsn, "orders", migrations.Level(levels[0])))
				pooled, err := driver.Open(dsn, driver.WithRefreshInterval(shortInterval))
				require.NoError(t, err)
				defer pooled.Close()
				fresh, err := driver.Open(dsn, driver.WithRefreshInterval(time.Hour))
				require.NoError(t, err)
				defer fresh.Close()
				fresh.SetMaxIdleConns(0)
				run(t, dsn, restored(levels[1], generation)...)
				for _, db := range []*sql.DB{pooled, fresh} {
					fencetest.Eventually(t, func() bool {
						_, err := db.Exec(bareOrders)
						return (levels[1] == "enforce") == errors.Is(err, rewrite.ErrRefused)
					})
				}
			})
		}
	}
}

// So does one that was taken down and put up again, and that of a database which
// was dropped and restored under its name.
func TestRegistryMadeAgain(t *testing.T) {
	ways := map[string]func(t *testing.T, dsn string){
		"schema": func(t *testing.T, dsn string) {
			run(t, dsn, `DROP SCHEMA fencing CASCADE`)
			require.NoError(t, migrations.Up(t.Context(), dsn))
		},
		"database": func(t *testing.T, dsn string) {
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			name, admin := config.Database, *config
			admin.Database = "postgres"
			conn, err := pgx.ConnectConfig(t.Context(), &admin)
			require.NoError(t, err)
			defer conn.Close(context.Background())
			for _, s := range []string{`DROP DATABASE "` + name + `" WITH (FORCE)`, `CREATE DATABASE "` + name + `"`} {
				_, err = conn.Exec(t.Context(), s)
				require.NoError(t, err)
			}
			run(t, dsn, levelSchema)
			require.NoError(t, migrations.Up(t.Context(), dsn))
		},
	}
	for name, again := range ways {
		for _, listens := range []bool{false, true} {
			t.Run(name+"/"+strconv.FormatBool(listens), func(t *testing.T) {
				dsn := registered(t)
				require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "jobs", Mode: migrations.Lease}))
				run(t, dsn, `UPDATE fencing.generation SET value = 1000`)
				opts := []driver.Option{driver.WithRefreshInterval(shortInterval)}
				if listens {
					opts = []driver.Option{driver.WithRefreshInterval(time.Hour), driver.WithRegistryListener()}
				}
				db, err := driver.Open(dsn, opts...)
				require.NoError(t, err)
				defer db.Close()
				again(t, dsn)
				require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
				fencetest.Eventually(t, func() bool {
					_, orders := db.Exec(bareOrders)
					_, jobs := db.Exec(bareJobs)
					return errors.Is(orders, rewrite.ErrRefused) && jobs == nil
				})
			})
		}
	}
}
