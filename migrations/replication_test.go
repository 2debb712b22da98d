package migrations_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// replica is a publisher and a subscriber, each with a walled table t and a
// partitioned one, p. They are two servers: in one, a worker that copies a table
// waits with a lock on it for every transaction of the server, and so also for one
// that waits for that lock. PostgreSQL doesn't detect this deadlock.
type replica struct {
	publisher, srv *localpg.Server
	pub, sub       *pgx.Conn
}

func newReplica(t *testing.T) *replica {
	t.Helper()
	r := &replica{
		publisher: localpg.StartServer(t, localpg.WithSetting("wal_level", "logical")),
		// the worker that fails is started again at once, not after 5 s
		srv: localpg.StartServer(t, localpg.WithSetting("wal_retrieve_retry_interval", "50ms")),
	}
	for name, conn := range map[string]**pgx.Conn{"pub": &r.pub, "sub": &r.sub} {
		srv := map[string]*localpg.Server{"pub": r.publisher, "sub": r.srv}[name]
		require.NoError(t, srv.CreateDatabase(t.Context(), name, ""))
		require.NoError(t, migrations.Up(t.Context(), srv.DSN(name)))
		*conn = open(t, srv.DSN(name))
		exec(t, *conn, `CREATE TABLE t (id int PRIMARY KEY, v text);
			CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
			SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t'); SELECT fencing.register('p', 'strict'), fencing.wall('p')`)
	}
	exec(t, r.pub, "SELECT setval('fencing.write_epoch', 100); CREATE PUBLICATION pub FOR TABLE t, p")
	return r
}

// subscribe follows the publisher from here on.
func (r *replica) subscribe(t *testing.T, options string) {
	t.Helper()
	exec(t, r.sub, fmt.Sprintf("CREATE SUBSCRIPTION sub CONNECTION '%s' PUBLICATION pub WITH (slot_name = 'sub'%s)",
		strings.ReplaceAll(r.publisher.DSN("pub"), "'", "''"), options))
}

// errorsOf is how often the apply worker, or a copy of the start, has failed.
func (r *replica) errorsOf(t *testing.T, kind string) int64 {
	t.Helper()
	return get[int64](t, r.sub, "SELECT "+kind+"_error_count FROM pg_stat_subscription_stats WHERE subname = 'sub'")
}

// requireStuck waits until the worker has failed once more.
func (r *replica) requireStuck(t *testing.T, kind string) {
	t.Helper()
	before := r.errorsOf(t, kind)
	fencetest.Eventually(t, func() bool { return r.errorsOf(t, kind) > before })
}

// requireCaughtUp waits until the subscriber has the publisher's rows.
func (r *replica) requireCaughtUp(t *testing.T) {
	t.Helper()
	const rows = "SELECT concat((SELECT string_agg(t::text, ' ' ORDER BY id) FROM t), ' | ', (SELECT string_agg(p::text, ' ' ORDER BY id) FROM p))"
	want := get[string](t, r.pub, rows)
	fencetest.Eventually(t, func() bool { return get[string](t, r.sub, rows) == want }, want)
}

// write has the publisher insert, update and delete rows, in this order of
// tokens, each in a transaction of its own.
func (r *replica) write(t *testing.T, token int) {
	t.Helper()
	for _, sql := range []string{
		"INSERT INTO t VALUES (1, 'new', %[1]d), (2, 'new', %[1]d), (3, 'new', %[1]d)",
		"INSERT INTO p VALUES (1, 'new', %[1]d), (2, 'new', %[1]d)",
		"UPDATE t SET v = 'newer', last_token = %[1]d + 1 WHERE id > 1",
		"UPDATE p SET v = 'newer', last_token = %[1]d + 1 WHERE id > 1",
		"UPDATE t SET id = 4, last_token = %[1]d + 2 WHERE id = 3",
	} {
		exec(t, r.pub, fmt.Sprintf(sql, token))
	}
}

// remedy is the SQL block of docs/replication.md.
func remedy(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/replication.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "```sql\nDO $$")
	require.True(t, ok, "the page has no block")
	body, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	return "DO $$" + body
}

// With the wall as it is put up, a subscriber refuses what it is sent: the copy
// at the start, and later changes.
func TestReplicationIntoAWall(t *testing.T) {
	r := newReplica(t)
	r.write(t, 10)
	r.subscribe(t, "")
	r.requireStuck(t, "sync")
	require.Zero(t, get[int64](t, r.sub, "SELECT count(*) FROM t"))
	exec(t, r.sub, "ALTER SUBSCRIPTION sub DISABLE; ALTER SUBSCRIPTION sub SET (slot_name = NONE)")
	exec(t, r.sub, "DROP SUBSCRIPTION sub")
}

// Each kind of change that stops the apply worker: rows are there on both sides
// when it starts.
func TestReplicationStops(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, change string }{
		"insert, never issued here": {"", "INSERT INTO t VALUES (9, 'new', 60)"},
		"update, never issued here": {"", "UPDATE t SET v = 'new', last_token = 60"},
		"delete":                    {"SELECT setval('fencing.write_epoch', 100)", "BEGIN; SET LOCAL fencing.token = '60'; DELETE FROM t; COMMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t)
			exec(t, r.pub, "INSERT INTO t VALUES (1, 'old', 50)")
			exec(t, r.sub, "SELECT fencing.wall('t', 'off'); INSERT INTO t VALUES (1, 'old', 50); SELECT fencing.wall('t');"+tt.before)
			r.subscribe(t, ", copy_data = false")
			exec(t, r.pub, tt.change)
			r.requireStuck(t, "apply")
			require.Equal(t, "(1,old,50)", get[string](t, r.sub, "SELECT string_agg(t::text, ' ') FROM t"))

			exec(t, r.sub, remedy(t))
			r.requireCaughtUp(t)
		})
	}
}

// The documented remedy: triggers that fire for everybody but the apply worker.
// It gets all changes in, and writes by others are refused as before.
func TestReplicationRemedy(t *testing.T) {
	r := newReplica(t)
	r.write(t, 10)
	exec(t, r.sub, remedy(t))
	r.subscribe(t, "")
	r.requireCaughtUp(t)
	r.write2(t)
	r.requireCaughtUp(t)
	require.Zero(t, r.errorsOf(t, "apply")+r.errorsOf(t, "sync"))

	for sql, want := range map[string]string{
		"UPDATE t SET v = 'x' WHERE id = 1":                  "FN002 ~fencing_update - 10",
		"UPDATE t SET v = 'x', last_token = 60 WHERE id = 1": "FN003 ~fencing_update 60 10",
		"UPDATE t SET v = 'x', last_token = 9 WHERE id = 1":  "FN001 ~fencing_update 9 10",
		"UPDATE p1 SET v = 'x' WHERE id = 1":                 "FN001 ~fencing_update 10 10",
		"INSERT INTO t VALUES (9, 'x', 60)":                  "FN003 ~fencing_insert 60 -",
		"DELETE FROM t WHERE id = 1":                         "FN002 ~fencing_delete - 10",
		"TRUNCATE t":                                         "FN004 ~fencing_truncate - -",
		"TRUNCATE p1":                                        "FN004 ~fencing_truncate - -",
	} {
		_, err := try(t, r.sub, sql)
		require.Equal(t, want, refusal(t, err), sql)
	}

	// the subscriber takes over
	exec(t, r.sub, "ALTER SUBSCRIPTION sub DISABLE")
	exec(t, r.sub, "ALTER SUBSCRIPTION sub SET (slot_name = NONE)")
	exec(t, r.sub, "DROP SUBSCRIPTION sub")
	exec(t, r.sub, `SELECT setval('fencing.write_epoch', greatest((SELECT max(last_token) FROM t), (SELECT max(last_token) FROM p)) + 4294967296);
		SELECT fencing.wall('t'), fencing.wall('p'); SELECT fencing.tombstones('t')`)
	require.Equal(t, wallTriggers(t, r.pub), wallTriggers(t, r.sub))
	exec(t, r.sub, "UPDATE t SET v = 'ours', last_token = fencing.next_token() WHERE id = 1")
}

// write2 has the publisher change what write has left, by each kind of change.
func (r *replica) write2(t *testing.T) {
	t.Helper()
	exec(t, r.pub, "BEGIN; SET LOCAL fencing.token = '70'; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (2, 'again', 70); COMMIT")
	exec(t, r.pub, "BEGIN; SET LOCAL fencing.token = '71'; DELETE FROM p WHERE id = 2; COMMIT")
	exec(t, r.pub, "UPDATE t SET v = 'last', last_token = 72 WHERE id = 4")
}

// Without a sequence to bound them INSERTs and UPDATEs arrive, with the wall as
// it is; a DELETE comes without the setting, and stops the worker.
func TestReplicationWithoutASequence(t *testing.T) {
	r := newReplica(t)
	exec(t, r.sub, "SELECT fencing.register('t', 'lease', issued_by => NULL), fencing.register('p', 'strict', issued_by => NULL)")
	r.subscribe(t, "")
	r.write(t, 10)
	r.requireCaughtUp(t)
	require.Zero(t, r.errorsOf(t, "apply")+r.errorsOf(t, "sync"))
	r.write2(t)
	r.requireStuck(t, "apply")
	_, err := try(t, r.sub, "UPDATE t SET v = 'x', last_token = 9223372036854775807 WHERE id = 1")
	require.NoError(t, err, "made up")
}

// On a subscriber it is triggers that fire always which the doctor finds, and
// its remedy has the worker go on.
func TestDoctorOnASubscriber(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	r.write(t, 10)
	r.subscribe(t, "")
	r.requireStuck(t, "sync")
	findings := diagnose(t, r.srv.DSN("sub"))
	require.Equal(t, []string{"D701 subscription"}, codes(findings, "error"), "%v", findings)
	for _, f := range findings {
		if f.Code == "D701 subscription" {
			sql, _, ok := strings.Cut(strings.TrimPrefix(f.Remedy, "run "), ", so that")
			require.True(t, ok, f.Remedy)
			exec(t, r.sub, sql)
		}
	}
	r.requireCaughtUp(t)
	findings = diagnose(t, r.srv.DSN("sub"))
	require.Empty(t, codes(findings, "error"), "%v", findings)
	require.Contains(t, codes(findings, "info"), "D701 subscription")

	exec(t, r.sub, `ALTER TABLE t DISABLE TRIGGER "~fencing_update"`)
	for _, f := range diagnose(t, r.srv.DSN("sub")) {
		if f.Code == "D203 trigger-disabled" {
			require.Equal(t, `ALTER TABLE public.t ENABLE TRIGGER "~fencing_update"`, f.Remedy)
			exec(t, r.sub, f.Remedy)
		}
	}
	findings = diagnose(t, r.srv.DSN("sub"))
	require.Empty(t, codes(findings, "error"), "%v", findings)

	exec(t, r.sub, "ALTER SUBSCRIPTION sub DISABLE; ALTER SUBSCRIPTION sub SET (slot_name = NONE)")
	exec(t, r.sub, "DROP SUBSCRIPTION sub")
	require.Contains(t, codes(diagnose(t, r.srv.DSN("sub")), "error"), "D203 trigger-disabled", "the subscriber takes over")
}
