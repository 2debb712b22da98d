package migrations_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
)

// waitFor bounds the wait for what must come.
const waitFor = fencetest.Patience

func TestMain(m *testing.M) { localpg.Main(m) }

// installed is a database in which Up has run.
var installed = fencetest.Installed

// prepared is a copy of an installed database in which these statements have run. In a
// copy the next token is far above all before.
func prepared(sql string) localpg.Template {
	return localpg.Template{Name: sql, From: &installed, Setup: func(ctx context.Context, dsn string) error {
		return runSQL(ctx, dsn, sql)
	}}
}

func runSQL(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// open opens a plain connection, closed with the test.
func open(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	return fencetest.Open(t, dsn)
}

func exec(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	require.NoError(t, err, sql)
}

// get is the one value of a query.
func get[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&v), sql)
	return v
}

// major is the server's major version.
func major(t testing.TB, conn *pgx.Conn) int {
	t.Helper()
	return get[int](t, conn, "SELECT current_setting('server_version_num')::int / 10000")
}

// with adds a setting to a connection string of either form.
func with(dsn, name, value string) string {
	if !strings.Contains(dsn, "://") {
		return dsn + " " + name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	}
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	return dsn + sep + name + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// newRole makes a role without any right, and returns its name and a DSN whose
// sessions are in that role. Roles belong to the whole server: the role goes,
// with what it owns, when the test ends.
func newRole(t testing.TB, dsn string) (role, roleDSN string) {
	t.Helper()
	role = "r_" + strings.ToLower(rand.Text()[:12])
	fencetest.Run(t, dsn, "CREATE ROLE "+role)
	t.Cleanup(func() {
		fencetest.Run(t, dsn, "REASSIGN OWNED BY "+role+" TO CURRENT_USER; DROP OWNED BY "+role+" CASCADE; DROP ROLE "+role)
	})
	return role, with(dsn, "role", role)
}

// requireRefused checks the server's SQLSTATE under err, and that err's text,
// one line of it, has all of the words.
func requireRefused(t testing.TB, err error, state string, words ...string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, state, pg.Code, err.Error())
	require.NotContains(t, err.Error(), "\n")
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}

// requireHint checks a server's error: its SQLSTATE, that it has a hint, and
// that message and hint have all of the words.
func requireHint(t testing.TB, err error, state string, words ...string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, state, pg.Code, err.Error())
	require.NotEmpty(t, pg.Hint)
	for _, w := range words {
		require.Contains(t, pg.Message+"\n"+pg.Hint, w)
	}
}
