package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/tokenctx"
)

// errNoQuestion says that there is nothing to ask.
var errNoQuestion = errors.New("the statement has nothing to ask for")

// probesOf returns the probes of questions.
func probesOf(questions []check.Question) []check.Probe {
	probes := make([]check.Probe, len(questions))
	for i, q := range questions {
		probes[i] = q.Probe
	}
	return probes
}

// ask sends probes on the statement's connection, one after the other, until one has an
// answer. An error says that not all could be asked that had to be.
func (c *Conn) ask(ctx context.Context, s *statement, token tokenctx.Token, probes []check.Probe, answers func(int, sqldriver.Value) bool) error {
	return c.askWith(ctx, probes, func(p check.Probe) ([]sqldriver.NamedValue, bool) {
		args, ok := probeArgs(p, token, s.bound)
		return s.with(args), ok
	}, answers)
}

// askWith is ask with what gives each probe its arguments.
func (c *Conn) askWith(ctx context.Context, probes []check.Probe, argsOf func(check.Probe) ([]sqldriver.NamedValue, bool), answers func(int, sqldriver.Value) bool) error {
	if len(probes) == 0 {
		return nil
	}
	queryer, ok := c.inner.(sqldriver.QueryerContext)
	if !ok {
		return errors.New("the wrapped driver runs no query without preparing it")
	}
	timeout := c.probeTimeout(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+shieldGrace)
	defer cancel()
	done, err := c.shield(ctx, timeout)
	if err != nil {
		return err
	}
	defer done()
	for i, p := range probes {
		args, ok := argsOf(p)
		if !ok {
			return errors.New("an argument of the statement is missing")
		}
		value, err := single(ctx, queryer, p.SQL, args)
		if err != nil {
			return err
		}
		if answers(i, value) {
			break
		}
	}
	return nil
}

// shieldGrace is what a probe may take beyond the timeout that the server keeps
// for it: one that ends here closes the connection, with its session.
const shieldGrace = 10 * time.Second

// shieldSQL is what a probe runs under, whatever the role has set: a time that the
// server keeps, and a plan that takes no time to be made ready.
const shieldSQL = `; SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0`

// leastProbe is what a probe may take however near the deadline is: an answer
// that comes a little late is better than none.
const leastProbe = 100 * time.Millisecond

// probeTimeout is what a probe may take: not longer than the caller would wait.
func (c *Conn) probeTimeout(ctx context.Context) time.Duration {
	timeout := c.connector.settings.probeTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(deadline), leastProbe))
	}
	return timeout
}

// shield gives a probe a timeout that the server keeps, in a transaction of its
// own or behind a savepoint in the caller's, which it must not abort. done takes
// it back.
func (c *Conn) shield(ctx context.Context, timeout time.Duration) (done func(), err error) {
	execer, ok := c.inner.(sqldriver.ExecerContext)
	if !ok || c.std == nil {
		return func() {}, nil
	}
	begin, end := `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY`, `ROLLBACK`
	if c.std.Conn().PgConn().TxStatus() == 'T' {
		begin, end = `SAVEPOINT fencerow_probe`, `ROLLBACK TO SAVEPOINT fencerow_probe; RELEASE SAVEPOINT fencerow_probe`
	}
	done = func() { _, _ = execer.ExecContext(ctx, end, nil) }
	if _, err := execer.ExecContext(ctx, begin+fmt.Sprintf(shieldSQL, max(1, timeout.Milliseconds())), nil); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// probeArgs picks the arguments of a probe out of the statement's.
func probeArgs(p check.Probe, token tokenctx.Token, bound []sqldriver.NamedValue) ([]sqldriver.NamedValue, bool) {
	args := make([]sqldriver.NamedValue, len(p.Args))
	for i, n := range p.Args {
		if n < 0 || n > len(bound) {
			return nil, false
		}
		args[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: int64(token)}
		if n > 0 {
			args[i].Value = bound[n-1].Value
		}
	}
	return args, true
}

// single runs a query that returns one row of one column.
func single(ctx context.Context, queryer sqldriver.QueryerContext, sql string, args []sqldriver.NamedValue) (sqldriver.Value, error) {
	rows, err := queryer.QueryContext(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	row := make([]sqldriver.Value, max(1, len(rows.Columns())))
	err = rows.Next(row)
	if closeErr := rows.Close(); err == nil {
		err = closeErr
	}
	return row[0], err
}
