package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"slices"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

type (
	execFunc  func([]sqldriver.NamedValue) (sqldriver.Result, error)
	queryFunc func([]sqldriver.NamedValue) (sqldriver.Rows, error)
)

// exec runs an admitted statement between its hooks.
func (c *Conn) exec(ctx context.Context, s *statement, run execFunc) (sqldriver.Result, error) {
	defer c.noteChanges()
	if !c.connector.observed() {
		return c.execPlain(ctx, s, run)
	}
	op := s.operation()
	c.connector.before(ctx, op)
	result, err := c.execPlain(ctx, s, run)
	c.connector.after(ctx, op, err)
	return result, err
}

// query runs an admitted statement that returns rows between its hooks.
func (c *Conn) query(ctx context.Context, s *statement, canExec bool, exec execFunc, query queryFunc) (sqldriver.Rows, error) {
	defer c.noteChanges()
	if !c.connector.observed() {
		return c.queryPlain(ctx, s, canExec, exec, query)
	}
	op := s.operation()
	c.connector.before(ctx, op)
	rows, err := c.queryPlain(ctx, s, canExec, exec, query)
	c.connector.after(ctx, op, err)
	return rows, err
}

func (s *statement) operation() Operation {
	return Operation{Kind: OpStatement, SQL: s.sql, Guarded: s.plan.Guarded(), Writes: s.plan.Writes()}
}

// execPlain runs a statement and, where a guarded write changed no row, finds
// out why.
func (c *Conn) execPlain(ctx context.Context, s *statement, run execFunc) (sqldriver.Result, error) {
	result, err := run(s.with(s.bound))
	return c.outcomeOf(ctx, s, result, err)
}

// outcomeOf finds out what has come of a statement that was run.
func (c *Conn) outcomeOf(ctx context.Context, s *statement, result sqldriver.Result, err error) (sqldriver.Result, error) {
	if err != nil || result == nil {
		return result, c.fromServer(ctx, s, err)
	}
	main, ok := s.plan.Main()
	if !ok {
		return result, nil
	}
	n, err := result.RowsAffected()
	switch {
	case err != nil:
		return result, nil
	case n > 0:
		err = c.explainPart(ctx, s, main, n)
	default:
		err = c.explainZero(ctx, s, main)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// queryPlain runs a statement that returns rows. A guarded write answers here
// and not only while its rows are read, so that nobody who forgets rows.Err
// misses it.
func (c *Conn) queryPlain(ctx context.Context, s *statement, canExec bool, exec execFunc, query queryFunc) (sqldriver.Rows, error) {
	main, ok := s.plan.Main()
	if ok && !main.Returning && canExec {
		executed := *s
		executed.call = s.forExec()
		if _, err := c.execPlain(ctx, &executed, exec); err != nil {
			return nil, err
		}
		return noRows{}, nil
	}
	hasGate, hidesRows := s.plan.GateColumn()
	if hidesRows && canExec {
		executed := *s
		executed.call = s.forExec()
		if _, err := c.execPlain(ctx, &executed, exec); err != nil {
			return nil, err
		}
		return noRows{}, nil
	}
	rows, err := query(s.with(s.bound))
	if err != nil {
		return nil, c.fromServer(ctx, s, err)
	}
	cursor := &cursor{conn: c, ctx: ctx, statement: s, hasGate: hasGate}
	if !ok {
		if !c.view.walled && !s.plan.Gated() && !c.changes {
			return rows, nil
		}
		return cursor.of(rows), nil
	}
	if c.connector.settings.partial {
		cursor.atEnd = func(n int64) error { return c.explainPart(ctx, s, main, n) }
	}
	peeked, err := cursor.peek(rows)
	if err != io.EOF {
		return peeked, c.fromServer(ctx, s, err)
	}
	if err := c.explainZero(ctx, s, main); err != nil {
		return nil, err
	}
	return peeked, nil
}

// explainZero asks why a guarded write changed no row. It returns the error
// for a stale or replayed token, and nil where there is no such row or, unless
// it was asked for, the question can't be answered.
func (c *Conn) explainZero(ctx context.Context, s *statement, w rewrite.Write) error {
	if !s.plan.Compares() || c.needNotAsk(s.plan) {
		return nil
	}
	token, _ := c.token(ctx, w.Table)
	var current int64
	found := false
	told := c.ask(ctx, s, token, s.plan.Probes(), func(value sqldriver.Value) bool {
		current, found = value.(int64) // NULL: no such row by this condition
		return found
	})
	var err error
	kind := EventStale
	switch {
	case !told && c.connector.settings.undetermined && !c.onlyReports(s.plan):
		return ErrUndetermined
	case !found:
		return nil
	case current > int64(token):
		err = &StaleError{Table: w.Table.String(), Token: token, Current: tokenctx.Token(current)}
	case current == int64(token) && s.plan.Replays():
		kind, err = EventReplay, &ReplayError{Table: w.Table.String(), Token: token}
	default:
		return nil
	}
	return c.rejected(ctx, s, kind, w.Table, err)
}

// explainPart asks, if the connector was made for it, whether a guarded write
// that changed n rows left others out for a newer token.
func (c *Conn) explainPart(ctx context.Context, s *statement, w rewrite.Write, n int64) error {
	if !c.connector.settings.partial || !s.plan.Compares() || c.needNotAsk(s.plan) {
		return nil
	}
	token, _ := c.token(ctx, w.Table)
	var stale int64
	c.ask(ctx, s, token, s.plan.StaleCounts(), func(value sqldriver.Value) bool {
		stale, _ = value.(int64)
		return stale > 0
	})
	if stale == 0 {
		return nil
	}
	return c.rejected(ctx, s, EventStale, w.Table, &PartialError{Table: w.Table.String(), Token: token, Applied: n, Stale: stale})
}

// rejected notes the outcome, and returns the error unless the table is one
// that is only reported. The lock's holder hears of a stale token only where the
// caller does.
func (c *Conn) rejected(ctx context.Context, s *statement, kind EventKind, table *rewrite.Table, err error) error {
	c.outcome(ctx, kind, table.String(), err)
	if c.onlyReports(s.plan) {
		return nil
	}
	if token, _ := c.token(ctx, table); kind == EventStale {
		c.reportStale(ctx, table.Resource, token)
	}
	return err
}

// reportStale tells whoever holds the lock that a token came from, by the
// context that carried it: the statement's, or that of its transaction's BEGIN.
func (c *Conn) reportStale(ctx context.Context, resource string, token tokenctx.Token) {
	if _, own := (&rewrite.Table{Resource: resource}).Token(ctx); !own {
		if tx := c.bound(); tx != nil {
			ctx = tx.ctx
		}
	}
	tokenctx.ReportStale(ctx, resource, token)
}

// needNotAsk reports whether nobody would hear the answer of a probe.
func (c *Conn) needNotAsk(plan *rewrite.Plan) bool {
	return !c.connector.told() && c.onlyReports(plan)
}

// onlyReports reports whether the tables that the text itself writes are only
// reported. Their name may stand for several.
func (c *Conn) onlyReports(plan *rewrite.Plan) bool {
	return !slices.ContainsFunc(plan.Writes(), func(w rewrite.Write) bool { return w.TopLevel && !c.view.reports(w.Table) })
}
