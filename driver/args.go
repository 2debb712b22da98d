package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/rewrite"
)

// call is a statement as pgx will send it: leading holds the arguments that
// only steer pgx, so that $1 is args[0] again.
type call struct {
	sql     string
	leading []sqldriver.NamedValue
	args    []sqldriver.NamedValue
}

// resolve takes pgx's special leading arguments apart, as pgx itself would:
// they shift the positions of the others, and a QueryRewriter replaces the
// statement.
//
// Result formats are special to pgx's Query only; its Exec would send them, and
// every argument behind them, as one more.
func resolve(ctx context.Context, sql string, args []sqldriver.NamedValue, query bool) (call, error) {
	c := call{sql: sql, args: args}
	var rewriter pgx.QueryRewriter
loop:
	for len(c.args) > 0 {
		switch arg := c.args[0].Value.(type) {
		case pgx.QueryExecMode:
			c.leading = append(c.leading, c.args[0])
		case pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
			if !query {
				break loop
			}
			c.leading = append(c.leading, c.args[0])
		case pgx.QueryRewriter:
			rewriter = arg
		default:
			break loop
		}
		c.args = c.args[1:]
	}
	if rewriter == nil {
		return c, nil
	}
	return c, c.apply(ctx, rewriter)
}

// apply runs a QueryRewriter here, so that its result is checked. It is
// given no connection: with the live one it could send what it likes.
func (c *call) apply(ctx context.Context, rewriter pgx.QueryRewriter) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = check.Refuse(rewrite.QueryRewriter, fmt.Sprintf("query rewriter %T panicked: it is given no connection, since it could write past the check; rewrite without one", rewriter))
		}
	}()
	values := make([]any, len(c.args))
	for i := range c.args {
		values[i] = c.args[i].Value
	}
	sql, values, err := rewriter.RewriteQuery(ctx, nil, c.sql, values)
	if err != nil {
		return fmt.Errorf("rewrite query failed: %w", err)
	}
	c.sql, c.args = sql, make([]sqldriver.NamedValue, len(values))
	for i, v := range values {
		if special(v) {
			return check.Refuse(rewrite.QueryRewriter, fmt.Sprintf("query rewriter %T returned arguments that steer pgx: return plain values only", rewriter))
		}
		c.args[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return nil
}

// interpolationViolation refuses a text into which pgx would write the
// arguments itself (the simple protocol) and could find other places for them
// than the server: its lexer reads some strings and names in another way.
func (c *Conn) interpolationViolation(s call, plan *check.Plan) *rewrite.Violation {
	if c.std == nil || len(s.args)+plan.Added() == 0 {
		return nil
	}
	mode := c.mode
	for _, a := range s.leading {
		if m, ok := a.Value.(pgx.QueryExecMode); ok {
			mode = m
		}
	}
	if mode != pgx.QueryExecModeSimpleProtocol || check.PlainPlaceholders(s.sql) {
		return nil
	}
	return check.Refuse(rewrite.SimpleProtocol, "the simple protocol writes arguments into the text, which is only certain without $ in names and without E'...' strings that have a backslash: use another exec mode, or pass such strings as arguments")
}

func special(v any) bool {
	switch v.(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryRewriter:
		return true
	}
	return false
}

// forExec is the call as pgx's Exec takes it.
func (c call) forExec() call {
	leading := c.leading
	c.leading = nil
	for _, a := range leading {
		if _, ok := a.Value.(pgx.QueryExecMode); ok {
			c.leading = append(c.leading, a)
		}
	}
	return c
}

// with puts the leading arguments before bound ones.
func (c *call) with(bound []sqldriver.NamedValue) []sqldriver.NamedValue {
	if len(c.leading) == 0 {
		return bound
	}
	return append(append([]sqldriver.NamedValue(nil), c.leading...), bound...)
}
