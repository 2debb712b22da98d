package lease_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// draw is a way to draw tokens: one that gives them out again, as a control
// that the test can fail, and ours.
type draw struct{ name, database, call string }

var (
	bare    = draw{"bare nextval", "", "nextval('bare')"}
	ours    = draw{"next_token", "", "fencing.next_token()"}
	managed = draw{"next_token on a managed server", "managed", "fencing.next_token()"}
)

// quiet has a server flush nothing that nobody waits for.
func quiet(t *testing.T) *localpg.Server {
	t.Helper()
	return localpg.StartServer(t, localpg.WithSetting("fsync", "on"), localpg.WithSetting("wal_writer_delay", "10s"), localpg.WithSetting("autovacuum", "off"))
}

// behindPrelog draws while another session has logged the sequence ahead and
// not committed, so that a bare nextval by itself writes no WAL.
func behindPrelog(t *testing.T, srv *localpg.Server, d draw, setup string) (drawn int64) {
	t.Helper()
	a, b := session(t, srv.DSN(d.database), "SELECT"), session(t, srv.DSN(d.database), setup)
	tx, err := a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = tx.Rollback()
		_ = errors.Join(a.Close(), b.Close())
	})
	exec(t, tx, "SELECT "+d.call)
	return get[int64](t, b, "SELECT "+d.call)
}

// requireReissue checks the next token against the last one before.
func requireReissue(t *testing.T, db *sql.DB, d draw, last int64) {
	t.Helper()
	first := get[int64](t, db, "SELECT "+d.call)
	if d == bare {
		require.LessOrEqual(t, first, last, "the control shows nothing: the values were not lost")
		return
	}
	require.Greater(t, first, last, d.name)
	require.Equal(t, first+1, get[int64](t, db, "SELECT "+d.call))
}

func TestTokensSurviveSIGKILL(t *testing.T) {
	t.Parallel()
	srv := quiet(t)
	require.NoError(t, migrations.Up(t.Context(), srv.DSN("")))
	exec(t, open(t, srv.DSN("")), "CREATE SEQUENCE bare")
	for _, tt := range []struct {
		draw
		setup string
	}{{bare, "SELECT"}, {ours, "SELECT"}, {ours, "SET synchronous_commit = off"}} {
		t.Run(tt.name+"/"+tt.setup, func(t *testing.T) {
			exec(t, open(t, srv.DSN("")), "CHECKPOINT")
			last := behindPrelog(t, srv, tt.draw, tt.setup)
			require.NoError(t, srv.Kill())
			require.NoError(t, srv.Restart(t.Context()))
			requireReissue(t, open(t, srv.DSN("")), tt.draw, last)
		})
	}
}

// A standby is promoted that has not received what the last tokens were drawn
// in: asynchronous, it lacks more than the 32 values that a sequence logs ahead;
// synchronous, only what no commit waited for.
func TestTokensSurvivePromotion(t *testing.T) {
	t.Parallel()
	for name, synchronous := range map[string]bool{"asynchronous": false, "synchronous": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := quiet(t)
			standby := standbyOf(t, primary)
			draws := []draw{managed, ours, bare} // whose last draw nothing flushes
			admin := open(t, primary.DSN(""))
			require.NoError(t, migrations.Up(t.Context(), primary.DSN("")))
			exec(t, admin, "CREATE SEQUENCE bare; CREATE ROLE app LOGIN")
			exec(t, admin, "CREATE DATABASE managed OWNER app")
			exec(t, open(t, primary.DSN("managed")), "REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn) FROM PUBLIC")
			require.NoError(t, migrations.Up(t.Context(), asRole(primary.DSN("managed"), "app")))
			eventually(t, admin, 1, "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()")

			last := make(map[draw]int64)
			if synchronous {
				exec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '*'")
				exec(t, admin, "SELECT pg_reload_conf()")
				eventually(t, admin, 1, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
				for _, d := range draws {
					last[d] = behindPrelog(t, primary, d, "SELECT")
				}
			} else {
				away := open(t, standby.DSN(""))
				exec(t, away, "ALTER SYSTEM SET primary_conninfo = ''")
				exec(t, away, "SELECT pg_reload_conf()")
				eventually(t, admin, 0, "SELECT count(*) FROM pg_stat_replication")
				require.NoError(t, away.Close())
				for _, d := range draws {
					last[d] = get[int64](t, open(t, primary.DSN(d.database)), "SELECT max("+d.call+") FROM generate_series(1, 40)")
				}
			}
			require.NoError(t, primary.Kill())
			exec(t, open(t, standby.DSN("")), "SELECT pg_promote(true, 60)")
			for _, d := range draws {
				requireReissue(t, open(t, standby.DSN(d.database)), d, last[d])
			}
		})
	}
}

// standbyOf is a standby that streams from a server, which it is a copy of.
func standbyOf(t *testing.T, primary *localpg.Server) *localpg.Server {
	t.Helper()
	cp, err := osexec.LookPath("cp")
	if err != nil {
		t.Skipf("copies a data directory with its owner: %v", err)
	}
	standby := quiet(t)
	require.NoError(t, errors.Join(primary.Kill(), standby.Kill()))
	old, err := filepath.Glob(standby.DataDir() + "/*")
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.RemoveAll(path))
	}
	out, err := osexec.CommandContext(t.Context(), cp, "-a", primary.DataDir()+"/.", standby.DataDir()).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Remove(standby.DataDir()+"/postmaster.pid"))
	config, err := pgx.ParseConfig(primary.DSN(""))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(standby.DataDir()+"/standby.signal", nil, 0o644))
	settings, err := os.OpenFile(standby.DataDir()+"/postgresql.auto.conf", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(settings, "primary_conninfo = 'host=%s port=%d user=%s'\n", config.Host, config.Port, config.User)
	require.NoError(t, errors.Join(err, settings.Close(), primary.Restart(t.Context()), standby.Restart(t.Context())))
	return standby
}

// asRole is dsn for a role that may log in without a password.
func asRole(dsn, role string) string { return strings.Replace(dsn, "//postgres@", "//"+role+"@", 1) }
