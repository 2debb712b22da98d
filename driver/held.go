package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"slices"
	"time"

	"github.com/fencerow/fencerow/internal/check"
)

// Some statements can't bring along how many rows a write in them wrote: EXPLAIN
// ANALYZE, CREATE TABLE AS, and queries by UNION, for example. A second look tells what
// has come of it only while nobody else can have written the rows since: such a
// statement that isn't in a transaction is given one, which ends with the look.

// holds reports whether a statement needs a transaction until its outcome is known.
func (c *Conn) holds(s *statement) bool {
	if c.std == nil || c.execer == nil || !s.plan.Guarded() || c.std.Conn().PgConn().TxStatus() != 'I' {
		return false
	}
	parts := s.plan.Parts()
	if !slices.ContainsFunc(parts, func(part check.Part) bool { return !part.IsMain && part.Compares }) {
		return false
	}
	counted := c.counts(s).Columns
	for i, part := range parts {
		if !part.IsMain && part.Compares && !slices.Contains(counted, i) {
			return true
		}
	}
	return false
}

// execHeld is execPlain in a transaction.
func (c *Conn) execHeld(ctx context.Context, s *statement, run execFunc) (result sqldriver.Result, err error) {
	err = c.inTransaction(ctx, func() error {
		result, err = run(s.with(s.bound))
		result, err = c.outcomeOf(ctx, s, result, err)
		return err
	})
	return result, err
}

// queryHeld is queryPlain in a transaction. The rows are read before it ends.
func (c *Conn) queryHeld(ctx context.Context, s *statement, cursor *cursor, send sender) (read sqldriver.Rows, err error) {
	err = c.inTransaction(ctx, func() error {
		rows, err := send.query(s.with(s.bound))
		if err != nil {
			return c.fromServer(ctx, s, err)
		}
		if _, err = cursor.ahead(rows, -1); err != nil {
			_ = rows.Close()
			return c.fromServer(ctx, s, err)
		}
		if read, err = cursor.end(rows); err != nil {
			return c.fromServer(ctx, s, err)
		}
		return c.judge(ctx, s, cursor.total, cursor.first, check.Counts{})
	})
	if err != nil {
		return nil, err
	}
	return read, nil
}

// commitPatience bounds the COMMIT of a statement that has run: its context may have
// ended by then.
const commitPatience = 10 * time.Second

// inTransaction runs a statement between BEGIN and COMMIT. What it has written stays,
// whatever was found out about it, as without them.
func (c *Conn) inTransaction(ctx context.Context, run func() error) error {
	if _, err := c.execer.ExecContext(ctx, "BEGIN", nil); err != nil {
		return err
	}
	err := run()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	switch c.std.Conn().PgConn().TxStatus() {
	case 'T':
		if _, commitErr := c.execer.ExecContext(ctx, "COMMIT", nil); commitErr != nil {
			return c.fromWall(ctx, nil, commitErr)
		}
	case 'E':
		_, _ = c.execer.ExecContext(ctx, "ROLLBACK", nil)
	}
	return err
}
