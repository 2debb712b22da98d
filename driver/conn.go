package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// Conn is a connection that checks every statement. It is what sql.Conn.Raw
// yields; pgx's connection is not reachable through it.
type Conn struct {
	inner     sqldriver.Conn
	std       *stdlib.Conn // inner, where it is pgx's and its session is checked
	connector *Connector

	session *session
	view    *view // what is protected, as this session sees it
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
	if _, err := c.check(ctx, query); err != nil {
		return nil, err
	}
	var inner sqldriver.Stmt
	var err error
	if p, ok := c.inner.(sqldriver.ConnPrepareContext); ok {
		inner, err = p.PrepareContext(ctx, query)
	} else {
		inner, err = c.inner.Prepare(query)
	}
	if err != nil {
		return nil, err
	}
	return &Stmt{inner: inner, conn: c, query: query}, nil
}

// ExecContext checks and runs a statement.
func (c *Conn) ExecContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	execer, ok := c.inner.(sqldriver.ExecerContext)
	if !ok {
		return nil, sqldriver.ErrSkip // nothing was done: database/sql prepares it, which is checked
	}
	s, err := c.admit(ctx, query, args, false)
	if err != nil {
		return nil, err
	}
	return c.exec(ctx, s, func(args []sqldriver.NamedValue) (sqldriver.Result, error) {
		return execer.ExecContext(ctx, s.sql, args)
	})
}

// QueryContext checks and runs a statement that returns rows. A guarded write
// without RETURNING is executed: its outcome is its count of rows.
func (c *Conn) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	queryer, ok := c.inner.(sqldriver.QueryerContext)
	if !ok {
		return nil, sqldriver.ErrSkip
	}
	s, err := c.admit(ctx, query, args, true)
	if err != nil {
		return nil, err
	}
	execer, _ := c.inner.(sqldriver.ExecerContext)
	return c.query(ctx, s, execer != nil, func(args []sqldriver.NamedValue) (sqldriver.Result, error) {
		return execer.ExecContext(ctx, s.sql, args)
	}, func(args []sqldriver.NamedValue) (sqldriver.Rows, error) {
		return queryer.QueryContext(ctx, s.sql, args)
	})
}

// Begin starts a transaction. database/sql calls BeginTx instead.
func (c *Conn) Begin() (sqldriver.Tx, error) {
	return c.BeginTx(context.Background(), sqldriver.TxOptions{})
}

// BeginTx starts a transaction.
func (c *Conn) BeginTx(ctx context.Context, opts sqldriver.TxOptions) (sqldriver.Tx, error) {
	var inner sqldriver.Tx
	var err error
	if b, ok := c.inner.(sqldriver.ConnBeginTx); ok {
		inner, err = b.BeginTx(ctx, opts)
	} else if opts != (sqldriver.TxOptions{}) {
		return nil, errors.New("fencerow: the wrapped driver takes no transaction options")
	} else {
		//lint:ignore SA1019 the only way that the wrapped driver has
		inner, err = c.inner.Begin()
	}
	if err != nil {
		return nil, err
	}
	return &Tx{inner: inner}, nil
}

// Ping asks the server for a sign of life.
func (c *Conn) Ping(ctx context.Context) error {
	if p, ok := c.inner.(sqldriver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// ResetSession is called before the connection is used again.
func (c *Conn) ResetSession(ctx context.Context) error {
	if r, ok := c.inner.(sqldriver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// CheckNamedValue passes tokenctx.Arg, and whatever the inner driver takes.
func (c *Conn) CheckNamedValue(v *sqldriver.NamedValue) error {
	if v.Value == (any)(tokenctx.Arg) {
		return nil
	}
	if n, ok := c.inner.(sqldriver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return sqldriver.ErrSkip
}

// Close closes the connection.
func (c *Conn) Close() error { return c.inner.Close() }

// statement is a checked statement with its arguments bound.
type statement struct {
	call
	plan  *rewrite.Plan
	bound []sqldriver.NamedValue
}

// admit checks a statement and binds its token. Everything that is sent comes
// through here, right before it is sent.
func (c *Conn) admit(ctx context.Context, query string, args []sqldriver.NamedValue, asQuery bool) (*statement, error) {
	call, err := resolve(ctx, query, args, asQuery)
	if err != nil {
		return nil, c.connector.settings.located(err)
	}
	plan, err := c.check(ctx, call.sql)
	if err != nil {
		return nil, err
	}
	if v := c.interpolationViolation(call); v != nil {
		return nil, c.connector.settings.located(v)
	}
	bound, err := plan.BindAll(ctx, call.args)
	if err != nil {
		return nil, c.connector.settings.located(err)
	}
	return &statement{call: call, plan: plan, bound: bound}, nil
}

// check plans a text for this session. A text that may change the search path
// makes it unknown from then on, whether or not it succeeds.
func (c *Conn) check(ctx context.Context, sql string) (*rewrite.Plan, error) {
	plan := c.currentView().plan(ctx, sql)
	if err := plan.Refusal(); err != nil {
		return nil, c.connector.settings.located(err)
	}
	if !plan.Cleared {
		if v := c.sessionViolation(); v != nil {
			return nil, c.connector.settings.located(v)
		}
	}
	if plan.ChangesPath {
		c.session.pathKnown = false
	}
	return plan, nil
}

// currentView returns the newest protection as this session sees it.
func (c *Conn) currentView() *view {
	p := c.connector.current.Load()
	if c.session.pathKnown {
		if c.view == nil || c.view.protection != p {
			c.view = p.view(c.session.path)
		}
		return c.view
	}
	c.view = p.anyPath(c.session.path)
	return c.view
}

// sessionViolation refuses to send anything on a session in which the server
// would read a text otherwise than the parser. The server reports both
// settings whenever they change.
func (c *Conn) sessionViolation() *rewrite.Violation {
	if c.std == nil {
		return nil
	}
	pg := c.std.Conn().PgConn()
	if pg.IsClosed() {
		return nil // the inner connection says so itself
	}
	if pg.ParameterStatus("standard_conforming_strings") != "on" {
		return rewrite.Refuse(rewrite.SessionState, "standard_conforming_strings is not on in this session, so the server would read texts otherwise than the check: set it on the role or the database, or in the DSN")
	}
	if pg.ParameterStatus("client_encoding") != "UTF8" {
		return rewrite.Refuse(rewrite.SessionState, "client_encoding is not UTF8 in this session, so the server would read texts otherwise than the check: remove it from the DSN, PGCLIENTENCODING and the role")
	}
	return nil
}
