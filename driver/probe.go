package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"time"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// ask sends probes on the statement's connection, one after the other, until
// one has an answer. It reports whether all could be asked that had to be.
func (c *Conn) ask(ctx context.Context, s *statement, token tokenctx.Token, probes []rewrite.Probe, answers func(sqldriver.Value) bool) bool {
	queryer, ok := c.inner.(sqldriver.QueryerContext)
	if !ok || len(probes) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.connector.settings.probeTimeout+shieldGrace)
	defer cancel()
	done, err := c.shield(ctx)
	if err != nil {
		return false
	}
	defer done()
	for _, p := range probes {
		args, ok := probeArgs(p, token, s.bound)
		if !ok {
			return false
		}
		value, err := single(ctx, queryer, p.SQL, s.with(args))
		if err != nil {
			return false
		}
		if answers(value) {
			break
		}
	}
	return true
}

// shieldGrace is what a probe may take beyond the timeout that the server keeps
// for it: one that ends here closes the connection, with its session.
const shieldGrace = 10 * time.Second

// shield gives a probe a timeout that the server keeps, in a transaction of its
// own or behind a savepoint in the caller's, which it must not abort. done takes
// it back.
func (c *Conn) shield(ctx context.Context) (done func(), err error) {
	execer, ok := c.inner.(sqldriver.ExecerContext)
	if !ok || c.std == nil {
		return func() {}, nil
	}
	begin, end := `BEGIN READ ONLY`, `ROLLBACK`
	if c.std.Conn().PgConn().TxStatus() == 'T' {
		begin, end = `SAVEPOINT fencerow_probe`, `ROLLBACK TO SAVEPOINT fencerow_probe; RELEASE SAVEPOINT fencerow_probe`
	}
	done = func() { _, _ = execer.ExecContext(ctx, end, nil) }
	timeout := max(1, c.connector.settings.probeTimeout.Milliseconds())
	if _, err := execer.ExecContext(ctx, fmt.Sprintf("%s; SET LOCAL statement_timeout = %d", begin, timeout), nil); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// probeArgs picks the arguments of a probe out of the statement's.
func probeArgs(p rewrite.Probe, token tokenctx.Token, bound []sqldriver.NamedValue) ([]sqldriver.NamedValue, bool) {
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
