package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
)

// blocked reports whether the other connection waits for a lock.
func blocked(t testing.TB, conn, other *pgx.Conn) bool {
	t.Helper()
	return get[bool](t, conn, "SELECT cardinality(pg_blocking_pids($1)) > 0", int32(other.PgConn().PID()))
}

// A writer with an older token waits for the row behind one with a newer token,
// who commits: the older one never wins, though its own condition, if it has
// one, was true when it began.
func TestWallRaces(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "lease"} {
		dsn, conn := walled(t, mode, "enforce")
		first, second := open(t, dsn), open(t, dsn)
		row := 10 // each race has a row of its own
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
			for name, older := range map[string]string{
				"update":           "UPDATE t SET v = 'older', last_token = 60 WHERE id = {id}",
				"guarded update":   "UPDATE t SET v = 'older', last_token = 60 WHERE id = {id} AND last_token < 60",
				"unguarded update": "UPDATE t SET v = 'older' WHERE id = {id}",
				"upsert":           "INSERT INTO t VALUES ({id}, 'older', 60) ON CONFLICT (id) DO UPDATE SET v = excluded.v, last_token = excluded.last_token",
				"merge":            "MERGE INTO t USING (VALUES ({id})) s(id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'older', last_token = 60",
				"delete":           "DELETE FROM t WHERE id = {id}",
				"merge, delete":    "MERGE INTO t USING (VALUES ({id})) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE",
			} {
				row++
				t.Run(level+" "+mode+" "+name, func(t *testing.T) {
					of := func(sql string) string { return strings.ReplaceAll(sql, "{id}", strconv.Itoa(row)) }
					exec(t, conn, of("INSERT INTO t VALUES ({id}, 'old', 50)"))
					exec(t, first, of("BEGIN; UPDATE t SET v = 'newer', last_token = 70 WHERE id = {id}"))
					exec(t, second, of(fmt.Sprintf("BEGIN ISOLATION LEVEL %s; SET LOCAL fencing.token = '60'; SELECT * FROM t WHERE id = {id}", level)))
					defer exec(t, second, "ROLLBACK")
					done := make(chan error, 1)
					go func() {
						_, err := second.Exec(context.Background(), of(older))
						if err == nil {
							_, err = second.Exec(context.Background(), "COMMIT")
						}
						done <- err
					}()
					fencetest.Eventually(t, func() bool { return blocked(t, conn, second) })
					exec(t, first, "COMMIT")
					err := <-done
					require.Equal(t, of("({id},newer,70)"), get[string](t, conn, "SELECT t::text FROM t WHERE id = $1", row))
					var pg *pgconn.PgError
					switch {
					case level != "READ COMMITTED":
						require.ErrorAs(t, err, &pg)
						require.Contains(t, []string{"40001", "FN002"}, pg.Code, err)
					case name == "guarded update":
						require.NoError(t, err, "its condition isn't true any more")
					case name == "unguarded update":
						require.True(t, errors.As(err, &pg))
						require.Contains(t, []string{"FN001", "FN002"}, pg.Code, err)
					default:
						require.ErrorAs(t, err, &pg)
						require.Equal(t, "FN001", pg.Code, err)
					}
				})
			}
		}
	}
}

// Two holders insert the same new key at once, the newer one first: the older
// one's upsert finds the row and is refused.
func TestWallRacesOfInserts(t *testing.T) {
	for _, mode := range []string{"strict", "lease"} {
		dsn, conn := walled(t, mode, "enforce")
		first, second := open(t, dsn), open(t, dsn)
		exec(t, first, "BEGIN; INSERT INTO t VALUES (3, 'newer', 70)")
		done := make(chan error, 1)
		go func() {
			_,
				err := second.Exec(context.Background(),
				"INSERT INTO t VALUES (3, 'older', 60) ON CONFLICT (id) DO UPDATE SET v = excluded.v, last_token = excluded.last_token")
			done <- err
		}()
		fencetest.Eventually(t, func() bool { return blocked(t, conn, second) })
		exec(t, first, "COMMIT")
		require.Equal(t, "FN001 ~fencing_update 60 70", refusal(t, <-done))
	}
}

// A transaction from before the wall's change holds on to no older level.
func TestWallInAnOldSnapshot(t *testing.T) {
	dsn, conn := walled(t, "lease", "report")
	old := open(t, dsn)
	exec(t, old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM fencing.registry")
	exec(t, conn, "SELECT fencing.wall('t')")
	_, err := old.Exec(t.Context(), "UPDATE t SET v = 'new' WHERE id = 1")
	require.Equal(t, "FN002 ~fencing_update - 50", refusal(t, err))
}
