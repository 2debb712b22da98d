package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// sealArena is a walled table, sealed or not, whose every change is logged with
// its token, and sessions that write it while another takes and renews leases.
type sealArena struct {
	arena
	taker  *session
	lease  string
	first  int64
	newest int64 // as far as the writers know
	grants int
}

const sealArenaSchema = `
	CREATE TABLE t (id int PRIMARY KEY, res text NOT NULL, v text);
	CREATE TABLE log (token bigint, xact xid8 DEFAULT pg_current_xact_id());
	CREATE TABLE grants (token bigint, snap pg_snapshot);
	CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO log (token) VALUES (CASE TG_OP WHEN 'DELETE' THEN current_setting('fencing.token')::bigint ELSE NEW.last_token END);
		RETURN NULL;
	END $$;
	SELECT fencing.next_token(), fencing.register('t', 'lease'), fencing.wall('t')`

func newSealArena(t *testing.T, seal bool) *sealArena {
	t.Helper()
	dsn := localpg.Database(t, installed)
	a := &sealArena{arena: arena{admin: open(t, dsn), seen: map[string]int{}}}
	exec(t, a.admin, sealArenaSchema)
	if seal {
		exec(t, a.admin, "SELECT fencing.seal('t', by_column => 'res')")
	}
	exec(t, a.admin, "CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION log()")
	for range 4 {
		a.sessions = append(a.sessions, &session{conn: open(t, with(dsn, "deadlock_timeout", "10ms"))})
	}
	a.taker = &session{conn: open(t, with(dsn, "deadlock_timeout", "10ms"))}
	return a
}

// run runs one schedule on a lease and keys that no other has. It says how many
// writes have been committed under an older token than that of a grant, by
// transactions that were still open after the grant's commit.
func (a *sealArena) run(t *testing.T, seed uint64) (late int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	a.trace, a.lease = nil, fmt.Sprintf("r%d", seed)
	exec(t, a.admin, "TRUNCATE log, grants; SELECT fencing.take('"+a.lease+"', '1 h', 'h')")
	a.granted(t)
	a.first = a.newest
	exec(t, a.admin, fmt.Sprintf("INSERT INTO t SELECT %d + i, '%s', 'first', %d FROM generate_series(0, 1) i", seed*10, a.lease, a.first))
	active := append([]*session{a.taker}, a.sessions[:2+r.IntN(3)]...)
	a.taker.program = nil
	for range 3 + r.IntN(4) {
		a.taker.program = append(a.taker.program, []string{"SELECT fencing.renew('{l}', {n}, '1 h')", "SELECT fencing.release('{l}', {n})",
			"SELECT fencing.take('{l}', '1 h', 'h')", "BEGIN; SELECT fencing.take('{l}', '1 h', 'h'); ROLLBACK"}[r.IntN(4)])
	}
	a.taker.program = append(a.taker.program, "SELECT fencing.release('{l}', {n})", "SELECT fencing.take('{l}', '1 h', 'h')")
	for _, s := range active[1:] {
		s.program = a.program(r, int(seed)*10)
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
		if len(ready) == 0 && len(busy) == 0 {
			return get[int64](t, a.admin, "SELECT count(*) FROM grants g JOIN log l ON l.token < g.token AND NOT pg_visible_in_snapshot(l.xact, g.snap)")
		}
		if len(ready) > 0 {
			s := ready[r.IntN(len(ready))]
			a.send(r, s)
			busy = append(busy, s)
		}
		for _, s := range busy {
			a.settle(t, s, len(ready) > 0)
		}
	}
}

// send sends the next statement. A transaction is under the newest token, or
// under the first one.
func (a *sealArena) send(r *rand.Rand, s *session) {
	if strings.HasPrefix(s.program[0], "BEGIN ISO") {
		s.token = int(a.newest)
		if r.IntN(3) == 0 {
			s.token = int(a.first)
		}
	}
	s.program[0] = strings.NewReplacer("{l}", a.lease, "{n}", fmt.Sprint(a.newest), "{t}", fmt.Sprint(s.token)).Replace(s.program[0])
	s.start()
}

func (a *sealArena) settle(t *testing.T, s *session, others bool) {
	t.Helper()
	for {
		select {
		case err := <-s.done:
			s.done = nil
			a.ended(t, s, err)
			return
		case <-time.After(time.Millisecond):
		}
		if !others || blocked(t, a.admin, s.conn) {
			a.seen["waited"]++
			return
		}
	}
}

func (a *sealArena) ended(t *testing.T, s *session, err error) {
	t.Helper()
	var pg *pgconn.PgError
	outcome := "ok"
	if errors.As(err, &pg) {
		outcome = pg.Code
	} else {
		require.NoError(t, err, s.current)
	}
	a.seen[outcome]++
	a.trace = append(a.trace, fmt.Sprintf("%s: %s", s.current, outcome))
	switch {
	case s == a.taker:
		require.NoError(t, err, s.current)
		a.granted(t)
	case err != nil:
		s.program = recovery(s.program, s.conn.PgConn().TxStatus())
	}
}

// granted notes a take-over, if there was one, with the transactions that are
// open after it.
func (a *sealArena) granted(t *testing.T) {
	t.Helper()
	var token int64
	require.NoError(t, a.admin.QueryRow(context.Background(), "SELECT token FROM fencing.lease WHERE resource = $1", a.lease).Scan(&token))
	if token == a.newest {
		return
	}
	a.newest = token
	a.grants++
	exec(t, a.admin, fmt.Sprintf("INSERT INTO grants VALUES (%d, pg_current_snapshot())", token))
}

// program is two or three transactions. Each writes keys in their order, as who
// wants no deadlock with others of his kind does.
func (a *sealArena) program(r *rand.Rand, base int) []string {
	var p []string
	for range 2 + r.IntN(2) {
		p = append(p, "BEGIN ISOLATION LEVEL "+isolations[r.IntN(3)]+"; SET LOCAL fencing.token = '{t}'")
		if r.IntN(3) == 0 {
			p = append(p, "SELECT count(*) FROM t")
		}
		saved := false
		for id := range 5 {
			if r.IntN(2) == 0 {
				continue
			}
			if r.IntN(4) == 0 && !saved {
				p, saved = append(p, "SAVEPOINT s"), true
			}
			p = append(p, fmt.Sprintf([]string{
				"UPDATE t SET v = 'updated', last_token = {t} WHERE id = %[1]d",
				"UPDATE t SET v = 'guarded', last_token = {t} WHERE id = %[1]d AND last_token <= {t}",
				"INSERT INTO t VALUES (%[1]d, '{l}', 'inserted', {t})",
				"INSERT INTO t VALUES (%[1]d, '{l}', 'upserted', {t}) ON CONFLICT (id) DO UPDATE SET v = excluded.v, last_token = excluded.last_token",
				"MERGE INTO t USING (VALUES (%[1]d)) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged', last_token = {t} " +
					"WHEN NOT MATCHED THEN INSERT VALUES (s.id, '{l}', 'merged', {t})",
				"DELETE FROM t WHERE id = %[1]d",
			}[r.IntN(6)], base+id))
			if saved && r.IntN(3) == 0 {
				p = append(p, "ROLLBACK TO s")
			}
		}
		p = append(p, []string{"COMMIT", "COMMIT", "COMMIT", "ROLLBACK"}[r.IntN(4)])
	}
	return p
}

// Whatever sessions write while leases are taken, renewed and released: nothing
// is committed under an older token after a newer one was given, and nobody
// ends in a deadlock.
func TestSealSchedules(t *testing.T) {
	t.Parallel()
	a := newSealArena(t, true)
	for i := range *schedules {
		seed := *scheduleSeed + uint64(i)
		require.Zero(t, a.run(t, seed), "-schedule.seed=%d\n%s", seed, strings.Join(a.trace, "\n"))
	}
	for _, outcome := range []string{"ok", "waited", "FN001", "40001"} {
		require.NotZero(t, a.seen[outcome], outcome)
	}
	require.Zero(t, a.seen["40P01"], "deadlocks")
	require.Greater(t, a.grants, *schedules)
	t.Log(a.seen)
}

// With the wall alone the same schedules do end in late writes.
func TestSchedulesWithoutTheSeal(t *testing.T) {
	a := newSealArena(t, false)
	var late int64
	for seed := range uint64(15) {
		late += a.run(t, seed+1)
	}
	require.NotZero(t, late)
}
