package migrations_test

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// dumper dumps and restores databases of one server with its own programs.
type dumper struct {
	srv          *localpg.Server
	from         string // the database that is dumped
	pgDump, psql string
}

// newDumper has a server with a database src, whose tables t and p are walled.
// It says false of a server that comes without the programs, as npm's do:
// pg_dump reads no server that is newer than itself.
func newDumper(t *testing.T) (*dumper, bool) {
	t.Helper()
	srv := localpg.StartServer(t)
	d := &dumper{srv: srv, from: "src"}
	var ok1, ok2 bool
	d.pgDump, ok1 = srv.Client("pg_dump")
	d.psql, ok2 = srv.Client("psql")
	if !ok1 || !ok2 {
		t.Logf("no pg_dump beside the server %s: nothing is dumped", srv.Version())
		return nil, false
	}
	require.NoError(t, srv.CreateDatabase(t.Context(), "src", ""))
	require.NoError(t, migrations.Up(t.Context(), srv.DSN("src")))
	exec(t, open(t, srv.DSN("src")), `CREATE TABLE t (id int PRIMARY KEY, v text);
		CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
		SELECT fencing.register('t', 'lease'), fencing.register('p', 'strict', 'fence', 'parts');
		SELECT fencing.wall('t'), fencing.wall('p', 'attested'); SELECT fencing.tombstones('t');
		SELECT setval('fencing.write_epoch', 100); INSERT INTO t VALUES (1, 'old', 50), (2, 'old', 50);
		SET fencing.token_parts = '50'; INSERT INTO p VALUES (1, 'old', 50);
		SET fencing.token = '60'; DELETE FROM t WHERE id = 2;
		CREATE TABLE s (id int PRIMARY KEY); SELECT fencing.register('s', 'lease'), fencing.wall('s'), fencing.seal('s', 'r');
		INSERT INTO fencing.lease VALUES ('r', 'h', 70, now() + interval '1 hour'); INSERT INTO s VALUES (1, 70);
		CREATE FUNCTION run(q text, d date DEFAULT '2026-02-03') RETURNS void LANGUAGE plpgsql SET work_mem = '8MB' AS 'BEGIN EXECUTE q; END';
		CREATE FUNCTION add(t) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT $1.id + count(*)::int FROM t WHERE v > E'\\\\'; END;
		SELECT fencing.allow_function(f, 'why') FROM (VALUES ('run(text, date)'::regprocedure), ('add(t)')) v(f)`)
	return d, true
}

// restore pipes a dump of src into another database, and returns what psql said.
func (d *dumper) restore(t *testing.T, into string, args ...string) (string, error) {
	t.Helper()
	return d.restoreTo(t, d.srv.DSN(into), args...)
}

func (d *dumper) restoreTo(t *testing.T, into string, args ...string) (string, error) {
	t.Helper()
	dump := client(t.Context(), d.pgDump, append(args, d.srv.DSN(d.from))...)
	load := client(t.Context(), d.psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", into)
	r, w := io.Pipe()
	var out, dumpErr bytes.Buffer
	dump.Stdout, dump.Stderr = w, &dumpErr
	load.Stdin, load.Stdout, load.Stderr = r, io.Discard, &out
	require.NoError(t, dump.Start())
	require.NoError(t, load.Start())
	done := make(chan error, 1)
	go func() {
		err := load.Wait()
		_ = r.Close() // pg_dump writes on where psql has given up
		done <- err
	}()
	err := dump.Wait()
	require.NoError(t, w.Close())
	loadErr := <-done
	if loadErr == nil {
		require.NoError(t, err, dumpErr.String())
	}
	return out.String(), loadErr
}

func (d *dumper) create(t *testing.T, name string) *pgx.Conn {
	t.Helper()
	require.NoError(t, d.srv.CreateDatabase(t.Context(), name, ""))
	return open(t, d.srv.DSN(name))
}

// requireWall tries what the wall of the dump's tables refuses.
func requireWall(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	const replica = "SET LOCAL session_replication_role = replica;"
	for sql, want := range map[string]string{
		"UPDATE t SET v = 'x', last_token = 49 WHERE id = 1":  "FN001 ~fencing_update 49 50",
		"UPDATE t SET v = 'x' WHERE id = 1":                   "FN002 ~fencing_update - 50",
		"UPDATE t SET v = 'x', last_token = 101 WHERE id = 1": "FN003 ~fencing_update 101 50",
		"DELETE FROM t":                     "FN002 ~fencing_delete - 50",
		"TRUNCATE t":                        "FN004 ~fencing_truncate - -",
		"TRUNCATE p1":                       "FN004 ~fencing_truncate - -",
		"INSERT INTO t VALUES (2, 'x', 59)": "FN001 ~fencing_tomb 59 60",
		"UPDATE p SET v = 'x', fence = 60":  "FN002 ~fencing_update 60 50",
		"SET LOCAL fencing.token_parts = '60'; UPDATE p SET v = 'x', fence = 61":                  "FN004 ~fencing_update 61 50",
		"SET LOCAL fencing.token_parts = '50'; UPDATE p1 SET v = 'x', fence = 50":                 "FN001 ~fencing_update 50 50",
		replica + "UPDATE t SET v = 'x' WHERE id = 1":                                             "FN002 ~fencing_update - 50",
		replica + "UPDATE p1 SET v = 'x'":                                                         "FN001 ~fencing_update 50 50",
		replica + "TRUNCATE p":                                                                    "FN004 ~fencing_truncate - -",
		replica + "INSERT INTO t VALUES (2, 'x', 59)":                                             "FN001 ~fencing_tomb 59 60",
		"UPDATE t SET v = 'new', last_token = 60 WHERE id = 1":                                    "",
		"SET LOCAL fencing.token_parts = '60'; UPDATE p SET v = 'x', fence = 60 WHERE fence < 60": "",
		"SET LOCAL fencing.token = '60'; DELETE FROM t; INSERT INTO t VALUES (1, 'x', 60)":        "",
		"INSERT INTO s VALUES (2, 60)":                                                            "FN001 ~fencing_zseal 60 70",
		"INSERT INTO s VALUES (2, 80)":                                                            "FN004 ~fencing_zseal 80 70",
		replica + "INSERT INTO s VALUES (2, 60)":                                                  "FN001 ~fencing_zseal 60 70",
		"INSERT INTO s VALUES (2, 70)":                                                            "",
		replica + "UPDATE fencing.lease SET token = 80; INSERT INTO s VALUES (2, 80)":             "",
	} {
		_, err := try(t, conn, sql)
		require.Equal(t, want, refusal(t, err), sql)
	}
}

// A dump, restored, has the whole wall: triggers that always fire, their
// functions, the registry, the tombstones and the sequence's value.
func TestDumpAndRestore(t *testing.T) {
	d, ok := newDumper(t)
	if !ok {
		return
	}
	src, conn := open(t, d.srv.DSN("src")), d.create(t, "restored")
	requireWall(t, src)
	out, err := d.restore(t, "restored")
	require.NoError(t, err, out)
	require.Equal(t, wallTriggers(t, src), wallTriggers(t, conn))
	require.Equal(t, int64(1),
		get[int64](t, conn, "SELECT count(*) FROM fencing.registry WHERE relid = 't'::regclass AND issued_by = 'fencing.write_epoch'::regclass"))
	requireWall(t, conn)
	require.ElementsMatch(t, []string{"run(text, date)", "add(t)"}, get[[]string](t, conn, allowedNow))
	gen := generation(t, conn)
	require.NoError(t, migrations.Wall(t.Context(), d.srv.DSN("restored"), "t", migrations.WallEnforce))
	require.Equal(t, gen, generation(t, conn))
	require.Greater(t, get[int64](t, conn, "SELECT fencing.next_token()"), int64(1)<<32, "far above what was given out after the dump")
}

// Tokens that were drawn after a dump are not given out again where it is
// restored, in another cluster. A bare sequence, the control, goes on from the
// dump.
func TestTokensJumpInANewCluster(t *testing.T) {
	d, ok := newDumper(t)
	if !ok {
		return
	}
	src, other := open(t, d.srv.DSN("src")), localpg.StartServer(t)
	exec(t, src, "CREATE SEQUENCE bare; SELECT nextval('bare'); SELECT fencing.next_token()")
	require.NoError(t, other.CreateDatabase(t.Context(), "restored", ""))
	out, err := d.restoreTo(t, other.DSN("restored"))
	require.NoError(t, err, out)
	const drawn, bareDrawn = "SELECT max(fencing.next_token()) FROM generate_series(1, 5)", "SELECT max(nextval('bare')) FROM generate_series(1, 5)"
	last, lastBare := get[int64](t, src, drawn), get[int64](t, src, bareDrawn)
	conn := open(t, other.DSN("restored"))
	require.LessOrEqual(t, get[int64](t, conn, "SELECT nextval('bare')"), lastBare, "the control shows nothing")
	requireJump(t, other.DSN("restored"), last)
}

// Rows alone, restored beside the triggers, are refused, as the sequence's
// value comes last. With triggers disabled they get in, and what comes after
// them has the triggers fire in ordinary sessions only, until the wall is put
// up again.
func TestDumpOfRowsAlone(t *testing.T) {
	d, ok := newDumper(t)
	if !ok {
		return
	}
	conn := d.create(t, "restored")
	out, err := d.restore(t, "restored", "--schema-only")
	require.NoError(t, err, out)
	out, err = d.restore(t, "restored", "--data-only", "--table=t")
	require.Error(t, err)
	require.Contains(t, out, "FN003", "refused")

	out, err = d.restore(t, "restored", "--data-only", "--disable-triggers")
	require.NoError(t, err, out)
	_, err = try(t, conn, "SET LOCAL session_replication_role = replica; UPDATE t SET v = 'x'")
	require.NoError(t, err, "the caveat: a superuser's replica session passes")
	_, err = try(t, conn, "UPDATE t SET v = 'x'")
	require.Equal(t, "FN002 ~fencing_update - 50", refusal(t, err))
	require.NoError(t, migrations.Wall(t.Context(), d.srv.DSN("restored"), "t", migrations.WallEnforce))
	require.NoError(t, migrations.Wall(t.Context(), d.srv.DSN("restored"), "p", migrations.WallAttested))
	exec(t, conn, "SELECT fencing.tombstones('t'); SELECT fencing.wall('s')")

	// nothing mends those of schema fencing itself but what the page has
	const ownTriggers = `SELECT string_agg(DISTINCT t.tgenabled::text, '') FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = 'fencing'::regnamespace AND NOT t.tgisinternal`
	require.Equal(t, "O", get[string](t, conn, ownTriggers))
	page, err := os.ReadFile("../docs/replication.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```sql\n(ALTER TABLE fencing.*?)```").FindStringSubmatch(string(page))
	require.NotNil(t, block)
	exec(t, conn, block[1])
	require.Equal(t, "A", get[string](t, conn, ownTriggers))
	require.Equal(t, wallTriggers(t, open(t, d.srv.DSN("src"))), wallTriggers(t, conn))
	requireWall(t, conn)
	require.Empty(t,
		get[[]string](t, conn,
			"SELECT coalesce(array_agg(code || ' ' || object), '{}') FROM fencing.doctor() WHERE code ~ '^D2' AND severity = 'error'"))
}
