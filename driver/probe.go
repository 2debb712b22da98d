package driver

import (
	"context"
	sqldriver "database/sql/driver"
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
	limit := c.connector.settings.probeTimeout
	if c.inTransaction() {
		limit += shieldGrace // the server's timeout comes first: one kept here closes the connection
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
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
	return c.std != nil && c.std.Conn().PgConn().TxStatus() == 'T'
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
