package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/tokenctx"
)

// Conn is a connection that checks every statement. It is what sql.Conn.Raw
// yields; pgx's connection is not reachable through it.
type Conn struct {
	inner     sqldriver.Conn
	execer    sqldriver.ExecerContext     // inner, where it is one
	queryer   sqldriver.QueryerContext    // likewise
	checker   sqldriver.NamedValueChecker // likewise
	resetter  sqldriver.SessionResetter   // likewise
	std       *stdlib.Conn                // inner, where it is pgx's and its session is checked
	mode      pgx.QueryExecMode           // of std, unless an argument says otherwise
	connector *Connector

	session *session
	held    *gate.Protection // the newest one that counts for this connection
	view    *gate.View       // what is protected, as this session sees it
	tx      *Tx              // the open transaction, if it was begun by BeginTx
	grown   uint64           // what was enforced when its session began; see gate.Protection
	changes bool             // it was sent what may change the catalog; see noteChanges
	begun   int64            // how many changes the handle had made when the transaction began, and those by this connection since
	within  *within          // what the open transaction has called has changed; nil if nothing has

	recent   gate.Recent
	executed statement    // what ExecContext has sent last; its memory is used again
	binder   check.Binder // and that of its arguments
	inUse    bool         // an argument may send a statement of its own, by Conn.Raw

	new, hit atomic.Uint64     // texts that were checked, by whether their plan was known
	detours  gate.DetourCounts // executions that didn't take the short way
}

var (
	_ sqldriver.Conn               = (*Conn)(nil)
	_ sqldriver.ConnBeginTx        = (*Conn)(nil)
	_ sqldriver.ConnPrepareContext = (*Conn)(nil)
	_ sqldriver.ExecerContext      = (*Conn)(nil)
	_ sqldriver.QueryerContext     = (*Conn)(nil)
	_ sqldriver.Pinger             = (*Conn)(nil)
	_ sqldriver.SessionResetter    = (*Conn)(nil)
	_ sqldriver.NamedValueChecker  = (*Conn)(nil)
)

// Prepare prepares a statement. database/sql calls PrepareContext instead.
func (c *Conn) Prepare(query string) (sqldriver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext checks and prepares a statement. The token is looked for at
// each execution, in the context of that execution.
func (c *Conn) PrepareContext(ctx context.Context, query string) (sqldriver.Stmt, error) {
	v, err := c.check(ctx, query, gate.Looked{})
	if err != nil {
		return nil, err
	}
	plan := v.Sent()
	s := &Stmt{conn: c, query: query, text: c.text(plan, query), added: plan.Added()}
	if s.inner, err = c.prepare(ctx, s.text); err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Conn) prepare(ctx context.Context, text string) (sqldriver.Stmt, error) {
	if p, ok := c.inner.(sqldriver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, text)
	}
	return c.inner.Prepare(text)
}

// ExecContext checks and runs a statement.
func (c *Conn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if c.execer == nil {
		return nil, sqldriver.ErrSkip // nothing was done: database/sql prepares it, which is checked
	}
	known, bound, reason := c.direct(ctx, query, args, false)
	if reason == gate.OnShortWay {
		result, err := c.execer.ExecContext(ctx, c.text(known.Plan, query), bound)
		if err == nil && !c.mayLack(known.Plan, result) {
			c.binder.Clear()
			return result, nil
		}
		return c.outcomeOf(ctx, c.sent(known.Plan, query, args, bound), result, err)
	}
	s, b, own := c.memory()
	defer c.forget(own)
	if err := c.admit(ctx, s, b, known, query, args, false); err != nil {
		return nil, err
	}
	c.once(s)
	return c.exec(ctx, s, c.sender(ctx, s))
}

// sender sends a statement by its text.
func (c *Conn) sender(ctx context.Context, s *statement) (send sender) {
	if c.execer != nil {
		send.exec = func(args []sqldriver.NamedValue) (sqldriver.Result, error) {
			return c.execer.ExecContext(ctx, s.text, args)
		}
	}
	if c.queryer != nil {
		send.query = func(args []sqldriver.NamedValue) (sqldriver.Rows, error) {
			return c.queryer.QueryContext(ctx, s.text, args)
		}
	}
	return send
}

// QueryContext checks and runs a statement that returns rows. A guarded write
// without RETURNING is executed: its outcome is its count of rows.
func (c *Conn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if c.queryer == nil {
		return nil, sqldriver.ErrSkip
	}
	known, _, reason := c.direct(ctx, query, args, true)
	if reason == gate.OnShortWay {
		rows, err := c.queryer.QueryContext(ctx, query, args)
		return c.read(ctx, query, rows, err)
	}
	s := new(statement) // the rows need it after this call
	if err := c.admit(ctx, s, new(check.Binder), known, query, args, true); err != nil {
		return nil, err
	}
	c.once(s)
	return c.query(ctx, s, c.sender(ctx, s))
}

// memory returns what an execution is held in: the connection's own, unless an
// execution that has it is asking its arguments for their values.
func (c *Conn) memory() (s *statement, b *check.Binder, own bool) {
	if c.inUse {
		return new(statement), new(check.Binder), false
	}
	c.inUse = true
	return &c.executed, &c.binder, true
}

// forget lets go of what an execution has held in the connection's memory.
func (c *Conn) forget(own bool) {
	if !own {
		return
	}
	c.executed, c.inUse = statement{}, false
	c.binder.Clear()
}

// Begin starts a transaction. database/sql calls BeginTx instead.
func (c *Conn) Begin() (sqldriver.Tx, error) {
	return c.BeginTx(context.Background(), sqldriver.TxOptions{})
}

// Ping asks the server for a sign of life.
func (c *Conn) Ping(ctx context.Context) error {
	if p, ok := c.inner.(sqldriver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// ResetSession is called before the connection is used again. One whose
// statements were not held to what is enforced by now makes room for a new one.
func (c *Conn) ResetSession(ctx context.Context) error {
	c.tx = nil
	if err := c.refresh(ctx); err != nil || c.isOutdated() {
		if c.std != nil {
			_ = c.std.Conn().Close(ctx) // a pool would hand it out again
		}
		return sqldriver.ErrBadConn // nothing was sent
	}
	if c.resetter != nil {
		return c.resetter.ResetSession(ctx)
	}
	return nil
}

// CheckNamedValue passes tokenctx.Arg, and whatever the inner driver takes.
func (c *Conn) CheckNamedValue(v *sqldriver.NamedValue) error {
	if v.Value == (any)(tokenctx.Arg) {
		return nil
	}
	if c.checker != nil {
		return c.checker.CheckNamedValue(v)
	}
	return sqldriver.ErrSkip
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.connector.counters.closed(c)
	return c.inner.Close()
}
