package localpg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// connect opens a connection that ends with the test.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// query returns the one value that sql selects.
func query[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

// serverProcesses lists what runs on a data directory: on Linux the backends
// too, which have it as their working directory but not in their command line.
func serverProcesses(t *testing.T, data string) []int {
	t.Helper()
	list, err := processes()
	require.NoError(t, err)
	var pids []int
	for _, p := range list {
		cwd, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.pid), "cwd"))
		if cwd == data || strings.Contains(p.command, data) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

func TestLifeCycle(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	begin := time.Now()
	srv, err := Start(ctx, WithSetting("work_mem", "5MB"))
	require.NoError(t, err)
	t.Logf("start: %s", time.Since(begin))
	defer srv.Stop()

	require.NoError(t, srv.CreateDatabase(ctx, `odd "name"/?`, ""))
	dsn := srv.DSN(`odd "name"/?`)
	conn := connect(t, dsn)
	require.Equal(t, `odd "name"/?`, query[string](t, conn, "SELECT current_database()"))
	require.Equal(t, "off", query[string](t, conn, "SHOW fsync"))
	require.Equal(t, "on", query[string](t, conn, "SHOW full_page_writes"))
	require.Equal(t, "5MB", query[string](t, conn, "SHOW work_mem"))
	require.Equal(t, "UTF8", query[string](t, conn, "SHOW server_encoding"))
	require.Equal(t, "C", query[string](t, conn, "SELECT datcollate FROM pg_database WHERE datname = current_database()"))
	require.Equal(t, srv.Version(), query[string](t, conn, "SHOW server_version"))
	require.Equal(t, srv.Major(), query[int](t, conn, "SELECT current_setting('server_version_num')::int / 10000"))
	require.True(t, strings.HasPrefix(srv.Version(), strconv.Itoa(srv.Major())))
	require.Empty(t, query[string](t, conn, "SHOW listen_addresses"))
	info, err := os.Stat(filepath.Dir(srv.DataDir()))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "whoever reaches the socket is a superuser")

	_, err = conn.Exec(ctx, "CREATE TABLE t (i int); INSERT INTO t VALUES (7)")
	require.NoError(t, err)
	require.NotEmpty(t, serverProcesses(t, srv.DataDir()))
	require.NoError(t, srv.Kill())
	require.Empty(t, serverProcesses(t, srv.DataDir()))
	require.Error(t, ping(ctx, dsn))
	require.EqualError(t, srv.Kill(), "the server does not run: call Restart first")

	begin = time.Now()
	require.NoError(t, srv.Restart(ctx))
	t.Logf("restart after a crash: %s", time.Since(begin))
	conn = connect(t, dsn)
	require.Equal(t, 7, query[int](t, conn, "SELECT i FROM t"))

	begin = time.Now()
	require.NoError(t, srv.Restart(ctx))
	t.Logf("restart in order: %s", time.Since(begin))
	require.Equal(t, 7, query[int](t, connect(t, dsn), "SELECT i FROM t"))

	require.NoError(t, srv.DropDatabase(ctx, `odd "name"/?`))
	require.NoError(t, srv.DropDatabase(ctx, `odd "name"/?`), "there is none")
	require.Error(t, ping(ctx, dsn))

	begin = time.Now()
	require.NoError(t, srv.Stop())
	t.Logf("stop: %s", time.Since(begin))
	require.NoDirExists(t, filepath.Dir(srv.DataDir()))
	require.Empty(t, serverProcesses(t, srv.DataDir()))
	require.NoError(t, srv.Stop(), "a second call does nothing")
	require.ErrorIs(t, srv.Kill(), errStopped)
	require.ErrorIs(t, srv.Restart(ctx), errStopped)
}

// A backend that computes doesn't notice that its postmaster is gone.
func TestKillWithBusyBackend(t *testing.T) {
	t.Parallel()
	srv := StartServer(t, WithSetting("fsync", "on"))
	conn := connect(t, srv.DSN("postgres"))
	require.Equal(t, "on", query[string](t, conn, "SHOW fsync"))
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SET statement_timeout = '60s'; DO 'BEGIN LOOP END LOOP; END'")
		failed <- err
	}()
	watch := connect(t, srv.DSN("postgres"))
	require.Eventually(t, func() bool {
		return query[bool](t, watch, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%LOOP%' AND state = 'active' AND pid <> pg_backend_pid())")
	}, databaseTimeout, 10*time.Millisecond)
	require.NoError(t, srv.Kill())
	require.Empty(t, serverProcesses(t, srv.DataDir()))
	require.Error(t, <-failed)
	// Stop, in Cleanup, after Kill: the directory goes all the same.
}

func TestStartFails(t *testing.T) {
	// An empty place, to see what is left behind.
	tmp, err := os.MkdirTemp("", "lpg") //nolint:usetesting // only we may enter t.TempDir
	require.NoError(t, err)
	defer os.RemoveAll(tmp)
	require.NoError(t, os.Chmod(tmp, 0o755))
	t.Setenv("TMPDIR", tmp)

	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller has no time"))
	tests := []struct {
		name string
		ctx  context.Context
		opt  Option
		want []string
	}{
		{"a setting the server refuses", t.Context(), WithSetting("shared_buffers", "nonsense"),
			[]string{"postgres ended before it took a connection", `invalid value for parameter "shared_buffers"`}},
		{"a name that is none", t.Context(), WithSetting("fsync=off -c x", "on"), []string{"is not the name of a server parameter"}},
		{"no name", t.Context(), WithSetting("", "on"), []string{"is not the name of a server parameter"}},
		{"a reserved one", t.Context(), WithSetting("Port", "1"), []string{"Port is set by localpg: leave it out"}},
		{"a context that is over", canceled, WithSetting("fsync", "on"), []string{"the caller has no time"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Start(tt.ctx, tt.opt)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			left, err := os.ReadDir(tmp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestOptionsAsArguments(t *testing.T) {
	o, err := newOptions([]Option{WithSetting("auto_explain.log_min_duration", "0"), WithSetting("DateStyle", "ISO")})
	require.NoError(t, err)
	args := o.args()
	require.Equal(t, []string{"-c", "auto_explain.log_min_duration=0", "-c", "DateStyle=ISO"}, args[len(args)-4:])
}

// A server takes over a copy of another one's data, as a standby does.
func TestWithData(t *testing.T) {
	t.Parallel()
	from := StartServer(t)
	require.NoError(t, from.CreateDatabase(t.Context(), "copied", ""))
	require.NotEmpty(t, from.LogTail())
	require.NoError(t, from.Kill())
	srv := StartServer(t, WithData(func(_ context.Context, dir string) error {
		if err := os.CopyFS(dir, os.DirFS(from.DataDir())); err != nil {
			return err
		}
		return os.Remove(filepath.Join(dir, "postmaster.pid"))
	}))
	require.NoError(t, ping(t.Context(), srv.DSN("copied")))
	require.NoError(t, srv.Kill())
	require.NoError(t, srv.Restart(t.Context()))
	require.NoError(t, ping(t.Context(), srv.DSN("copied")))
	require.NoError(t, srv.Stop())
	require.Empty(t, srv.LogTail())

	var wrote string
	_, err := Start(t.Context(), WithData(func(_ context.Context, dir string) error {
		wrote = dir
		return errors.New("no data")
	}))
	require.ErrorContains(t, err, "write the data directory: no data")
	require.NoDirExists(t, filepath.Dir(wrote))
	require.Empty(t, (&Server{}).LogTail())
}
