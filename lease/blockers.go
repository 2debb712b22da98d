package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// blockersSQL finds the transactions that session $1 waits for, directly or through
// others. It leaves out sessions that wait for a lock themselves, such as another
// taker, and sessions whose COMMIT waits for a standby. If the role may not see a
// session in pg_stat_activity and the server has synchronous standbys, the session
// may be one of the latter: column sure is false then. The server itself refuses to
// end a process that serves no client. A prepared transaction has process id 0.
const blockersSQL = `WITH RECURSIVE chain (pid) AS (
  SELECT b FROM pg_catalog.unnest(pg_catalog.pg_blocking_pids($1)) b
  UNION
  SELECT b FROM chain c, pg_catalog.unnest(pg_catalog.pg_blocking_pids(c.pid)) b)
SELECT c.pid, l.virtualtransaction, a.backend_type IS NOT NULL
    OR pg_catalog.current_setting('synchronous_standby_names') OPERATOR(pg_catalog.=) '' AS sure
  FROM chain c
  JOIN pg_catalog.pg_locks l ON l.pid OPERATOR(pg_catalog.=) c.pid AND l.locktype OPERATOR(pg_catalog.=) 'virtualxid'
   AND l.mode OPERATOR(pg_catalog.=) 'ExclusiveLock' AND l.granted
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) c.pid
 WHERE pg_catalog.cardinality(pg_catalog.pg_blocking_pids(c.pid)) OPERATOR(pg_catalog.=) 0
   AND coalesce(a.backend_type, 'client backend') OPERATOR(pg_catalog.=) 'client backend'
   AND coalesce(a.wait_event, '') OPERATOR(pg_catalog.<>) 'SyncRep'
UNION ALL
SELECT 0, '', false FROM chain c WHERE c.pid OPERATOR(pg_catalog.=) 0`

// endSQL ends the session of one of these transactions, if the transaction is still open.
const endSQL = `SELECT pg_catalog.pg_terminate_backend(x.pid) FROM (` + blockersSQL + `) x
 WHERE x.sure AND x.pid OPERATOR(pg_catalog.=) $2 AND x.virtualtransaction OPERATOR(pg_catalog.=) $3`

const pidSQL = `SELECT pg_catalog.pg_backend_pid()`

// blocker is a transaction that blocks a taker.
type blocker struct {
	pid         int64
	transaction string
	isEndable   bool // its COMMIT surely doesn't wait for a standby
}

// ender ends the sessions that block a taker.
type ender struct {
	db   *sql.DB
	pid  int64            // the taker's
	seen map[blocker]bool // those found last time
	note string           // why a session could not be ended, for the taker's error
}

// takeAndEndBlockers runs fencing.take in a transaction, so that the process id that
// it asks for first stays that of its session behind a pooler.
func (r *request) takeAndEndBlockers(ctx context.Context) (g grant, err error) {
	defer func() {
		if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
			err = causeOfEnd(ctx)
		}
	}()
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return g, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	e := &ender{db: r.db}
	if err := tx.QueryRowContext(ctx, pidSQL).Scan(&e.pid); err != nil {
		return g, err
	}
	watching, answered := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.endBlockers(watching, r.endAfter)
	}()
	g, err = callTake(ctx, tx, r)
	answered()
	<-ended
	if err != nil {
		r.note = e.note
		return g, err
	}
	return g, tx.Commit()
}

// endBlockers looks for blockers twice within the time, and ends those that it finds
// both times: a transaction that it finds for the first time may have just begun.
func (e *ender) endBlockers(ctx context.Context, after time.Duration) {
	tick := time.NewTicker(after / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.endThoseSeenTwice(ctx); err != nil && ctx.Err() == nil {
			e.note = fmt.Sprintf("the sessions that hold it up could not be ended: %v", err)
		}
	}
}

func (e *ender) endThoseSeenTwice(ctx context.Context) error {
	if !hasSpareConnections(e.db, 1) {
		return errors.New("no connection was free: give the pool another (SetMaxOpenConns)")
	}
	found, err := e.findBlockers(ctx)
	if err != nil {
		return err
	}
	seen := e.seen
	e.seen = make(map[blocker]bool)
	var failed error
	for _, b := range found {
		e.seen[b] = true
		switch {
		case !seen[b]:
		case b.pid == 0:
			failed = errors.Join(failed, errors.New("a prepared transaction has no session: COMMIT PREPARED or ROLLBACK PREPARED it, from pg_prepared_xacts"))
		case !b.isEndable:
			failed = errors.Join(failed, fmt.Errorf("session %d may be one whose COMMIT waits for a standby, which the role can't see: GRANT pg_read_all_stats to it", b.pid))
		default:
			failed = errors.Join(failed, e.endSession(ctx, b))
		}
	}
	return failed
}

func (e *ender) findBlockers(ctx context.Context) (found []blocker, err error) {
	rows, err := e.db.QueryContext(ctx, blockersSQL, e.pid)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var b blocker
		if err := rows.Scan(&b.pid, &b.transaction, &b.isEndable); err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	return found, rows.Err()
}

func (e *ender) endSession(ctx context.Context, b blocker) error {
	var signaled bool
	err := e.db.QueryRowContext(ctx, endSQL, e.pid, b.pid, b.transaction).Scan(&signaled)
	switch {
	case errors.Is(err, sql.ErrNoRows): // it has ended by itself
		return nil
	case sqlState(err) == "42501":
		return fmt.Errorf("the role may not end session %d: GRANT pg_signal_backend to it, or give the writers' role an idle_in_transaction_session_timeout; a superuser's session only a superuser may end (%w)", b.pid, err)
	}
	return err
}
