package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"time"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

type (
	execFunc  func([]sqldriver.NamedValue) (sqldriver.Result, error)
	queryFunc func([]sqldriver.NamedValue) (sqldriver.Rows, error)
)

// exec runs an admitted statement and, where a guarded write changed no row,
// finds out why.
func (c *Conn) exec(ctx context.Context, s *statement, run execFunc) (sqldriver.Result, error) {
	result, err := run(s.with(s.bound))
	if err != nil || result == nil {
		return result, err
	}
	main, ok := s.plan.Main()
	if !ok {
		return result, nil
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return result, nil
	}
	if err := c.explainZero(ctx, s, main); err != nil {
		return nil, err
	}
	return result, nil
}

// query runs an admitted statement that returns rows. A guarded write answers
// here and not only while its rows are read, so that nobody who forgets
// rows.Err misses it.
func (c *Conn) query(ctx context.Context, s *statement, canExec bool, exec execFunc, query queryFunc) (sqldriver.Rows, error) {
	main, ok := s.plan.Main()
	if ok && !main.Returning && canExec {
		executed := *s
		executed.call = s.forExec()
		if _, err := c.exec(ctx, &executed, exec); err != nil {
			return nil, err
		}
		return noRows{}, nil
	}
	rows, err := query(s.with(s.bound))
	if err != nil || !ok {
		return rows, err
	}
	peeked, err := peek(rows)
	if err != io.EOF {
		return peeked, err
	}
	if err := c.explainZero(ctx, s, main); err != nil {
		return nil, err
	}
	return peeked, nil
}

// explainZero asks why a guarded write changed no row. It returns the error
// for a stale or replayed token, and nil where there is no such row or the
// question can't be answered.
func (c *Conn) explainZero(ctx context.Context, s *statement, w rewrite.Write) error {
	queryer, ok := c.inner.(sqldriver.QueryerContext)
	probes := s.plan.Probes()
	if !ok || len(probes) == 0 {
		return nil
	}
	token, _ := w.Table.Token(ctx)
	limit := c.connector.settings.probeTimeout
	if c.inTransaction() {
		limit += shieldGrace // the server's timeout comes first: one kept here closes the connection
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	done, err := c.shield(ctx)
	if err != nil {
		return nil
	}
	defer done()
	for _, p := range probes {
		args, ok := probeArgs(p, s.bound)
		if !ok {
			return nil
		}
		current, found, err := highest(ctx, queryer, p.SQL, s.with(args))
		switch {
		case err != nil:
			return nil
		case !found:
			continue // no such row by this condition
		case current > token:
			return &StaleError{Table: w.Table.String(), Token: token, Current: current}
		case current == token && s.plan.Replays():
			return &ReplayError{Table: w.Table.String(), Token: token}
		}
		return nil
	}
	return nil
}

// shieldGrace is what a probe inside a transaction may take beyond the timeout
// that the server keeps for it.
const shieldGrace = 10 * time.Second

// shield keeps a failing probe from aborting the caller's transaction: it sets
// a savepoint, and a timeout that the server keeps, since one kept here would
// close the connection. done takes both back.
func (c *Conn) shield(ctx context.Context) (done func(), err error) {
	execer, ok := c.inner.(sqldriver.ExecerContext)
	if !ok || !c.inTransaction() {
		return func() {}, nil
	}
	done = func() {
		_, _ = execer.ExecContext(ctx, `ROLLBACK TO SAVEPOINT fencerow_probe; RELEASE SAVEPOINT fencerow_probe`, nil)
	}
	if _, err := execer.ExecContext(ctx, c.connector.settings.shieldSQL(), nil); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

func (c *Conn) inTransaction() bool {
	if c.std != nil {
		return c.std.Conn().PgConn().TxStatus() == 'T'
	}
	return false
}

// probeArgs picks the arguments of a probe out of the statement's.
func probeArgs(p rewrite.Probe, bound []sqldriver.NamedValue) ([]sqldriver.NamedValue, bool) {
	args := make([]sqldriver.NamedValue, len(p.Args))
	for i, n := range p.Args {
		if n < 1 || n > len(bound) {
			return nil, false
		}
		args[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: bound[n-1].Value}
	}
	return args, true
}

// highest runs a probe and returns the token it found, if any.
func highest(ctx context.Context, queryer sqldriver.QueryerContext, sql string, args []sqldriver.NamedValue) (t tokenctx.Token, found bool, err error) {
	rows, err := queryer.QueryContext(ctx, sql, args)
	if err != nil {
		return 0, false, err
	}
	row := make([]sqldriver.Value, len(rows.Columns()))
	err = rows.Next(row)
	if closeErr := rows.Close(); err == nil {
		err = closeErr
	}
	if err != nil || len(row) != 1 {
		return 0, false, err
	}
	v, found := row[0].(int64)
	return tokenctx.Token(v), found, nil
}
