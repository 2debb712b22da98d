package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// rewriting is the choice in the row of a table.
func rewriting(t testing.TB, conn *pgx.Conn, table string) bool {
	t.Helper()
	return get[bool](t, conn, "SELECT driver_rewrite FROM fencing.registry WHERE relid = $1::text::regclass", table)
}

func TestSetRewrite(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE SCHEMA app; CREATE TABLE app."Order ""Lines""" (id int); CREATE TABLE items (id int)`)
	const name = `app."Order ""Lines"""`
	table := migrations.Table{Name: name, Mode: migrations.Lease}
	require.NoError(t, migrations.Register(t.Context(), dsn, table, migrations.Table{Name: "items", Mode: migrations.Lease}))
	require.False(t, rewriting(t, conn, name))
	at := generation(t, conn)
	for _, tt := range []struct {
		on    bool
		bumps int64
	}{{false, 0}, {true, 1}, {true, 0}, {false, 1}, {true, 1}} {
		require.NoError(t, migrations.SetRewrite(t.Context(), dsn, name, tt.on))
		require.Equal(t, tt.on, rewriting(t, conn, name))
		require.False(t, rewriting(t, conn, "items"), "another table's")
		at += tt.bumps
		require.Equal(t, at, generation(t, conn))
	}

	table.Mode = migrations.Strict
	require.NoError(t, migrations.Register(t.Context(), dsn, table))
	require.True(t, rewriting(t, conn, name), "registered again and changed")
	require.NoError(t, migrations.Unregister(t.Context(), dsn, name))
	require.NoError(t, migrations.Register(t.Context(), dsn, table))
	require.False(t, rewriting(t, conn, name), "unregistered in between")
}

func TestSetRewriteRefuses(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn,
		"CREATE TABLE plain (id int); CREATE TABLE a (id int); SELECT fencing.register('a', 'lease'); ALTER TABLE a RENAME TO x; CREATE TABLE a (id int)")
	for name, words := range map[string][]string{
		"":        {"a table without a name", "choose rewriting for"},
		"nothing": {`"nothing" does not exist`, "correct the name"},
		"plain":   {"public.plain is not registered", "fencing.register('public.plain', ...)"},
		"a":       {"public.a is not registered itself"},
		"x":       {"was registered as public.a, and another table has that name now"},
	} {
		err := migrations.SetRewrite(t.Context(), dsn, name, true)
		for _, word := range words {
			require.ErrorContains(t, err, word, name)
		}
	}
	_, err := try(t, conn, "SELECT fencing.driver_rewrite('x', NULL)")
	require.ErrorContains(t, err, "neither on nor off given")

	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.ErrorIs(t, migrations.SetRewrite(t.Context(), dsn, "x", true), migrations.ErrNotInstalled)
}
