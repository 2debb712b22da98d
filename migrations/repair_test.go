package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

func TestRepair(t *testing.T) {
	for _, mode := range []string{"strict", "lease"} {
		for _, level := range []string{"off", "report", "enforce", "attested"} {
			dsn, conn := walled(t, mode, "off")
			exec(t, conn, "INSERT INTO t VALUES (3, 'poisoned', 9223372036854775807), (4, 'other', 9223372036854775807); SELECT fencing.wall('t', '"+level+"')")
			key := map[string]any{"id": 3}
			for i, token := range []int64{70, 0, 80} { // lower, none, higher
				require.NoError(t, migrations.Repair(t.Context(), dsn, "t", key, token, "forged by a script"), "%s %s %d", mode, level, token)
				require.Equal(t, token, get[int64](t, conn, "SELECT last_token FROM t WHERE id = 3"))
				require.Equal(t, int64(i+1), get[int64](t, conn, "SELECT count(*) FROM fencing.repairs WHERE xact IS NULL"))
			}
			require.Equal(t, "public t {\"id\": 3} 9223372036854775807 70 forged by a script", get[string](t, conn,
				"SELECT concat_ws(' ', schema_name, table_name, key, old_token, new_token, reason) FROM fencing.repairs WHERE "+
					"repaired_by = session_user ORDER BY repaired_at LIMIT 1"))
			require.Equal(t, "(4,other,9223372036854775807)", get[string](t, conn, "SELECT t::text FROM t WHERE id = 4"))
			if level == "enforce" {
				require.NoError(t, inTx(t, conn, "UPDATE t SET last_token = 81 WHERE id = 3"))
				// in the same transaction nothing else is let through
				require.Contains(t, refusal(t, inTx(t, conn, `SELECT fencing.repair('t', '{"id": 3}', 5, 'x'); UPDATE t SET last_token = 5 WHERE id = 4`)), "FN001 ")
				require.Equal(t, int64(3), get[int64](t, conn, "SELECT count(*) FROM fencing.repairs"))
			}
		}
	}
}

// A row of a partition, by a key of several columns.
func TestRepairKeys(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE p ("The Id" bigint, at timestamptz, b bytea, u uuid, v text, PRIMARY KEY ("The Id", at, b, u)) PARTITION BY RANGE ("The Id");
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9223372036854775807); SELECT fencing.register('p', 'lease', 'Fence');
		SELECT setval('fencing.write_epoch', 100);
		INSERT INTO p VALUES (9007199254740993, '2020-02-03 04:05:06+00', '\x01', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'v', 1000); SELECT fencing.wall('p')`)
	key := map[string]any{"The Id": int64(9007199254740993), "at": time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC), "b": `\x01`,
		"u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}
	require.NoError(t, migrations.Repair(t.Context(), dsn, "p", key, 7, "why"))
	require.Equal(t, int64(7), get[int64](t, conn, `SELECT "Fence" FROM p`))
}

func TestRepairRefuses(t *testing.T) {
	dsn, conn := walled(t, "lease", "enforce")
	exec(t, conn, "CREATE TABLE plain (id int PRIMARY KEY); CREATE TABLE nokey (id int); SELECT fencing.register('nokey', 'lease')")
	for _, tt := range []struct {
		args, state string
		words       []string
	}{
		{`'t', '{"id": 9}', 5, 'x'`, "P0002", []string{`no row of public.t has the key {"id": 9}`}},
		{`'t', '{"id": 1}', 5, ' '`, "22023", []string{"no reason given for the repair of a row of public.t"}},
		{`'t', '{"id": 1}', 5, NULL`, "22023", []string{"no reason given"}},
		{`'t', '{"id": 1}', -5, 'x'`, "22023", []string{"negative token -5"}},
		{`'t', '{"id": 1}', NULL, 'x'`, "22023", []string{"no token given"}},
		{`'t', '{"id": 1}', 101, 'x'`, "22023", []string{"token 101", "was never issued", "is 100"}},
		{`'t', '{}', 5, 'x'`, "22023", []string{"{} is not a key of public.t", "primary key, and nothing else: id"}},
		{`'t', '{"id": null}', 5, 'x'`, "22023", []string{"is not a key of public.t"}},
		{`'t', '{"id": 1, "v": "old"}', 5, 'x'`, "22023", []string{"is not a key of public.t"}},
		{`'t', '[1]', 5, 'x'`, "22023", []string{"[1] is not a key of public.t"}},
		{`'t', NULL, 5, 'x'`, "22023", []string{"null is not a key of public.t"}},
		{`'nokey', '{"id": 1}', 0, 'x'`, "55000", []string{"no row of public.nokey can be named", "ADD PRIMARY KEY"}},
		{`'plain', '{"id": 1}', 5, 'x'`, "55000", []string{"public.plain is not registered"}},
		{`NULL, '{"id": 1}', 5, 'x'`, "42P01", []string{"no table given"}},
	} {
		_, err := conn.Exec(t.Context(), "SELECT fencing.repair("+tt.args+")")
		requireHint(t, err, tt.state, tt.words...)
	}
	key := map[string]any{"id": 1}
	requireRefused(t, migrations.Repair(t.Context(), dsn, "t", map[string]any{"id": 9}, 5, "x"), "P0002",
		"repair a row of t: fencing: no row of public.t", "Correct the key")
	for _, tt := range []struct {
		table  string
		key    map[string]any
		token  int64
		reason string
		words  string
	}{
		{"", key, 5, "x", "repair a row of: a table without a name"},
		{"t", nil, 5, "x", "repair a row of t: no key given"},
		{"t", key, -1, "x", "repair a row of t: negative token -1"},
		{"t", key, 5, "\n", "repair a row of t: no reason given"},
		{"t", map[string]any{"id": func() {}}, 5, "x", "repair a row of t: the key can't be written as JSON"},
	} {
		require.ErrorContains(t, migrations.Repair(t.Context(), "host=/nonexistent", tt.table, tt.key, tt.token, tt.reason), tt.words)
	}
	require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM fencing.repairs"))
	require.Equal(t, "(1,old,50)", get[string](t, conn, "SELECT t::text FROM t WHERE id = 1"))

	// a trigger of the table's own that undoes it
	exec(t, conn, `CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER theirs BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION theirs()`)
	requireRefused(t, migrations.Repair(t.Context(), dsn, "t", key, 5, "x"), "27000", "was not repaired", "A trigger of the table changed the write")
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.ErrorIs(t, migrations.Repair(t.Context(), dsn, "t", key, 5, "x"), migrations.ErrNotInstalled)
}

// A writer that holds the row is waited for, and its token is the old one.
func TestRepairWaitsForAWriter(t *testing.T) {
	dsn, conn := walled(t, "lease", "enforce")
	writer := open(t, dsn)
	exec(t, writer, "BEGIN; UPDATE t SET last_token = 60 WHERE id = 1")
	repairer := open(t, dsn)
	done := make(chan error, 1)
	go func() {
		_, err := repairer.Exec(context.Background(), `SELECT fencing.repair('t', '{"id": 1}', 5, 'x')`)
		done <- err
	}()
	fencetest.Eventually(t, func() bool { return blocked(t, conn, repairer) })
	exec(t, writer, "COMMIT")
	require.NoError(t, <-done)
	require.Equal(t, "60 5", get[string](t, conn, "SELECT concat_ws(' ', old_token, new_token) FROM fencing.repairs"))
}
