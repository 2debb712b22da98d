package check

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/tokenctx"
)

// TestMain makes a few hundred generated statements the default, and keeps rapid
// from leaving files behind: a counterexample becomes a case by hand.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "400", "rapid.nofailfile": "true"} {
		if !given[name] {
			_ = flag.Set(name, value)
		}
	}
	localpg.Main(m)
}

var casesTemplate = localpg.Template{Name: "cases", Setup: func(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	schema, err := os.ReadFile("testdata/cases/schema.sql")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, string(schema)+`ALTER TABLE rows_inh ADD PRIMARY KEY (id);`+pathSchema+resetRows)
	return err
}}

// pathSchema has what an unseen search path can lead to: comparisons that let
// every token through, a type int8 in which a newer token is equal, and a function
// that sets the path as an application's would.
const pathSchema = `
	CREATE SCHEMA evil;
	CREATE DOMAIN evil.int8 AS float8;
	CREATE FUNCTION evil.both(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
	CREATE FUNCTION evil.small(bigint, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
	CREATE FUNCTION evil.large(int, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
	DO $$ DECLARE op text; BEGIN
	  FOREACH op IN ARRAY ARRAY['<', '<=', '>', '>='] LOOP
	    EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.both)', op);
	    EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = bigint, RIGHTARG = int, FUNCTION = evil.small)', op);
	    EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = int, RIGHTARG = bigint, FUNCTION = evil.large)', op);
	  END LOOP; END $$;
	CREATE FUNCTION set_tenant(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.set_config('search_path', t, false); END $$;`

// genPath is the path that the session has come to without the check's seeing
// it, "" if it is what the session began with.
var genPath = rapid.SampledFrom([]string{"", "", "app, public", "other, public", "evil, pg_catalog, public", "evil, other, pg_catalog, app, public", "pg_temp, app"})

// enter brings the holder's session to a path.
func (l *lab) enter(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	_, err := l.holder.Exec(ctx, `SELECT public.set_tenant($1)`, path)
	return err
}

// means asks the server what the driver would ask.
func (l *lab) means(ctx context.Context, path string, shared *Shared) ([]string, error) {
	if err := l.enter(ctx, path); err != nil {
		return nil, err
	}
	answers := make([]string, shared.Names())
	into := make([]any, len(answers))
	for i := range answers {
		into[i] = &sql.NullString{}
	}
	err := l.holder.QueryRow(ctx, shared.Question()).Scan(into...)
	for i := range answers {
		answers[i] = into[i].(*sql.NullString).String
	}
	_, resetErr := l.holder.Exec(ctx, `RESET search_path`)
	return answers, errors.Join(err, resetErr)
}

// sentText is what the driver sends for a plan.
func sentText(plan *Plan) string {
	if plan.Guarded() {
		return plan.Attested()
	}
	return plan.Text()
}

// resetRows puts the rows back: of each protected table rows without a token,
// with an older, an equal and a newer one than the holder's.
var resetRows = withTokens(`
	DELETE FROM accounts_child; DELETE FROM app.accounts; DELETE FROM protected_rows; DELETE FROM "Order Items"; DELETE FROM metrics;
	DELETE FROM plain_rows; DELETE FROM other.protected_rows; DELETE FROM jobs;
	INSERT INTO protected_rows SELECT i, 'row', 0, (ARRAY[T - 3, T, N, 0])[i] FROM generate_series(1, 4) i;
	INSERT INTO rows_inh SELECT i, 'row', 0, (ARRAY[T - 3, T, N, 0])[i - 10] FROM generate_series(11, 14) i;
	INSERT INTO "Order Items" SELECT i, 1, (ARRAY[T - 3, T, N, 0])[i] FROM generate_series(1, 4) i;
	INSERT INTO app.accounts SELECT i, 1, (ARRAY[T - 3, T, N, 0])[i] FROM generate_series(1, 4) i;
	INSERT INTO accounts_child SELECT i, i, 'row', (ARRAY[N, 0, T, T - 3])[i] FROM generate_series(1, 4) i;
	INSERT INTO metrics SELECT i, 1 + i % 2, 1, (ARRAY[T - 3, T, N, 0])[i] FROM generate_series(1, 4) i;
	INSERT INTO plain_rows SELECT i, 'row', 0 FROM generate_series(1, 4) i;
	INSERT INTO other.protected_rows SELECT i, 'row', 0, 0 FROM generate_series(1, 4) i;
	INSERT INTO jobs (id, kind) SELECT i, 'row' FROM generate_series(1, 4) i;`)

// newerHolder is the other holder's transaction: it writes every row that an
// older one may write, and adds a row.
var newerHolder = withTokens(`
	UPDATE protected_rows SET value = 'newer', last_token = M; UPDATE "Order Items" SET "Qty" = 30, fence = M;
	UPDATE app.accounts SET balance = 30, last_token = M; UPDATE accounts_child SET note = 'newer', last_token = M; UPDATE metrics SET v = 30, last_token = M;
	INSERT INTO protected_rows VALUES (50, 'newer', 0, M); INSERT INTO "Order Items" VALUES (50, 30, M); INSERT INTO app.accounts VALUES (50, 30, M);
	INSERT INTO accounts_child VALUES (50, 50, 'newer', M); INSERT INTO metrics VALUES (50, 1, 30, M);`)

// withTokens writes the tokens of the holder (T), of a newer one (N) and of the
// newest (M) into a text.
func withTokens(sql string) string {
	return regexp.MustCompile(`\b[TNM]\b`).ReplaceAllStringFunc(sql, func(s string) string {
		return fmt.Sprint(map[string]int64{"T": genToken, "N": genNewer, "M": genToken + 30}[s])
	})
}

// rowsQuery returns every protected row: where it is, its token, all of it.
const rowsQuery = `
	SELECT 'protected_rows ' || tableoid || ' ' || id, last_token, r::text FROM protected_rows r UNION ALL SELECT 'Order Items ' || id, fence, r::text FROM "Order Items" r
	UNION ALL SELECT 'accounts ' || id, last_token, r::text FROM app.accounts r UNION ALL SELECT 'accounts_child ' || id, last_token, r::text FROM accounts_child r
	UNION ALL SELECT 'metrics ' || id || ' ' || day, last_token, r::text FROM metrics r`

// structureQuery is everything that the protection rests on beside rows. It is
// read by oid, so that nothing can take a name's place unseen.
const structureQuery = `
	SELECT concat_ws(E'\n', current_setting('session_replication_role'), current_user, session_user, current_setting('standard_conforming_strings'), current_setting('client_encoding'),
	  (SELECT string_agg(n || ' ' || coalesce(to_regclass(n)::oid::text, 'gone'), E'\n') FROM unnest(ARRAY['protected_rows', 'public.protected_rows', 'app.accounts', 'accounts_child', 'metrics', 'metrics_1', 'metrics_2', '"Order Items"', 'write_epoch']) n),
	  (SELECT string_agg(c.oid || ' ' || c.relname || ' ' || c.relnamespace || ' ' || c.relowner || ' ' || c.relkind::text || ' ' || c.relhastriggers || ' ' || c.relrowsecurity || ' ' || c.relispartition, E'\n' ORDER BY c.oid) FROM pg_class c WHERE c.oid = ANY ($1)),
	  (SELECT string_agg(a.attrelid || ' ' || a.attname || ' ' || a.atttypid || ' ' || a.attnotnull || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), ''), E'\n' ORDER BY a.attrelid, a.attnum) FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = ANY ($1)),
	  (SELECT string_agg(t.tgrelid || ' ' || t.tgname || ' ' || t.tgenabled::text || ' ' || t.tgfoid, E'\n' ORDER BY t.oid) FROM pg_trigger t WHERE t.tgrelid = ANY ($1) AND NOT t.tgisinternal),
	  (SELECT string_agg(d.classid || ' ' || d.objid || ' ' || d.refobjid, E'\n' ORDER BY d.classid, d.objid, d.refobjid) FROM pg_depend d WHERE d.refobjid = ANY ($1) AND d.refclassid = 'pg_class'::regclass AND d.classid IN ('pg_rewrite'::regclass, 'pg_class'::regclass)),
	  (SELECT string_agg(i.inhrelid || ' ' || i.inhparent, E'\n' ORDER BY i.inhrelid) FROM pg_inherits i WHERE i.inhparent = ANY ($1) OR i.inhrelid = ANY ($1)),
	  (SELECT string_agg(p.oid || ' ' || p.proname || ' ' || p.prosrc, E'\n' ORDER BY p.oid) FROM pg_proc p WHERE p.proname IN ('audit_noop', 'bump_row', 'bump_proc')),
	  (SELECT string_agg(nspname, ' ' ORDER BY oid) FROM pg_namespace WHERE nspname IN ('app', 'public', 'fencing')),
	  (SELECT seqstart || ' ' || seqincrement || ' ' || seqcycle FROM pg_sequence WHERE seqrelid = 'public.write_epoch'::regclass))`

// lab runs accepted statements on a server.
type lab struct {
	dsn       string
	holder    *pgx.Conn // sends the statements
	newer     *pgx.Conn // the newer holder's
	watch     *pgx.Conn
	protected []uint32
	structure string
	rows      rowSet

	generated, accepted, guarded, rewritten, ran, failed, waited, changed int
}

type rowSet map[string]rowState

type rowState struct {
	token int64
	text  string
}

func newLab(t *testing.T) *lab {
	l := &lab{dsn: localpg.Database(t, casesTemplate)}
	ctx := context.Background()
	for _, c := range []**pgx.Conn{&l.holder, &l.newer, &l.watch} {
		*c = l.connect(t)
	}
	rows, err := l.watch.Query(ctx, `SELECT oid FROM pg_class WHERE relname IN ('protected_rows', 'accounts', 'accounts_child', 'metrics', 'metrics_1', 'metrics_2', 'Order Items', 'rows_inh', 'write_epoch') AND relnamespace <> 'other'::regnamespace AND NOT (relname = 'accounts' AND relnamespace = 'public'::regnamespace)`)
	require.NoError(t, err)
	l.protected, err = pgx.CollectRows(rows, pgx.RowTo[uint32])
	require.NoError(t, err)
	for name, schema := range map[string]string{"accounts": "public", "protected_rows": "other"} {
		var oid uint32
		require.NoError(t, l.watch.QueryRow(ctx, `SELECT c.oid FROM pg_class c WHERE c.relname = $1 AND c.relnamespace = $2::regnamespace`, name, schema).Scan(&oid))
		namesakeOIDs[name] = oid
	}
	l.structure, err = l.readStructure(ctx, l.watch)
	require.NoError(t, err)
	l.rows, err = readRows(ctx, l.watch)
	require.NoError(t, err)
	return l
}

func (l *lab) connect(t testing.TB) *pgx.Conn {
	config, err := pgx.ParseConfig(l.dsn)
	require.NoError(t, err)
	config.RuntimeParams["statement_timeout"] = "60000"
	conn, err := pgx.ConnectConfig(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (l *lab) readStructure(ctx context.Context, c *pgx.Conn) (s string, err error) {
	return s, c.QueryRow(ctx, structureQuery, l.protected).Scan(&s)
}

func readRows(ctx context.Context, c *pgx.Conn) (rowSet, error) {
	rows, err := c.Query(ctx, rowsQuery)
	if err != nil {
		return nil, err
	}
	set := rowSet{}
	var key string
	var state rowState
	_, err = pgx.ForEachRow(rows, []any{&key, &state.token, &state.text}, func() error {
		set[key] = state
		return nil
	})
	return set, err
}

// broken says which rule a change of rows breaks, "" if none.
func broken(before, after rowSet, mode Mode) string {
	newerThan := func(token int64) bool { return token > genToken || mode == Strict && token == genToken }
	for key, b := range before {
		a, there := after[key]
		switch {
		case there && a == b:
		case newerThan(b.token):
			return fmt.Sprintf("row %s carried token %d and was changed to %v", key, b.token, a)
		case there && a.token != genToken:
			return fmt.Sprintf("row %s was written and carries token %d: %s -> %s", key, a.token, b.text, a.text)
		}
	}
	for key, a := range after {
		if _, there := before[key]; !there && a.token != genToken {
			return fmt.Sprintf("row %s was inserted with token %d", key, a.token)
		}
	}
	return ""
}

func differs(a, b rowSet) bool {
	for k, v := range a {
		if b[k] != v {
			return true
		}
	}
	return len(a) != len(b)
}

// generated is one statement with its arguments.
type generated struct {
	sql  string
	args []any
	mode Mode
	path string // of the session, unseen by the check

	misled bool // what a bare name means has changed since the server was asked
}

func (s generated) String() string {
	return fmt.Sprintf("%s mode: %s -- %v under path %q", s.mode, s.sql, s.args, s.path)
}

var genStatement = rapid.Custom(func(t *rapid.T) generated {
	g := &gen{t: t}
	mode := rapid.SampledFrom([]Mode{Strict, Lease}).Draw(t, "mode")
	return generated{sql: g.statement(), args: g.args, mode: mode}
})

var genPlaceholder = regexp.MustCompile(`\$\d+`)

// trim numbers the placeholders of a text without gaps and drops the arguments
// that it doesn't use: PostgreSQL could not tell their types.
func trim(s generated) generated {
	var args []any
	numbers := map[string]string{}
	s.sql = genPlaceholder.ReplaceAllStringFunc(s.sql, func(p string) string {
		if numbers[p] == "" {
			var n int
			_, _ = fmt.Sscanf(p, "$%d", &n)
			args = append(args, s.args[n-1])
			numbers[p] = fmt.Sprintf("$%d", len(args))
		}
		return numbers[p]
	})
	s.args = args
	return s
}

// try plans a statement and, if it is accepted, runs it. It returns what is
// wrong, "" if nothing is.
func (l *lab) try(policies map[Mode]*Policy, s generated) string {
	l.generated++
	ctx := context.Background()
	plan := policies[s.mode].Plan(s.sql)
	if shared := plan.Shared(); shared != nil {
		answers, err := l.means(ctx, s.path, shared)
		if err != nil {
			return "ask which table a bare name means: " + err.Error()
		}
		if s.misled { // another connection was asked
			answers = meaningOther(shared)
		}
		plan = shared.Plan(answers)
	}
	if plan.Refusal() != nil {
		return ""
	}
	named := make([]driver.NamedValue, len(s.args))
	for i, a := range s.args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	bound, err := plan.BindAll(tokenctx.With(ctx, genToken), named)
	if err != nil {
		return ""
	}
	l.accepted++
	if plan.Guarded() {
		l.guarded++
	}
	args := make([]any, len(bound))
	for i, a := range bound {
		args[i] = a.Value
	}
	if plan.Rewritten() {
		l.rewritten++
		if what := l.sameWork(ctx, s, plan.Text(), args); what != "" {
			return what + "\nsent as: " + plan.Text()
		}
	}
	s.sql = sentText(plan)
	if what := l.alone(ctx, plan, s, args); what != "" {
		return what
	}
	return l.race(ctx, s, args)
}

// alone runs a statement by itself, and takes it back.
func (l *lab) alone(ctx context.Context, plan *Plan, s generated, args []any) string {
	tx, err := l.holder.Begin(ctx)
	if err != nil {
		return "begin: " + err.Error()
	}
	defer func() { _ = tx.Rollback(ctx) }()
	l.ran++
	if err := l.enter(ctx, s.path); err != nil {
		return "enter the path: " + err.Error()
	}
	if plan.DeallocatesAll {
		err = l.holder.DeallocateAll(ctx) // pgx forgets its own statements, as under the driver
	} else {
		err = send(ctx, l.holder, s.sql, args)
	}
	if err != nil {
		l.failed++
		return ""
	}
	// a text may end the transaction, or leave it in a path of its own
	_, _ = l.holder.Exec(ctx, `RESET search_path`)
	after, err := readRows(ctx, l.holder)
	if err != nil {
		return "read the rows: " + err.Error()
	}
	structure, err := l.readStructure(ctx, l.holder)
	if err != nil {
		return "read the structure: " + err.Error()
	}
	if structure != l.structure {
		return "what the protection rests on has changed:\n" + firstDifference(l.structure, structure)
	}
	if differs(l.rows, after) {
		l.changed++
	}
	return broken(l.rows, after, s.mode)
}

// race runs a statement against a newer holder's open transaction, which
// commits when the statement waits for it or is done.
func (l *lab) race(ctx context.Context, s generated, args []any) (what string) {
	if !l.mayWait(s.sql) {
		return ""
	}
	if _, err := l.newer.Exec(ctx, "BEGIN;"+newerHolder); err != nil {
		return "newer holder: " + err.Error()
	}
	if err := l.enter(ctx, s.path); err != nil {
		return "enter the path: " + err.Error()
	}
	done := make(chan error, 1)
	go func() { done <- send(ctx, l.holder, s.sql, args) }()
	waits, finished := l.waits(ctx, done)
	if waits {
		l.waited++
	}
	before, err := readRows(ctx, l.newer) // what it leaves behind, of which nothing is stale
	if err == nil {
		_, err = l.newer.Exec(ctx, "COMMIT")
	}
	if err != nil {
		return "newer holder: " + err.Error()
	}
	if !finished {
		<-done
	}
	_, _ = l.holder.Exec(ctx, "ROLLBACK; RESET search_path")
	after, err := readRows(ctx, l.watch)
	if err != nil {
		return "read the rows: " + err.Error()
	}
	if what = l.brokenRace(before, after, s.mode); what != "" {
		what = "against a newer holder's transaction: " + what
	}
	if _, err := l.watch.Exec(ctx, resetRows); err != nil {
		return "reset: " + err.Error()
	}
	return what
}

// brokenRace is broken for a statement that may have written rows the newer
// holder did not see.
func (l *lab) brokenRace(before, after rowSet, mode Mode) string {
	for key, b := range l.rows {
		// a row that the newer holder could not see is judged by its first state
		if _, seen := before[key]; !seen {
			before[key] = b
		}
	}
	return broken(before, after, mode)
}

// mayWait reports whether a statement is worth a race: it writes.
func (l *lab) mayWait(sql string) bool {
	upper := strings.ToUpper(sql)
	for _, word := range []string{"DDL", "CREATE", "DROP", "ALTER", "TRUNCATE", "LOCK", "REINDEX", "DECLARE", "SAVEPOINT", "PREPARE", "BEGIN", "ANALYZE PROTECTED"} {
		if strings.HasPrefix(upper, word) {
			return false
		}
	}
	return strings.Contains(upper, "UPDATE") || strings.Contains(upper, "INSERT") || strings.Contains(upper, "DELETE") || strings.Contains(upper, "MERGE")
}

// waits waits until the holder's statement waits for the newer one's lock, or
// is done.
func (l *lab) waits(ctx context.Context, done chan error) (waits, finished bool) {
	for {
		select {
		case <-done:
			return false, true
		case <-time.After(200 * time.Microsecond):
		}
		var blocked bool
		err := l.watch.QueryRow(ctx, `SELECT $1::int = ANY (pg_blocking_pids($2))`, l.newer.PgConn().PID(), l.holder.PgConn().PID()).Scan(&blocked)
		if err != nil || blocked {
			return blocked, false
		}
	}
}

// send runs a text as the driver would.
func send(ctx context.Context, c *pgx.Conn, sql string, args []any) error {
	if len(args) == 0 {
		_, err := c.Exec(ctx, sql)
		return err
	}
	_, err := c.Exec(ctx, sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
	return err
}

func firstDifference(a, b string) string {
	al, bl := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(al), len(bl)) {
		if al[i] != bl[i] {
			return fmt.Sprintf("  was: %s\n  is:  %s", al[i], bl[i])
		}
	}
	return fmt.Sprintf("  %d lines, was %d", len(bl), len(al))
}

// TestDifferential generates statements, and runs those that the check accepts
// on a server: nothing they do may change a row that carries a newer token, or
// leave a written row without the holder's. Its number of statements is that
// of -rapid.checks.
func TestDifferential(t *testing.T) {
	l := newLab(t)
	own := map[Mode]*Policy{Strict: casesPolicy(t, Strict), Lease: casesPolicy(t, Lease)}
	ordinary := map[Mode]*Policy{Strict: withoutComparisons(own[Strict]), Lease: withoutComparisons(own[Lease])}
	start := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		s := trim(genStatement.Draw(t, "statement"))
		s.path, s.misled = genPath.Draw(t, "path"), rapid.Bool().Draw(t, "misled")
		policies := own
		if s.path == "" && rapid.Bool().Draw(t, "ordinary") {
			policies = ordinary
		}
		if what := l.try(policies, s); what != "" {
			l.recover(t)
			t.Fatalf("%s\n%s", what, s)
		}
	})
	t.Logf("generated %d, accepted %d (%d guarded), run %d (%d failed on the server), waited for a lock %d, changed a row %d; %s",
		l.generated, l.accepted, l.guarded, l.ran, l.failed, l.waited, l.changed, time.Since(start).Round(time.Millisecond))
	require.NotZero(t, l.waited, "no statement waited: the race was not exercised")
	require.NotZero(t, l.changed)
}

// withoutComparisons is the policy of a database that has no comparisons of its own, or
// has them where no session's path leads to.
func withoutComparisons(p *Policy) *Policy {
	view := *p
	view.closure.HasComparisons = false
	return &view
}

// recover brings the lab back after a statement that broke something.
func (l *lab) recover(t *rapid.T) {
	ctx := context.Background()
	_, err1 := l.newer.Exec(ctx, "ROLLBACK")
	_, err2 := l.holder.Exec(ctx, "ROLLBACK; RESET ALL")
	_, err3 := l.watch.Exec(ctx, resetRows)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatalf("the lab is broken: %v", err)
	}
}
