package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// blockersSQL are the transactions at the root of what session $1 waits for:
// who waits for a lock as well, such as another taker, is none, nor is one whose
// COMMIT waits for a standby. Where pg_stat_activity tells the role nothing, the
// server itself refuses to end what is no client's, and nobody is sure that it
// isn't such a COMMIT where there may be one. A prepared transaction is process 0.
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

// endSQL ends the session of one of them, if it is that still.
const endSQL = `SELECT pg_catalog.pg_terminate_backend(x.pid) FROM (` + blockersSQL + `) x
 WHERE x.sure AND x.pid OPERATOR(pg_catalog.=) $2 AND x.virtualtransaction OPERATOR(pg_catalog.=) $3`

const pidSQL = `SELECT pg_catalog.pg_backend_pid()`

// blocker is a transaction that holds a taker up.
type blocker struct {
	pid         int64
	transaction string
	sure        bool // that its COMMIT doesn't wait for a standby
}

// ender ends the sessions that hold a taker up.
type ender struct {
	db   *sql.DB
	pid  int64            // the taker's
	seen map[blocker]bool // when it last looked
	note string           // why it could not, for the taker's error
}

// takeEnding is take in a transaction, so that the session is the one that was
// asked for its process id through a pooler, too.
func (r *request) takeEnding(ctx context.Context) (g grant, err error) {
	defer func() {
		if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
			err = endOf(ctx)
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
		e.run(watching, r.endAfter)
	}()
	g, err = takeBy(ctx, tx, r)
	answered()
	<-ended
	if err != nil {
		r.note = e.note
		return g, err
	}
	return g, tx.Commit()
}

// run looks twice within the time. A transaction is ended that is found both
// times: one found for the first time may have just begun.
func (e *ender) run(ctx context.Context, after time.Duration) {
	tick := time.NewTicker(after / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.look(ctx); err != nil && ctx.Err() == nil {
			e.note = fmt.Sprintf("the sessions that hold it up could not be ended: %v", err)
		}
	}
}

func (e *ender) look(ctx context.Context) error {
	if !spare(e.db, 1) {
		return errors.New("no connection was free: give the pool another (SetMaxOpenConns)")
	}
	found, err := e.blockers(ctx)
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
		case !b.sure:
			failed = errors.Join(failed, fmt.Errorf("session %d may be one whose COMMIT waits for a standby, which the role can't see: GRANT pg_read_all_stats to it", b.pid))
		default:
			failed = errors.Join(failed, e.end(ctx, b))
		}
	}
	return failed
}

func (e *ender) blockers(ctx context.Context) (found []blocker, err error) {
	rows, err := e.db.QueryContext(ctx, blockersSQL, e.pid)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var b blocker
		if err := rows.Scan(&b.pid, &b.transaction, &b.sure); err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	return found, rows.Err()
}

func (e *ender) end(ctx context.Context, b blocker) error {
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
