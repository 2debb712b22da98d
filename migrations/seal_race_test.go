package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
)

var isolations = []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}

// later runs a statement and gives its error when it has ended.
func later(conn *pgx.Conn, sql string) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), sql)
		done <- err
	}()
	return done
}

func requireBlocked(t *testing.T, watch, conn *pgx.Conn) {
	t.Helper()
	fencetest.Eventually(t, func() bool { return blocked(t, watch, conn) })
}

// retake is a take-over of lease r, which its holder has given up.
const retake = "UPDATE fencing.lease SET expires_at = '-infinity' WHERE resource = 'r'; SELECT fencing.take('r', '1 min', 'next')"

// A transaction whose snapshot is older than a take-over can't tell, and has to
// run again, the new holder's too. At READ COMMITTED each write looks anew.
func TestSealSnapshots(t *testing.T) {
	for _, by := range []string{fixed, byColumn} {
		dsn, conn := sealed(t, "enforce", by)
		older, newer := open(t, dsn), open(t, dsn)
		old := 60
		for _, isolation := range isolations {
			for _, write := range []string{
				"UPDATE t SET last_token = %[1]d WHERE id = 2", "INSERT INTO t VALUES (9, 'r', '', %[1]d)",
				"SET LOCAL fencing.token = '%[1]d'; DELETE FROM t WHERE id = 2", "SAVEPOINT s; INSERT INTO t VALUES (9, 'r', '', %[1]d)",
			} {
				for _, c := range []*pgx.Conn{older, newer} {
					exec(t, c, "BEGIN ISOLATION LEVEL "+isolation+"; SELECT * FROM t")
				}
				grant(t, conn, "r", old+1)
				for token, c := range map[int]*pgx.Conn{old: older, old + 1: newer} {
					_, err := c.Exec(t.Context(), fmt.Sprintf(write, token))
					switch {
					case isolation != "READ COMMITTED":
						requireRefused(t, err, "40001")
					case token == old:
						require.Equal(t, fmt.Sprintf("FN001 ~fencing_zseal %d %d", old, old+1), refusal(t, err))
					default:
						require.NoError(t, err)
					}
					exec(t, c, "ROLLBACK")
				}
				old++
			}
		}
	}
}

// A lease that is taken for the first time after the snapshot.
func TestSealFirstLeaseAfterTheSnapshot(t *testing.T) {
	dsn, conn := sealed(t, "enforce", byColumn)
	other := open(t, dsn)
	for i, isolation := range isolations {
		exec(t, other, "BEGIN ISOLATION LEVEL "+isolation+"; SELECT * FROM t")
		name := fmt.Sprint("first", i)
		grant(t, conn, name, 80)
		insert := fmt.Sprintf("INSERT INTO t VALUES (%d, '%s', '', 80)", 10+i, name)
		_, err := other.Exec(t.Context(), insert)
		if isolation == "READ COMMITTED" {
			require.NoError(t, err)
			exec(t, other, "COMMIT")
			continue
		}
		requireRefused(t, err, "40001", "the lease that res names has been taken since the snapshot of this transaction on public.t: run it again")
		exec(t, other, "ROLLBACK")
		require.NoError(t, inTx(t, other, "SET TRANSACTION ISOLATION LEVEL "+isolation+"; "+insert))
		require.Equal(t, int64(16), get[int64](t, conn, "SELECT count(*) FROM fencing.epoch WHERE resource = $1", name))
	}
}

// A take-over waits for who has written under the lease, and for nobody else;
// who writes while it waits is refused afterwards. Renewals wait for no one.
func TestSealTakeOverWaits(t *testing.T) {
	for _, by := range []string{fixed, byColumn} {
		dsn, conn := sealed(t, "enforce", by)
		writer, reader, taker, late := open(t, dsn), open(t, dsn), open(t, dsn), open(t, dsn)
		exec(t, conn, "SET lock_timeout = '10s'")
		for i, isolation := range isolations {
			token := get[int64](t, conn, "SELECT token FROM fencing.lease WHERE resource = 'r'")
			insert := fmt.Sprintf("INSERT INTO t VALUES (%%d, 'r', '', %d)", token)
			exec(t, writer, fmt.Sprintf("BEGIN ISOLATION LEVEL %s; UPDATE t SET last_token = %d WHERE id = 1;", isolation, token)+fmt.Sprintf(insert, 10+i))
			exec(t, reader, "BEGIN ISOLATION LEVEL "+isolation+"; SELECT * FROM t")
			require.True(t, get[bool](t, conn, "SELECT fencing.renew('r', $1, '1 h')", token))
			if by == byColumn {
				exec(t, conn, "UPDATE fencing.lease SET expires_at = '-infinity' WHERE resource = 's'; SELECT fencing.take('s', '1 min', 'h')")
			}
			done := later(taker, retake)
			requireBlocked(t, conn, taker)
			require.Equal(t, []int32{int32(writer.PgConn().PID())}, get[[]int32](t, conn, "SELECT pg_blocking_pids($1)", int32(taker.PgConn().PID())))
			refused := later(late, fmt.Sprintf(insert, 20+i))
			requireBlocked(t, conn, late)
			exec(t, writer, fmt.Sprintf("UPDATE t SET last_token = %d WHERE id = 2; COMMIT", token))
			require.NoError(t, <-done)
			require.Regexp(t, fmt.Sprintf("^FN001 ~fencing_zseal %d ", token), refusal(t, <-refused))
			require.Equal(t, int64(3), get[int64](t, conn, "SELECT count(*) FROM t WHERE last_token = $1", token))
			exec(t, reader, "ROLLBACK")
		}
	}
}

// A transaction that has taken back what it wrote holds nobody up, and neither
// does one that was refused.
func TestSealSavepoints(t *testing.T) {
	for _, isolation := range isolations {
		dsn, conn := sealed(t, "enforce", fixed)
		exec(t, conn, "SET lock_timeout = '10s'")
		back, refused := open(t, dsn), open(t, dsn)
		exec(t, back, "BEGIN ISOLATION LEVEL "+isolation+"; SAVEPOINT a; UPDATE t SET last_token = 60 WHERE id = 1; ROLLBACK TO a")
		exec(t, refused, "BEGIN ISOLATION LEVEL "+isolation+"; SAVEPOINT a")
		_, err := refused.Exec(t.Context(), "UPDATE t SET last_token = 50 WHERE id = 2")
		require.Equal(t, "FN001 ~fencing_zseal 50 60", refusal(t, err))
		exec(t, refused, "ROLLBACK TO a")
		exec(t, conn, retake)
		_, err = back.Exec(t.Context(), "UPDATE t SET last_token = 60 WHERE id = 1")
		if isolation == "READ COMMITTED" {
			require.Regexp(t, "^FN001 ~fencing_zseal 60 ", refusal(t, err))
		} else {
			requireRefused(t, err, "40001")
		}

		// one that is kept does hold it up
		keeps, taker := open(t, dsn), open(t, dsn)
		token := get[int64](t, conn, "SELECT token FROM fencing.lease WHERE resource = 'r'")
		exec(t, keeps, fmt.Sprintf("BEGIN ISOLATION LEVEL %s; SAVEPOINT a; UPDATE t SET last_token = %d WHERE id = 2; RELEASE a", isolation, token))
		done := later(taker, retake)
		requireBlocked(t, conn, taker)
		exec(t, keeps, "COMMIT")
		require.NoError(t, <-done)
	}
}

// A lease's time begins when its take-over has waited, not before.
func TestSealTimeBeginsAfterWaiting(t *testing.T) {
	dsn, conn := sealed(t, "enforce", fixed)
	writer, taker := open(t, dsn), open(t, dsn)
	exec(t, writer, "BEGIN; UPDATE t SET last_token = 60 WHERE id = 1")
	done := later(taker, retake)
	requireBlocked(t, conn, taker)
	exec(t, conn, "SELECT pg_sleep(0.02); CREATE TABLE at AS SELECT clock_timestamp() AS t")
	exec(t, writer, "COMMIT")
	require.NoError(t, <-done)
	require.True(t, get[bool](t, conn, "SELECT expires_at >= t + interval '1 min' FROM fencing.lease, at WHERE resource = 'r'"))
}

// One who gives up taking leaves the lease to its holder.
func TestSealTakeOverGivesUp(t *testing.T) {
	dsn, conn := sealed(t, "enforce", fixed)
	writer, late, taker := open(t, dsn), open(t, dsn), open(t, dsn)
	exec(t, writer, "BEGIN; UPDATE t SET last_token = 60 WHERE id = 1")
	done := later(taker, retake)
	requireBlocked(t, conn, taker)
	written := later(late, "UPDATE t SET last_token = 60 WHERE id = 2")
	requireBlocked(t, conn, late)
	exec(t, conn, fmt.Sprintf("SELECT pg_cancel_backend(%d)", taker.PgConn().PID()))
	requireRefused(t, <-done, "57014")
	require.NoError(t, <-written)
	exec(t, writer, "COMMIT")
	require.Equal(t, int64(60), get[int64](t, conn, "SELECT DISTINCT token FROM fencing.epoch WHERE resource = 'r'"))
}

// A writer waits for a row whose writer waits behind the take-over, which waits
// for the first: the server lets the second pass, and nobody fails.
func TestSealQueueIsNoDeadlock(t *testing.T) {
	dsn, conn := sealed(t, "enforce", fixed)
	quick := with(dsn, "deadlock_timeout", "10ms")
	first, second, taker := open(t, quick), open(t, quick), open(t, quick)
	exec(t, first, "BEGIN; UPDATE t SET last_token = 60 WHERE id = 1")
	exec(t, second, "BEGIN; SELECT * FROM t WHERE id = 2 FOR UPDATE")
	taken := later(taker, retake)
	requireBlocked(t, conn, taker)
	last := later(second, "UPDATE t SET last_token = 60 WHERE id = 2; COMMIT")
	requireBlocked(t, conn, second)
	require.NoError(t, <-later(first, "UPDATE t SET last_token = 60 WHERE id = 2; COMMIT"))
	require.NoError(t, <-last)
	require.NoError(t, <-taken)
}

// Three times as many busy writers as there are rows of the epoch: leases are
// taken all the same.
func TestSealManyWriters(t *testing.T) {
	for _, isolation := range isolations[:2] {
		dsn, conn := sealed(t, "enforce", fixed)
		exec(t, conn, "INSERT INTO t SELECT i, 'r', '', 60 FROM generate_series(100, 200) i")
		ctx, cancel := context.WithTimeout(t.Context(), 3*waitFor)
		defer cancel()
		var token, written atomic.Int64
		token.Store(60)
		errs := make(chan error, 48)
		var group sync.WaitGroup
		stop := make(chan struct{})
		for i := range 48 {
			writer := open(t, dsn)
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_,
						err := writer.Exec(ctx,
						fmt.Sprintf("BEGIN ISOLATION LEVEL %s; UPDATE t SET last_token = %d WHERE id = %d; SELECT pg_sleep(0.002); COMMIT", isolation,
							token.Load(), 100+i))
					var pg *pgconn.PgError
					switch {
					case err == nil:
						written.Add(1)
					case errors.As(err, &pg) && (pg.Code == "FN001" || pg.Code == "40001"):
						_, _ = writer.Exec(ctx, "ROLLBACK")
					default:
						errs <- err
						return
					}
				}
			})
		}
		for range 10 {
			was := written.Load()
			fencetest.Eventually(t, func() bool { return written.Load() >= was+48 })
			_, err := conn.Exec(ctx, retake)
			require.NoError(t, err)
			token.Store(get[int64](t, conn, "SELECT token FROM fencing.lease WHERE resource = 'r'"))
		}
		close(stop)
		group.Wait()
		require.Empty(t, errs)
	}
}
