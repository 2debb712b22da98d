package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

const (
	sealTriggers = `SELECT coalesce(array_agg(concat_ws(' ', tgrelid::regclass, encode(tgargs, 'escape'), tgenabled) ORDER BY ` +
		`tgrelid::regclass::text), '{}') FROM pg_trigger WHERE tgname = '~fencing_zseal'`
	sealFunctions = `SELECT count(*) FROM pg_proc WHERE proname ~ '^seal_[0-9a-f]{16}_'`
)

func requireSealed(t *testing.T, dsn string, level string, tables ...string) {
	t.Helper()
	want := []string{}
	for _, table := range tables {
		want = append(want, table+" "+level+`\000 A`)
	}
	require.Equal(t, want, get[[]string](t, open(t, dsn), sealTriggers))
}

// A seal on a partitioned table, through changes of it and of its row.
func TestSealComesAndGoes(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn,
		`CREATE TABLE p (id int, res text NOT NULL, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
		SELECT fencing.register('p', 'lease'); SELECT setval('fencing.write_epoch', 100); SELECT fencing.wall('p')`)
	grant(t, conn, "r", 60)
	grant(t, conn, "s", 70)
	gen := generation(t, conn)
	for range 2 {
		require.NoError(t, migrations.SealByColumn(t.Context(), dsn, "p", "res"))
		require.Equal(t, gen+1, generation(t, conn))
		requireSealed(t, dsn, "enforce", "p", "p1")
	}
	exec(t, conn,
		"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20); CREATE TABLE p3 (LIKE p INCLUDING ALL); "+
			"ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30)")
	requireSealed(t, dsn, "enforce", "p", "p1", "p2", "p3")
	require.NoError(t, inTx(t, conn, "INSERT INTO p VALUES (1, 'r', '', 60), (11, 's', '', 70)"))
	for sql, want := range map[string]string{
		"INSERT INTO p2 VALUES (12, 'r', '', 50)":                                              "FN001 ~fencing_zseal 50 60",
		"UPDATE p1 SET last_token = 70":                                                        "FN004 ~fencing_zseal 70 60",
		"SET LOCAL fencing.token = '60'; UPDATE p SET id = 19, last_token = 60 WHERE id = 1":   "",
		"SET LOCAL fencing.token = '50'; DELETE FROM p WHERE id = 1":                           "FN001 ~fencing_delete 50 60",
		"SET LOCAL fencing.token = '70'; DELETE FROM p1 WHERE id = 1":                          "FN004 ~fencing_zseal 70 60",
		"SET LOCAL session_replication_role = replica; INSERT INTO p1 VALUES (2, 'r', '', 50)": "FN001 ~fencing_zseal 50 60",
	} {
		_, err := conn.Exec(t.Context(), "BEGIN;"+sql)
		require.Equal(t, want, refusal(t, err), sql)
		if want == "FN001 ~fencing_zseal 50 60" && strings.Contains(sql, "p2") {
			require.ErrorContains(t, err, "public.p,", "the registered table")
		}
		exec(t, conn, "ROLLBACK")
	}

	exec(t, conn, "ALTER TABLE p RENAME TO q; ALTER TABLE q RENAME res TO region")
	_, err := conn.Exec(t.Context(), "INSERT INTO q VALUES (2, 'r', '', 60)")
	requireRefused(t, err, "42703")
	_, err = conn.Exec(t.Context(), "SELECT fencing.wall('q', 'attested')")
	requireHint(t, err, "42703", "public.q has no column res", "fencing.unseal('public.q')")
	require.NoError(t, migrations.SealByColumn(t.Context(), dsn, "q", "region"))
	require.Equal(t, int64(1), get[int64](t, conn, sealFunctions))
	exec(t, conn, "SELECT fencing.wall('q', 'attested')")
	requireSealed(t, dsn, "attested", "p1", "p2", "p3", "q")
	exec(t, conn, "SELECT fencing.register('q', 'lease', resource => 'named')")
	_, err = conn.Exec(t.Context(), "BEGIN; SET LOCAL fencing.token_named = '70'; UPDATE q SET last_token = 70 WHERE id = 1")
	require.Equal(t, "FN004 ~fencing_zseal 70 60", refusal(t, err))
	exec(t, conn, "ROLLBACK; BEGIN; SET LOCAL fencing.token_named = '60'; DELETE FROM q WHERE id = 1; ROLLBACK")
	_, err = conn.Exec(t.Context(), "SELECT fencing.register('q', 'strict', resource => 'named')")
	requireHint(t, err, "55000", "public.q is sealed, which mode strict has no use for", "fencing.unseal('public.q')")

	exec(t, conn, `SELECT fencing.wall('q', 'off')`)
	requireSealed(t, dsn, "")
	exec(t, conn,
		`SELECT fencing.wall('q', 'report'); ALTER TABLE p1 DISABLE TRIGGER "~fencing_zseal"; DROP TRIGGER "~fencing_zseal" ON q; SELECT fencing.wall('q', 'report')`)
	requireSealed(t, dsn, "report", "p1", "p2", "p3", "q")
	require.NoError(t, migrations.Seal(t.Context(), dsn, "q", "s"))
	requireSealed(t, dsn, "report", "p1", "p2", "p3", "q")
	require.Equal(t, int64(1), get[int64](t, conn, sealFunctions))

	gen = generation(t, conn)
	for range 2 {
		require.NoError(t, migrations.Unseal(t.Context(), dsn, "q"))
		require.Equal(t, gen+1, generation(t, conn))
		require.Zero(t, get[int64](t, conn, sealFunctions))
	}
	require.NoError(t, migrations.Seal(t.Context(), dsn, "q", "s"))
	require.NoError(t, migrations.Unregister(t.Context(), dsn, "q"))
	require.Zero(t, get[int64](t, conn, sealFunctions))
	exec(t, conn, "SELECT fencing.register('q', 'lease'), fencing.wall('q'), fencing.seal('q', 'r'); TRUNCATE fencing.registry")
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.Zero(t, get[int64](t, conn, sealFunctions))
	requireSealed(t, dsn, "")
}

// Children have their parent's seal, unless they have a wall of their own.
func TestSealChildren(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE par (id int, res text NOT NULL); CREATE TABLE child (more text) INHERITS (par); SELECT setval('fencing.write_epoch', 100);
		SELECT fencing.register('par', 'lease'), fencing.wall('par'), fencing.seal('par', by_column => 'res')`)
	grant(t, conn, "r", 60)
	requireSealed(t, dsn, "enforce", "child", "par")
	_, err := conn.Exec(t.Context(), "INSERT INTO child (id, res, last_token) VALUES (1, 'r', 50)")
	require.Equal(t, "FN001 ~fencing_zseal 50 60", refusal(t, err))
	require.ErrorContains(t, err, "public.par")
	exec(t, conn, "CREATE TABLE later () INHERITS (child); SELECT fencing.wall('par')")
	requireSealed(t, dsn, "enforce", "child", "later", "par")
	// one that gets a wall of its own takes the seal along
	exec(t, conn, "SELECT fencing.register('child', 'lease')")
	requireSealed(t, dsn, "enforce", "child", "later", "par")
	exec(t, conn, "SELECT fencing.wall('child', 'attested')")
	require.Equal(t, []string{`child attested\000 A`, `later attested\000 A`, `par enforce\000 A`}, get[[]string](t, conn, sealTriggers))
	exec(t, conn, "SELECT fencing.seal('child', 'r')")
	require.Equal(t, int64(2), get[int64](t, conn, sealFunctions))
	exec(t, conn, "SELECT fencing.wall('child', 'off')")
	requireSealed(t, dsn, "enforce", "child", "later", "par")
	require.Equal(t, int64(1), get[int64](t, conn, sealFunctions))
	exec(t, conn, "ALTER TABLE child NO INHERIT par; SELECT fencing.unregister('child')")
	requireSealed(t, dsn, "enforce", "par")
}

func TestSealRefuses(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn, `CREATE TABLE plain (id int); CREATE TABLE off (id int); CREATE TABLE st (id int); CREATE VIEW v AS SELECT 1;
		CREATE TABLE t (id int, res text NOT NULL, n text, f float8 NOT NULL, g text NOT NULL GENERATED ALWAYS AS ('x') STORED);
		CREATE TABLE par (res text NOT NULL); CREATE DOMAIN dom AS text; CREATE TABLE d (res dom NOT NULL);
		SELECT fencing.register('off', 'lease'), fencing.register('st', 'strict'), fencing.register('t', 'lease'), fencing.register('d', 'lease'), fencing.wall('st'), fencing.wall('t'), fencing.wall('d')`)
	before := generation(t, conn)
	for _, tt := range []struct {
		args, state string
		words       []string
	}{
		{"'plain', 'r'", "55000", []string{"public.plain is not registered", "fencing.register('public.plain', 'lease')"}},
		{"'v', 'r'", "42809", []string{"public.v is a view"}},
		{"'off', 'r'", "55000", []string{"public.off has no wall", "fencing.wall('public.off')"}},
		{"'st', 'r'", "55000", []string{"public.st is of mode strict, which has no lease", "fencing.register('public.st', 'lease', ...)"}},
		{"'t'", "22023", []string{"nothing given to seal public.t by", "resource => ", "by_column => "}},
		{"'t', 'r', 'res'", "22023", []string{"a lease and a column given"}},
		{"'t', ''", "22023", []string{"no name of a lease or of a column given"}},
		{"'t', repeat('x', 256)", "22023", []string{"1 to 255 characters"}},
		{"'t', by_column => ''", "22023", []string{"no name of a lease or of a column given"}},
		{"'t', by_column => 'nope'", "42703", []string{"public.t has no column nope"}},
		{"'t', by_column => 'n'", "42804",
			[]string{"column n of public.t, which is to name the lease, is nullable", "ALTER TABLE public.t ALTER COLUMN n SET NOT NULL"}},
		{"'t', by_column => 'f'", "42804", []string{"is of type double precision"}},
		{"'d', by_column => 'res'", "42804", []string{"is of type public.dom"}},
		{"'t', by_column => 'g'", "42804", []string{"is a generated column"}},
		{"'t', by_column => 'last_token'", "22023", []string{"column last_token of public.t has the tokens"}},
		{"NULL, 'r'", "42P01", []string{"no table given"}},
	} {
		_, err := conn.Exec(t.Context(), "SELECT fencing.seal("+tt.args+")")
		requireHint(t, err, tt.state, tt.words...)
	}
	_, err := conn.Exec(t.Context(), "SELECT fencing.unseal(NULL)")
	requireHint(t, err, "42P01", "no table given")
	require.NoError(t, migrations.Unseal(t.Context(), dsn, "off"), "as it is")
	requireRefused(t, migrations.Unseal(t.Context(), dsn, "plain"), "55000", "unseal plain: fencing: public.plain is not registered: Register it first")
	requireRefused(t, migrations.Seal(t.Context(), dsn, "off", "r"), "55000", "seal off: fencing: public.off has no wall", "Put the wall up first")
	requireRefused(t, migrations.SealByColumn(t.Context(), dsn, "t", "n"), "42804", "seal t: fencing: column n of public.t")
	require.ErrorContains(t, migrations.Seal(t.Context(), "host=/nonexistent", "t", ""), "seal t: no resource given")
	require.ErrorContains(t, migrations.SealByColumn(t.Context(), "host=/nonexistent", "t", ""), "seal t: no column given")
	require.ErrorContains(t, migrations.Unseal(t.Context(), "host=/nonexistent", " "), "unseal: a table without a name")
	require.Equal(t, before, generation(t, conn))
	require.NoError(t, migrations.Down(t.Context(), dsn))
	require.ErrorIs(t, migrations.Seal(t.Context(), dsn, "t", "r"), migrations.ErrNotInstalled)
	require.ErrorIs(t, migrations.Unseal(t.Context(), dsn, "t"), migrations.ErrNotInstalled)
}

// An epoch rises with the lease's token and never falls, whatever becomes of
// the lease's row.
func TestEpochs(t *testing.T) {
	dsn, conn := sealed(t, "enforce", fixed)
	const epoch = "SELECT array_agg(DISTINCT token) FROM fencing.epoch WHERE resource = 'r' HAVING count(*) = 16"
	exec(t, conn, "DELETE FROM fencing.lease WHERE resource = 'r'")
	require.Equal(t, []int64{60}, get[[]int64](t, conn, epoch))
	grant(t, conn, "r", 55)
	require.Equal(t, []int64{60}, get[[]int64](t, conn, epoch))
	exec(t, conn, "SET session_replication_role = replica")
	grant(t, conn, "r", 65)
	require.Equal(t, []int64{65}, get[[]int64](t, conn, epoch))
	require.True(t, get[bool](t, conn, "SELECT fencing.renew('r', 65, '1 min')"))
	require.True(t, get[bool](t, conn, "SELECT fencing.release('r', 65)"))
	require.Equal(t, []int64{65}, get[[]int64](t, conn, epoch))
	require.NoError(t, inTx(t, conn, "UPDATE t SET last_token = 65 WHERE id = 1"), "who has released it isn't stale yet")

	// without them nothing is written, until the lease is taken again
	exec(t, conn, "TRUNCATE fencing.epoch")
	require.Equal(t, "FN002 ~fencing_zseal 65 -", refusal(t, inTx(t, conn, "UPDATE t SET last_token = 65 WHERE id = 1")))
	exec(t, conn, retake)
	token := get[int64](t, conn, "SELECT token FROM fencing.lease WHERE resource = 'r'")
	require.NoError(t, inTx(t, open(t, dsn), fmt.Sprintf("UPDATE t SET last_token = %d WHERE id = 1", token)))
}

// A repair passes the seal, whatever the lease.
func TestSealRepair(t *testing.T) {
	dsn, conn := sealed(t, "enforce", byColumn)
	exec(t, conn,
		"SELECT fencing.wall('t', 'off'); INSERT INTO t VALUES (4, 'never', '', 9223372036854775807), (5, 'r', '', 9223372036854775807); SELECT fencing.wall('t')")
	for _, id := range []int{4, 5} {
		require.NoError(t, migrations.Repair(t.Context(), dsn, "t", map[string]any{"id": id}, 7, "forged"))
	}
	require.NoError(t, inTx(t, conn, "UPDATE t SET last_token = 60 WHERE id = 5"))
}

// Writers need no right in schema fencing, and can't get at the epochs.
func TestSealRights(t *testing.T) {
	dsn, admin := sealed(t, "enforce", byColumn)
	app, appDSN := newRole(t, dsn)
	plain, plainDSN := newRole(t, dsn)
	deploy, deployDSN := newRole(t, dsn)
	exec(t, admin,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON t TO "+app+", "+plain+"; CREATE SCHEMA app AUTHORIZATION "+deploy+";"+documentedGrants(t,
			"app", app)+documentedGrants(t, "deploy", deploy))
	for _, roleDSN := range []string{appDSN, plainDSN} {
		// an operator of one's own doesn't come into it
		conn := open(t, with(roleDSN, "search_path", "mine, pg_catalog, public"))
		require.NoError(t, inTx(t, conn, "UPDATE t SET last_token = 60 WHERE id = 1"))
		for _, isolation := range isolations {
			require.Equal(t, "FN001 ~fencing_zseal 50 60",
				refusal(t, inTx(t, conn, "SET TRANSACTION ISOLATION LEVEL "+isolation+"; UPDATE t SET last_token = 50 WHERE id = 2")))
			require.Equal(t, "FN002 ~fencing_zseal 60 -",
				refusal(t, inTx(t, conn, "SET TRANSACTION ISOLATION LEVEL "+isolation+"; INSERT INTO t VALUES (9, 'never', '', 60)")))
		}
	}
	conn := open(t, appDSN)
	for _, sql := range []string{
		"SELECT * FROM fencing.epoch", "UPDATE fencing.epoch SET token = 50", "INSERT INTO fencing.epoch VALUES ('x', 0, 1)",
		"DELETE FROM fencing.epoch", "TRUNCATE fencing.epoch",
		"SELECT fencing.seal('t', 'r')", "SELECT fencing.unseal('t')", "SELECT fencing.seal_apply('t')", "SELECT fencing.doctor_seal('[]', '[]')",
	} {
		requireRefused(t, inTx(t, conn, sql), "42501")
	}
	conn = open(t, deployDSN)
	exec(t, conn,
		"CREATE TABLE app.t (id int PRIMARY KEY); "+
			"SELECT fencing.register('app.t', 'lease'), fencing.wall('app.t'), fencing.seal('app.t', 'r'); SELECT fencing.seal('app.t', 's')")
	require.Equal(t, "FN001 ~fencing_zseal 60 70", refusal(t, inTx(t, conn, "INSERT INTO app.t VALUES (1, 60)")))
	exec(t, conn, "SELECT fencing.unseal('app.t'); SELECT fencing.unregister('app.t')")
}

// An operator of the writer's own in front of pg_catalog's is not asked.
func TestSealOperators(t *testing.T) {
	dsn, admin := sealed(t, "enforce", byColumn)
	exec(t, admin, `CREATE SCHEMA mine; CREATE FUNCTION mine.yes(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR mine.= (FUNCTION = mine.yes, LEFTARG = bigint, RIGHTARG = bigint);
		CREATE FUNCTION mine.hashtextextended(text, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1';
		CREATE DOMAIN mine.int8 AS int`)
	conn := open(t, with(dsn, "search_path", "mine, pg_catalog, public"))
	_, err := conn.Exec(context.Background(), "UPDATE public.t SET last_token = 50 WHERE public.t.v = 'old'")
	require.Equal(t, "FN001", refusal(t, err)[:5])
	exec(t, admin,
		`CREATE FUNCTION mine.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR mine.= (FUNCTION = mine.yes, LEFTARG = text, RIGHTARG = text);
		CREATE OPERATOR mine.<> (FUNCTION = mine.yes, LEFTARG = text, RIGHTARG = text); CREATE OPERATOR mine.> (FUNCTION = mine.yes, LEFTARG = bigint, RIGHTARG = bigint)`)
	for _, sql := range []string{
		"SET LOCAL fencing.token = '55'; DELETE FROM public.t WHERE id = 1", "INSERT INTO public.t VALUES (9, 'r', '', 50)", "UPDATE public.t SET last_token = 50",
		"UPDATE public.t SET last_token = 60, res = 's' WHERE id = 2",
	} {
		require.Regexp(t, "^FN00[14] ~fencing_zseal ", refusal(t, inTx(t, conn, sql)), sql)
	}
}
