package migrations_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

var (
	schedules    = flag.Int("schedules", 60, "how many random schedules TestWallSchedules, in each mode, and TestSealSchedules run; see make schedules")
	scheduleSeed = flag.Uint64("schedule.seed", 1, "the seed of the first random schedule")
)

// arena is a walled, partitioned table whose every change a trigger logs, with
// the token under which it was made, and the sessions that write it.
type arena struct {
	mode     string
	admin    *pgx.Conn
	sessions []*session
	newest   map[string]logged // by key, of what is committed
	seen     map[string]int    // what statements ended with
	trace    []string
}

type logged struct {
	token int64
	xact  string
}

const arenaSchema = `
	CREATE TABLE t (id int, part int, v text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
	CREATE TABLE t0 PARTITION OF t FOR VALUES IN (0); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
	CREATE TABLE log (n bigserial, key text, token bigint, xact xid8 DEFAULT pg_current_xact_id());
	CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF TG_OP = 'DELETE' THEN
			INSERT INTO log (key, token) VALUES (concat(OLD.id, '/', OLD.part), coalesce(nullif(current_setting('fencing.token', true), '')::bigint, OLD.last_token));
		ELSE
			INSERT INTO log (key, token) VALUES (concat(NEW.id, '/', NEW.part), NEW.last_token);
		END IF;
		RETURN NULL;
	END $$;
	SELECT setval('fencing.write_epoch', 1000);`

func newArena(t *testing.T, mode, level string) *arena {
	t.Helper()
	dsn := localpg.Database(t, installed)
	a := &arena{mode: mode, admin: open(t, dsn), seen: map[string]int{}}
	exec(t, a.admin, arenaSchema+fmt.Sprintf("SELECT fencing.register('t', '%s'); SELECT fencing.wall('t', '%s');", mode, level))
	if level != "off" {
		exec(t, a.admin, "SELECT fencing.tombstones('t')")
	}
	exec(t, a.admin, "CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION log()")
	for range 4 {
		a.sessions = append(a.sessions, &session{conn: open(t, with(dsn, "deadlock_timeout", "10ms"))})
	}
	return a
}

// session is a connection with the statements that it is to send.
type session struct {
	conn    *pgx.Conn
	token   int
	program []string
	done    chan error // not nil while a statement runs
	current string
}

// run runs one schedule, on keys that no other has, and reports the first
// committed token that fell. Order, statements and levels come from the seed.
func (a *arena) run(t *testing.T, seed uint64) (fell string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	a.newest, a.trace = map[string]logged{}, nil
	base := int(seed) * 10
	exec(t, a.admin,
		fmt.Sprintf("BEGIN; SET LOCAL fencing.token = '1'; INSERT INTO t VALUES (%d, 0, 'first', 1); INSERT INTO t VALUES (%d, 1, 'first', 1); COMMIT",
			base, base+1))
	a.check(t)
	active := a.sessions[:2+r.IntN(3)]
	for i, token := range r.Perm(len(active)) {
		active[i].token = token + 2
		active[i].program = a.program(r, active[i].token, base)
	}
	for {
		var ready, busy []*session
		for _, s := range active {
			if s.done != nil {
				busy = append(busy, s)
			} else if len(s.program) > 0 {
				ready = append(ready, s)
			}
		}
		switch {
		case len(ready) > 0:
			s := ready[r.IntN(len(ready))]
			s.start()
			busy = append(busy, s)
		case len(busy) == 0:
			return ""
		}
		for _, s := range busy {
			if fell := a.settle(t, s, len(ready) > 0); fell != "" {
				a.drain()
				return fell
			}
		}
	}
}

// start sends the next statement of the program.
func (s *session) start() {
	s.current, s.program = s.program[0], s.program[1:]
	s.done = make(chan error, 1)
	go func() {
		_, err := s.conn.Exec(context.Background(), s.current)
		s.done <- err
	}()
}

// settle waits until the session's statement has ended or waits for a lock. Is
// there nobody else to go on, it looks once only: a deadlock ends one of them.
func (a *arena) settle(t *testing.T, s *session, others bool) (fell string) {
	t.Helper()
	for {
		select {
		case err := <-s.done:
			s.done = nil
			return a.ended(t, s, err)
		case <-time.After(time.Millisecond):
		}
		if !others || blocked(t, a.admin, s.conn) {
			a.seen["waited"]++
			return ""
		}
	}
}

// ended takes note of how a statement ended. After an error the session goes
// back to its savepoint, if it has one, or gives the transaction up.
func (a *arena) ended(t *testing.T, s *session, err error) (fell string) {
	t.Helper()
	var pg *pgconn.PgError
	outcome := "ok"
	if errors.As(err, &pg) {
		outcome = pg.Code
	} else {
		require.NoError(t, err, s.current)
	}
	a.seen[outcome]++
	a.trace = append(a.trace, fmt.Sprintf("token %d: %s: %s", s.token, s.current, outcome))
	if err != nil {
		s.program = recovery(s.program, s.conn.PgConn().TxStatus())
		return ""
	}
	if s.current == "COMMIT" {
		return a.check(t)
	}
	return ""
}

// recovery is what to send after an error: what is left of the program from
// its ROLLBACK TO on, if it has a savepoint already, or the transaction's end.
func recovery(program []string, status byte) []string {
	if status == 'I' {
		return program // COMMIT has failed
	}
	saved := true
	for i, sql := range program {
		saved = saved && sql != "SAVEPOINT s"
		switch {
		case sql == "ROLLBACK TO s" && saved:
			return program[i:]
		case sql == "COMMIT" || sql == "ROLLBACK":
			return append([]string{"ROLLBACK"}, program[i+1:]...)
		}
	}
	return program
}

// check reads what the last commit has logged.
func (a *arena) check(t *testing.T) (fell string) {
	t.Helper()
	rows, err := a.admin.Query(t.Context(), "WITH d AS (DELETE FROM log RETURNING *) SELECT key, token, xact::text FROM d ORDER BY n")
	require.NoError(t, err)
	var key string
	var l logged
	_, err = pgx.ForEachRow(rows, []any{&key, &l.token, &l.xact}, func() error {
		was := a.newest[key]
		if l.token < was.token || a.mode == "strict" && l.token == was.token && l.xact != was.xact {
			fell = fmt.Sprintf("%s: %d after %d", key, l.token, was.token)
		}
		a.newest[key] = l
		return nil
	})
	require.NoError(t, err)
	return fell
}

// drain ends what a schedule has left.
func (a *arena) drain() {
	for _, s := range a.sessions {
		_ = s.conn.PgConn().CancelRequest(context.Background())
		if s.done != nil {
			<-s.done
			s.done = nil
		}
		s.program = nil
		_, _ = s.conn.Exec(context.Background(), "ROLLBACK")
	}
}

// program is one or two transactions of a session.
func (a *arena) program(r *rand.Rand, token, base int) []string {
	var p []string
	for range 1 + r.IntN(2) {
		begin := "BEGIN ISOLATION LEVEL " + []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}[r.IntN(3)]
		if r.IntN(4) > 0 {
			begin += fmt.Sprintf("; SET LOCAL fencing.token = '%d'", token)
		}
		p = append(p, begin)
		saved := false
		for range 1 + r.IntN(4) {
			if r.IntN(4) == 0 && !saved {
				p, saved = append(p, "SAVEPOINT s"), true
			}
			p = append(p, a.statement(r, token, base))
			if saved && r.IntN(3) == 0 {
				p = append(p, "ROLLBACK TO s")
			}
		}
		p = append(p, []string{"COMMIT", "COMMIT", "COMMIT", "ROLLBACK"}[r.IntN(4)])
	}
	return p
}

// statements write the row of a key: {t} stands for the token, {k} for the
// key's condition, {v} for its values, {c} for the mode's comparison.
var statements = []string{
	"UPDATE t SET v = 'guarded', last_token = {t} WHERE {k} AND last_token {c} {t}",
	"UPDATE t SET v = 'raised', last_token = {t} WHERE {k}",
	"UPDATE t SET v = 'unguarded' WHERE {k}",
	"UPDATE t SET v = 'kept', last_token = last_token WHERE {k}",
	"UPDATE t SET part = 1 - part, last_token = {t} WHERE {k} AND last_token {c} {t}",
	"UPDATE t SET part = 1 - part, last_token = {t} WHERE {k}",
	"UPDATE t SET part = 1 - part WHERE {k}",
	"INSERT INTO t VALUES ({v}, 'inserted', {t})",
	"INSERT INTO t VALUES ({v}, 'upserted', {t}) ON CONFLICT (id, part) DO UPDATE SET v = excluded.v, last_token = excluded.last_token",
	"INSERT INTO t VALUES ({v}, 'upserted', {t}) ON CONFLICT (id, part) DO UPDATE SET v = excluded.v, last_token = " +
		"excluded.last_token WHERE t.last_token {c} excluded.last_token",
	"INSERT INTO t VALUES ({v}, 'upserted', {t}) ON CONFLICT (id, part) DO UPDATE SET v = excluded.v",
	"MERGE INTO t USING (VALUES ({v})) s(id, part) ON t.id = s.id AND t.part = s.part WHEN MATCHED THEN UPDATE SET v = " +
		"'merged', last_token = {t} WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.part, 'merged', {t})",
	"MERGE INTO t USING (VALUES ({v})) s(id, part) ON t.id = s.id AND t.part = s.part WHEN MATCHED THEN DELETE",
	"DELETE FROM t WHERE {k} AND last_token {c} {t}",
	"DELETE FROM t WHERE {k}",
	"DELETE FROM t WHERE {k}; INSERT INTO t VALUES ({v}, 'again', {t})",
}

func (a *arena) statement(r *rand.Rand, token, base int) string {
	compare := map[string]string{"strict": "<", "lease": "<="}[a.mode]
	id, part := base+r.IntN(2), r.IntN(2)
	return strings.NewReplacer("{t}", fmt.Sprint(token), "{c}", compare, "{k}", fmt.Sprintf("id = %d AND part = %d", id, part),
		"{v}", fmt.Sprintf("%d, %d", id, part)).Replace(statements[r.IntN(len(statements))])
}

// Whatever sessions with older and newer tokens send, in whatever order and at
// whatever isolation level, with rollbacks and savepoints: the committed tokens
// of a key never fall.
func TestWallSchedules(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "lease"} {
		t.Run(mode, func(t *testing.T) {
			a := newArena(t, mode, "enforce")
			for i := range *schedules {
				seed := *scheduleSeed + uint64(i)
				require.Empty(t, a.run(t, seed), "-schedule.seed=%d\n%s", seed, strings.Join(a.trace, "\n"))
			}
			for _, outcome := range []string{"ok", "waited", "FN001", "FN002", "40001"} {
				require.NotZero(t, a.seen[outcome], outcome)
			}
			t.Log(a.seen)
		})
	}
}

// Without the wall the same schedules do let tokens fall, so the ones above can
// tell.
func TestSchedulesWithoutTheWall(t *testing.T) {
	a := newArena(t, "lease", "off")
	falls := 0
	for seed := range uint64(20) {
		if a.run(t, seed+1) != "" {
			falls++
		}
	}
	require.NotZero(t, falls)
}
