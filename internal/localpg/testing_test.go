package localpg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// databases lists a server's databases by a prefix.
func databases(t *testing.T, conn *pgx.Conn, prefix string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY 1", prefix)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

// fresh makes a template's name new also to go test -count=2, which keeps the
// shared server.
func fresh(name string) string { return fmt.Sprint(name, names.Add(1)) }

var names atomic.Int32

// counted is a template that counts its setups and leaves its connection open.
func counted(name string, setups *atomic.Int32, conns *[]*pgx.Conn) Template {
	return Template{Name: name, Setup: func(ctx context.Context, dsn string) error {
		setups.Add(1)
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		*conns = append(*conns, conn)
		_, err = conn.Exec(ctx, "CREATE TABLE items (name text); INSERT INTO items VALUES ('from the template')")
		return err
	}}
}

func TestDatabase(t *testing.T) {
	var setups atomic.Int32
	var conns []*pgx.Conn
	tmpl := counted(fresh("items"), &setups, &conns)
	var made [6]string
	t.Run("tests", func(t *testing.T) {
		for i := range made {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				if i == 0 {
					conn := connect(t, Database(t))
					require.Zero(t, query[int](t, conn, "SELECT count(*) FROM pg_class WHERE relname = 'items'"))
					made[i] = query[string](t, conn, "SELECT current_database()")
					return
				}
				conn := connect(t, Database(t, tmpl))
				made[i] = query[string](t, conn, "SELECT current_database()")
				_, err := conn.Exec(t.Context(), "INSERT INTO items VALUES ($1)", t.Name())
				require.NoError(t, err)
				require.Equal(t, 2, query[int](t, conn, "SELECT count(*) FROM items"))
			})
		}
	})
	for _, conn := range conns {
		_ = conn.Close(t.Context())
	}
	require.EqualValues(t, 1, setups.Load())
	conn := connect(t, Database(t))
	left := databases(t, conn, databasePrefix)
	for _, name := range made {
		require.True(t, strings.HasPrefix(name, databasePrefix), name)
		require.NotContains(t, left, name, "dropped with its test")
	}
}

func TestTemplateFromAnother(t *testing.T) {
	var setups atomic.Int32
	var conns []*pgx.Conn
	base := counted(fresh("base"), &setups, &conns)
	more := Template{Name: fresh("more"), From: &base, Setup: func(ctx context.Context, dsn string) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "INSERT INTO items VALUES ('more')")
		return err
	}}
	for range 2 {
		require.Equal(t, 2, query[int](t, connect(t, Database(t, more)), "SELECT count(*) FROM items"))
	}
	require.Equal(t, 1, query[int](t, connect(t, Database(t, base)), "SELECT count(*) FROM items"))
	require.EqualValues(t, 1, setups.Load())
	for _, conn := range conns {
		_ = conn.Close(t.Context())
	}

	failing := Template{Name: fresh("failing"), Setup: func(context.Context, string) error { return errors.New("no such thing") }}
	_, _, err := shared.database([]Template{{Name: fresh("of failing"), From: &failing}})
	require.ErrorContains(t, err, fmt.Sprintf("template %q: setup: no such thing", failing.Name))
}

func TestDatabaseErrors(t *testing.T) {
	calls := 0
	failing := Template{Name: fresh("failing"), Setup: func(context.Context, string) error {
		calls++
		return errors.New("no such thing")
	}}
	panicking := Template{Name: fresh("panicking"), Setup: func(context.Context, string) error { panic("oh") }}

	for range 2 {
		_, _, err := shared.database([]Template{failing})
		require.EqualError(t, err, fmt.Sprintf("template %q: setup: no such thing", failing.Name))
	}
	require.Equal(t, 1, calls, "once, for all tests")

	require.Panics(t, func() { _, _, _ = shared.database([]Template{panicking}) })
	_, _, err := shared.database([]Template{panicking})
	require.EqualError(t, err, fmt.Sprintf("template %q: setup did not return", panicking.Name))

	_, _, err = shared.database([]Template{failing, panicking})
	require.EqualError(t, err, "a database is a copy of one template: put all steps into one Setup")
}

// keywords writes a URL of ours in the other form.
func keywords(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	return fmt.Sprintf("host='%s' port=%s user=%s dbname=%s sslmode=disable", q.Get("host"), q.Get("port"), u.User.Username(), u.Path[1:])
}

func TestExistingServer(t *testing.T) {
	ctx := t.Context()
	srv := StartServer(t)
	for form, dsn := range map[string]string{"url": srv.DSN(""), "keywords": keywords(t, srv.DSN(""))} {
		t.Run(form, func(t *testing.T) {
			t.Setenv(envURL, dsn)
			s, err := Open(ctx)
			require.NoError(t, err)
			require.Equal(t, srv.Version(), s.Version())
			require.Equal(t, srv.Major(), s.Major())
			require.Equal(t, dsn, s.DSN(""))
			require.Empty(t, s.DataDir())

			require.NoError(t, srv.CreateDatabase(ctx, "theirs", ""))
			require.NoError(t, s.CreateDatabase(ctx, "ours", ""))
			require.NoError(t, s.CreateDatabase(ctx, "copy", "ours"))
			require.NoError(t, s.CreateDatabase(ctx, "dropped", ""))
			require.NoError(t, s.DropDatabase(ctx, "dropped"))
			require.Error(t, s.CreateDatabase(ctx, "theirs", ""))
			conn := connect(t, s.DSN("ours"))
			require.Equal(t, "ours", query[string](t, conn, "SELECT current_database()"))

			for _, err := range []error{s.Kill(), s.Restart(ctx)} {
				require.EqualError(t, err, "this server was not started by localpg (FENCEROW_DATABASE_URL is set): unset it, or use Start, to kill and restart one")
			}
			require.NoError(t, s.Stop())
			watch := connect(t, srv.DSN(""))
			require.Equal(t, []string{"theirs"}, databases(t, watch, "theirs"))
			require.Empty(t, databases(t, watch, "ours"))
			require.Empty(t, databases(t, watch, "copy"))
			require.NoError(t, srv.DropDatabase(ctx, "theirs"))
		})
	}
}

// Test binaries that share an existing server, here played by sharedServers.
func TestBinariesOnOneServer(t *testing.T) {
	ctx := t.Context()
	srv := StartServer(t)
	watch := connect(t, srv.DSN(""))
	_, err := watch.Exec(ctx, "CREATE ROLE tester LOGIN CREATEDB") // all it takes
	require.NoError(t, err)
	t.Setenv(envURL, strings.Replace(srv.DSN(""), "//postgres@", "//tester@", 1))
	var setups atomic.Int32
	var conns []*pgx.Conn
	tmpl := []Template{counted(fresh("items"), &setups, &conns)}

	var living, killed, later sharedServer
	livingDSN, drop, err := living.database(tmpl)
	require.NoError(t, err)
	_, _, err = killed.database(tmpl)
	require.NoError(t, err)
	usedDSN, _, err := killed.database(tmpl)
	require.NoError(t, err)
	require.EqualValues(t, 2, setups.Load(), "each binary has its own templates")
	require.Len(t, databases(t, watch, databasePrefix), 5)
	for _, conn := range conns {
		_ = conn.Close(ctx)
	}

	// The killed one's session ends; a program of its lives a little longer.
	require.NoError(t, killed.owner.close(ctx))
	user := connect(t, usedDSN)
	const name = "fencerow_test_mine" // somebody's, by its form not ours
	require.NoError(t, srv.CreateDatabase(ctx, name, ""))

	sweepAgain := func(want int) {
		require.Eventually(t, func() bool {
			require.NoError(t, dropLeftovers(ctx, watch))
			return len(databases(t, watch, databasePrefix)) == want
		}, databaseTimeout, 10*time.Millisecond)
	}
	laterDSN, _, err := later.database(nil)
	require.NoError(t, err)
	sweepAgain(6) // living's two, the one in use, mine, later's and what that was copied from
	require.NoError(t, ping(ctx, usedDSN))
	require.NoError(t, user.Close(ctx))
	sweepAgain(5)

	require.NoError(t, ping(ctx, livingDSN))
	require.NoError(t, ping(ctx, laterDSN))
	require.NoError(t, drop())
	require.NoError(t, living.stop())
	require.NoError(t, later.stop())
	require.Equal(t, []string{name}, databases(t, watch, databasePrefix))
}

func TestOwnerOfDatabase(t *testing.T) {
	o := owner{id: 0x12ab}
	id, ok := ownerOfDatabase(o.database(3))
	require.True(t, ok)
	require.Equal(t, o.id, id)
	for _, name := range []string{
		"fencerow_test_", "fencerow_test_000012ab", "fencerow_test_12ab_1_1", "fencerow_test_ffffffff_1_1",
		"fencerow_test_-00012ab_1_1", "other_000012ab_1_1",
	} {
		_, ok := ownerOfDatabase(name)
		require.False(t, ok, name)
	}
}
