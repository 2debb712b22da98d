package migrations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// wallTriggers lists what walls have put on tables: "table trigger mode".
// Copies on partitions count too.
func wallTriggers(t testing.TB, conn *pgx.Conn) []string {
	t.Helper()
	return get[[]string](t, conn,
		`SELECT coalesce(array_agg(concat_ws(' ', t.tgrelid::regclass, t.tgname, t.tgenabled) ORDER BY t.tgrelid::regclass::text, t.tgname), '{}')
		FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE p.proname LIKE 'wall\_%' AND t.tgrelid IS DISTINCT FROM to_regclass('fencing.registry')`)
}

// triggersOn is what wallTriggers has for walled tables.
func triggersOn(mode string, tables ...string) []string {
	all := []string{}
	for _, table := range tables {
		all = append(all, table+" !fencing_mark A", table+" !fencing_mark_insert A")
		for _, kind := range []string{"delete", "insert", "late", "late_insert", "named", "truncate", "update"} {
			if kind != "named" || mode == "lease" {
				all = append(all, table+" ~fencing_"+kind+" A")
			}
		}
	}
	return all
}

// wallFunctions counts the trigger functions that were made for walls.
const wallFunctions = `SELECT count(*) FROM pg_proc WHERE proname ~ '^wall_[0-9a-f]{16}_'`

func TestWallComesAndGoes(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE SCHEMA app; CREATE TABLE app."T ""1""" (id int); CREATE TABLE other (id int)`)
	const name = `app."T ""1"""`
	table := migrations.Table{Name: name, Mode: migrations.Lease, TokenColumn: `fence%s '"1$wall$`, Resource: `o'r\d%s`}
	require.NoError(t, migrations.Register(t.Context(), dsn, table, migrations.Table{Name: "other", Mode: migrations.Lease}))
	level := func() string {
		return get[string](t, conn, "SELECT wall_level FROM fencing.registry WHERE relid = $1::text::regclass", name)
	}
	require.Equal(t, "off", level())
	gen := generation(t, conn)
	oids := []uint32{}
	for _, tt := range []struct {
		level migrations.WallLevel
		bumps int64
	}{
		{migrations.WallOff, 0}, {migrations.WallEnforce, 1}, {migrations.WallEnforce, 0}, {migrations.WallReport, 1}, {migrations.WallReport, 0},
		{migrations.WallAttested, 1}, {migrations.WallAttested, 0}, {migrations.WallOff, 1}, {migrations.WallOff, 0}, {migrations.WallEnforce, 1},
	} {
		require.NoError(t, migrations.Wall(t.Context(), dsn, name, tt.level))
		require.Equal(t, string(tt.level), level())
		gen += tt.bumps
		require.Equal(t, gen, generation(t, conn), tt.level)
		want := triggersOn("lease", name)
		if tt.level == migrations.WallOff {
			want = []string{}
			require.Zero(t, get[int64](t, conn, wallFunctions))
		}
		require.Equal(t, want, wallTriggers(t, conn))
		now := get[[]uint32](t, conn, "SELECT coalesce(array_agg(xmin::text::oid ORDER BY oid), '{}') FROM pg_trigger WHERE tgname ~ 'fencing' AND tgname !~ 'kept'")
		if tt.bumps == 0 {
			require.Equal(t, oids, now, "touches nothing")
		}
		oids = now
	}

	// the wall goes with the registration, and changes with it
	table.Mode, table.Resource = migrations.Strict, ""
	require.NoError(t, migrations.Register(t.Context(), dsn, table))
	require.Equal(t, "enforce", level())
	require.Equal(t, triggersOn("strict", name), wallTriggers(t, conn))
	require.Contains(t, get[string](t, conn, "SELECT string_agg(prosrc, '') FROM pg_proc WHERE proname LIKE 'wall\\_%\\_delete'"), "'fencing.token'")
	exec(t, conn, `SELECT fencing.register('app."T ""1"""', 'strict', 'fence%s ''"1$wall$', issued_by => NULL)`)
	require.NotContains(t, get[string](t, conn, "SELECT string_agg(prosrc, '') FROM pg_proc WHERE proname ~ '^wall_[0-9a-f]{16}_'"), "write_epoch")
	exec(t, conn, fmt.Sprintf(`INSERT INTO %s VALUES (1, 9223372036854775807)`, name)) // no bound without a sequence
	require.NoError(t, migrations.Unregister(t.Context(), dsn, name))
	require.Empty(t, wallTriggers(t, conn))
	require.Zero(t, get[int64](t, conn, wallFunctions))
	require.NoError(t, migrations.Register(t.Context(), dsn, table))
	require.Equal(t, "off", level(), "registered anew")

	// so does a plain UPDATE or DELETE of the row
	exec(t, conn, "UPDATE fencing.registry SET wall_level = 'enforce'")
	require.Equal(t, append(triggersOn("strict", name), triggersOn("lease", "other")...), wallTriggers(t, conn))
	exec(t, conn, "DROP TABLE other; DELETE FROM fencing.registry")
	require.Empty(t, wallTriggers(t, conn))
}

// A wall that is as it should be locks only the registry, and waits for no
// writer; a change waits no longer than lock_timeout.
func TestWallLocks(t *testing.T) {
	dsn, conn := walled(t, "lease", "enforce")
	writer := open(t, dsn)
	exec(t, writer, "BEGIN; UPDATE t SET last_token = 60 WHERE id = 1")
	bounded := with(dsn, "lock_timeout", "100ms")
	require.NoError(t, migrations.Wall(t.Context(), bounded, "t", migrations.WallEnforce))
	requireRefused(t, migrations.Wall(t.Context(), bounded, "t", migrations.WallReport), "55P03", "set the wall of t")
	require.Equal(t, "enforce", get[string](t, conn, "SELECT wall_level FROM fencing.registry"))
	exec(t, writer, "ROLLBACK; BEGIN; SELECT * FROM t")
	require.NoError(t, migrations.Wall(t.Context(), bounded, "t", migrations.WallReport), "readers are not in the way")
}

func TestWallOnPartitions(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
		CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id);
		CREATE TABLE p21 PARTITION OF p2 FOR VALUES FROM (10) TO (20);
		SELECT fencing.register('p', 'lease'); SELECT setval('fencing.write_epoch', 100); SELECT fencing.wall('p');
		INSERT INTO p VALUES (1, '', 5), (11, '', 5)`)
	require.Equal(t, triggersOn("lease", "p", "p1", "p2", "p21"), wallTriggers(t, conn))

	exec(t, conn, `CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30); CREATE TABLE p4 (LIKE p INCLUDING DEFAULTS); INSERT INTO p4 VALUES (31);
		ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (30) TO (40)`)
	for _, part := range []string{"p", "p1", "p21", "p4"} {
		err := inTx(t, conn, "UPDATE "+part+" SET v = 'new'")
		require.Contains(t, refusal(t, err), "FN002 ~fencing_update - ", part)
		err = inTx(t, conn, "SET LOCAL session_replication_role = replica; UPDATE "+part+" SET v = 'new'")
		require.Contains(t, refusal(t, err), "FN002 ~fencing_update - ", part)
	}
	err := inTx(t, conn, "INSERT INTO p3 VALUES (25)")
	require.Equal(t, "FN002 ~fencing_insert 0 -", refusal(t, err))
	for _, part := range []string{"p", "p1", "p2", "p21"} {
		err := inTx(t, conn, "TRUNCATE "+part)
		require.Equal(t, "FN004 ~fencing_truncate - -", refusal(t, err), part)
	}
	require.NoError(t, inTx(t, conn, "TRUNCATE p3"), "made later")
	gen := generation(t, conn)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "p", migrations.WallEnforce))
	require.Equal(t, gen, generation(t, conn))
	require.Equal(t, triggersOn("lease", "p", "p1", "p2", "p21", "p3", "p4"), wallTriggers(t, conn))

	// a row that moves is deleted and inserted
	const move = "UPDATE p SET id = 12, last_token = 6 WHERE id = 1"
	require.Equal(t, "FN002 ~fencing_delete - 5", refusal(t, inTx(t, conn, move)))
	require.Equal(t, "FN001 ~fencing_delete 4 5", refusal(t, inTx(t, conn, fmt.Sprintf(attest, 4)+move)))
	require.NoError(t, inTx(t, conn, fmt.Sprintf(attest, 6)+move))
	require.Equal(t, int64(6), get[int64](t, conn, "SELECT last_token FROM p21 WHERE id = 12"))

	// what somebody turned off is on again
	exec(t, conn, "ALTER TABLE p1 DISABLE TRIGGER ALL; ALTER TABLE p ENABLE TRIGGER ALL; DROP TRIGGER \"~fencing_late\" ON p")
	require.NoError(t, migrations.Wall(t.Context(), dsn, "p", migrations.WallEnforce))
	require.Equal(t, triggersOn("lease", "p", "p1", "p2", "p21", "p3", "p4"), wallTriggers(t, conn))
	for _, level := range []migrations.WallLevel{migrations.WallAttested, migrations.WallReport} {
		require.NoError(t, migrations.Wall(t.Context(), dsn, "p", level))
		require.Equal(t, triggersOn("lease", "p", "p1", "p2", "p21", "p3", "p4"), wallTriggers(t, conn))
	}

	exec(t, conn, "ALTER TABLE p DETACH PARTITION p3")
	require.NoError(t, migrations.Wall(t.Context(), dsn, "p", migrations.WallOff))
	require.Equal(t, []string{"p3 ~fencing_truncate A"}, wallTriggers(t, conn))
	require.NoError(t, migrations.Wall(t.Context(), dsn, "p3", migrations.WallOff))
	require.Empty(t, wallTriggers(t, conn))
	require.Zero(t, get[int64](t, conn, wallFunctions))
}

func TestWallOnChildren(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE c (id int, v text); CREATE TABLE c1 () INHERITS (c); CREATE TABLE c11 () INHERITS (c1);
		SELECT fencing.register('c', 'strict'); SELECT setval('fencing.write_epoch', 100); INSERT INTO c11 VALUES (1, '', 5); SELECT fencing.wall('c')`)
	require.Equal(t, triggersOn("strict", "c", "c1", "c11"), wallTriggers(t, conn))
	for _, table := range []string{"c", "c1", "c11"} {
		err := inTx(t, conn, "UPDATE "+table+" SET v = 'new', last_token = 4")
		require.Equal(t, "FN001 ~fencing_update 4 5", refusal(t, err))
		err = inTx(t, conn, "TRUNCATE ONLY "+table)
		require.Equal(t, "FN004 ~fencing_truncate - -", refusal(t, err))
	}
	exec(t, conn, "CREATE TABLE c2 () INHERITS (c)")
	require.NoError(t, migrations.Wall(t.Context(), dsn, "c", migrations.WallEnforce))
	require.Equal(t, triggersOn("strict", "c", "c1", "c11", "c2"), wallTriggers(t, conn))

	// a child with a wall of its own keeps that, and falls back to the parent's
	exec(t, conn, "SELECT fencing.register('c1', 'lease'); SELECT fencing.wall('c1'); SELECT fencing.wall('c')")
	want := append(append(triggersOn("strict", "c"), triggersOn("lease", "c1", "c11")...), triggersOn("strict", "c2")...)
	require.Equal(t, want, wallTriggers(t, conn))
	exec(t, conn, "SELECT fencing.unregister('c1')")
	require.Equal(t, triggersOn("strict", "c", "c1", "c11", "c2"), wallTriggers(t, conn))
	exec(t, conn, "SELECT fencing.unregister('c')")
	require.Empty(t, wallTriggers(t, conn))
}

// Down takes the walls off, also those that nothing in the
// registry stands for any more.
func TestDownTakesWallsOff(t *testing.T) {
	dsn, conn := walled(t, "lease", "enforce")
	exec(t, conn, `CREATE TABLE p (id int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
		SELECT fencing.register('p', 'strict'); SELECT fencing.wall('p'); ALTER TABLE p DETACH PARTITION p1; TRUNCATE fencing.registry`)
	require.NotEmpty(t, wallTriggers(t, conn))
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.Empty(t, wallTriggers(t, conn))
	require.Zero(t, get[int64](t, conn, wallFunctions))
	exec(t, conn, "UPDATE t SET v = 'new'")
	require.NoError(t, migrations.Up(t.Context(), dsn))
}

// At report the server logs what it would refuse, in the same words.
func TestWallReports(t *testing.T) {
	for mode, want := range map[string][]string{
		"lease":  {"FN002 ~fencing_update", "FN001 ~fencing_update", "FN004 ~fencing_late", "FN002 ~fencing_delete"},
		"strict": {"FN001 ~fencing_update", "FN004 ~fencing_late", "FN001 ~fencing_update", "FN004 ~fencing_late", "FN002 ~fencing_delete"},
	} {
		dsn, _ := walled(t, mode, "report")
		cfg, err := pgx.ParseConfig(with(dsn, "client_min_messages", "log"))
		require.NoError(t, err)
		var got []string
		cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			if strings.HasPrefix(n.Code, "FN") {
				require.Equal(t, "LOG", n.SeverityUnlocalized)
				require.Equal(t, "public.t last_token", n.SchemaName+"."+n.TableName+" "+n.ColumnName)
				require.Contains(t, n.Detail, `"current": "50"`)
				got = append(got, n.Code+" "+n.ConstraintName)
			}
		}
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		require.NoError(t, err)
		for _, sql := range []string{"UPDATE t SET v = 'x' WHERE id = 1", "UPDATE t SET last_token = 49 WHERE id = 1", "DELETE FROM t WHERE id = 1"} {
			exec(t, conn, "BEGIN;"+sql+"; ROLLBACK")
		}
		require.Equal(t, want, got)
		require.NoError(t, conn.Close(t.Context()))
	}
}
