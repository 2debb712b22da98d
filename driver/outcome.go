package driver

import (
	"context"
	sqldriver "database/sql/driver"

	"github.com/fencerow/fencerow/internal/aftermath"
	"github.com/fencerow/fencerow/internal/check"
)

type (
	execFunc  func([]sqldriver.NamedValue) (sqldriver.Result, error)
	queryFunc func([]sqldriver.NamedValue) (sqldriver.Rows, error)
)

// sender sends a statement with its arguments; either way may be missing.
type sender struct {
	exec  execFunc
	query queryFunc
}

// exec runs an admitted statement between its hooks.
func (c *Conn) exec(ctx context.Context, s *statement, send sender) (sqldriver.Result, error) {
	defer c.noteChanges()
	if !c.connector.observed() {
		return c.execPlain(ctx, s, send)
	}
	op := s.operation()
	c.connector.before(ctx, op)
	result, err := c.execPlain(ctx, s, send)
	c.connector.after(ctx, op, err)
	return result, err
}

// query runs an admitted statement that returns rows between its hooks.
func (c *Conn) query(ctx context.Context, s *statement, send sender) (sqldriver.Rows, error) {
	defer c.noteChanges()
	if !c.connector.observed() {
		return c.queryPlain(ctx, s, send)
	}
	op := s.operation()
	c.connector.before(ctx, op)
	rows, err := c.queryPlain(ctx, s, send)
	c.connector.after(ctx, op, err)
	return rows, err
}

func (s *statement) operation() Operation {
	return Operation{Kind: OpStatement, SQL: s.sql, Guarded: s.plan.Guarded(), Writes: s.plan.Writes()}
}

// execPlain runs a statement and finds out what has come of its guarded writes.
func (c *Conn) execPlain(ctx context.Context, s *statement, send sender) (sqldriver.Result, error) {
	switch counts := c.counts(s); {
	case counts.Hidden() > 0 && send.query != nil:
		return c.execCounted(ctx, s, counts, send.query)
	case c.holds(s):
		return c.execHeld(ctx, s, send.exec)
	}
	result, err := send.exec(s.with(s.bound))
	return c.outcomeOf(ctx, s, result, err)
}

// outcomeOf finds out what has come of a statement that was run.
func (c *Conn) outcomeOf(ctx context.Context, s *statement, result sqldriver.Result, err error) (sqldriver.Result, error) {
	if err != nil || result == nil {
		return result, c.fromServer(ctx, s, err)
	}
	if len(s.plan.Parts()) == 0 {
		return result, nil
	}
	n, err := result.RowsAffected()
	if err != nil {
		n = aftermath.Unknown
	}
	if err := c.judge(ctx, s, n, nil, check.Counts{}); err != nil {
		return nil, err
	}
	return result, nil
}

// execCounted runs a statement whose rows are nothing but the counts of its writes in
// WITH, or end with them. A row comes back for each that counts.
func (c *Conn) execCounted(ctx context.Context, s *statement, counts check.Counts, query queryFunc) (sqldriver.Result, error) {
	rows, err := query(s.with(s.bound))
	if err != nil {
		return nil, c.fromServer(ctx, s, err)
	}
	cursor := &cursor{conn: c, ctx: ctx, statement: s}
	n, err := cursor.count(rows)
	if err != nil {
		return nil, c.fromServer(ctx, s, err)
	}
	if err := c.judge(ctx, s, n, cursor.first, counts); err != nil {
		return nil, err
	}
	return sqldriver.RowsAffected(n), nil
}

// counts returns where the rows of what is sent have the counts of its parts.
func (c *Conn) counts(s *statement) check.Counts {
	if c.std == nil || !s.plan.Guarded() {
		return check.Counts{}
	}
	return s.plan.Counts()
}

// queryPlain runs a statement that returns rows. A guarded write answers here
// and not only while its rows are read, so that nobody who forgets rows.Err
// misses it, and no row is handed out of a write that was stale in part.
func (c *Conn) queryPlain(ctx context.Context, s *statement, send sender) (sqldriver.Rows, error) {
	main, ok := s.plan.Main()
	counts := c.counts(s)
	hasGate, gateAlone := s.plan.GateColumn()
	if (ok && !main.Returning || gateAlone || counts.HidesRows) && send.exec != nil {
		executed := *s
		executed.call = s.forExec()
		if _, err := c.execPlain(ctx, &executed, send); err != nil {
			return nil, err
		}
		return noRows{}, nil
	}
	cursor := &cursor{conn: c, ctx: ctx, statement: s, hidden: counts.Hidden()}
	if hasGate {
		cursor.hidden++
	}
	if c.holds(s) {
		return c.queryHeld(ctx, s, cursor, send)
	}
	rows, err := send.query(s.with(s.bound))
	if err != nil {
		return nil, c.fromServer(ctx, s, err)
	}
	if len(s.plan.Parts()) == 0 {
		if !c.view.HasWall && !s.plan.Gated() && !c.changes {
			return rows, nil
		}
		return cursor.of(rows), nil
	}
	return c.judgeRows(ctx, s, cursor, rows, counts)
}

// maxAhead bounds the rows that an UPDATE or DELETE may return before the first one is
// handed out. Of more the outcome is told with the last one.
const maxAhead = 10_000

// judgeRows finds out what has come of the statement that rows are of, as far as their
// first ones tell.
func (c *Conn) judgeRows(ctx context.Context, s *statement, cursor *cursor, rows sqldriver.Rows, counts check.Counts) (sqldriver.Rows, error) {
	ended, err := cursor.ahead(rows, s.leastRows())
	found := s.meantByMain(cursor.first, counts)
	if err == nil && !ended && found <= maxAhead {
		ended, err = cursor.ahead(rows, int(found))
	}
	isUncounted := c.std != nil && s.isUncounted(cursor.first, counts)
	if err == nil && !ended && isUncounted {
		ended, err = cursor.ahead(rows, maxAhead)
	}
	if err == nil && !ended {
		if !s.isOpen(cursor.first, counts) {
			if c.connector.settings.partial || found > maxAhead || isUncounted {
				cursor.atEnd = func(ctx context.Context, n int64) error { return c.judge(ctx, s, n, cursor.first, counts) }
			}
			return cursor.of(rows), nil
		}
		_, err = cursor.ahead(rows, -1) // the connection has to be free for a second look
	}
	if err != nil {
		_ = rows.Close()
		return nil, c.fromServer(ctx, s, err)
	}
	read, err := cursor.end(rows)
	if err != nil {
		return nil, c.fromServer(ctx, s, err)
	}
	if err := c.judge(ctx, s, cursor.total, cursor.first, counts); err != nil {
		return nil, err
	}
	return read, nil
}
