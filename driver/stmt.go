package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/rewrite"
)

// Stmt is a prepared statement that is checked again at each execution.
type Stmt struct {
	inner sqldriver.Stmt // prepared as text
	conn  *Conn
	query string // as the caller wrote it
	text  string // as it was sent
	added int    // placeholders that it has more than the caller's
}

var (
	_ sqldriver.Stmt             = (*Stmt)(nil)
	_ sqldriver.StmtExecContext  = (*Stmt)(nil)
	_ sqldriver.StmtQueryContext = (*Stmt)(nil)
)

var errDeprecated = errors.New("fencerow: Stmt.Exec and Stmt.Query without a context are not implemented: a statement needs the context of its execution")

// Close closes the statement.
func (s *Stmt) Close() error { return s.inner.Close() }

// NumInput returns how many arguments the caller has to pass.
func (s *Stmt) NumInput() int {
	if n := s.inner.NumInput(); n >= s.added {
		return n - s.added
	}
	return -1
}

// Exec is not implemented: it has no context, so no token.
func (s *Stmt) Exec([]sqldriver.Value) (sqldriver.Result, error) { return nil, errDeprecated }

// Query is not implemented: it has no context, so no token.
func (s *Stmt) Query([]sqldriver.Value) (sqldriver.Rows, error) { return nil, errDeprecated }

// ExecContext checks the statement with the token of ctx, and runs it.
func (s *Stmt) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	known, bound, reason := s.conn.direct(ctx, s.query, args, false)
	if plan := known.Plan; reason == gate.OnShortWay && s.isPrepared(s.conn.text(plan, s.query)) {
		result, err := s.execInner(ctx, bound)
		if err == nil && !s.conn.mayLack(plan, result) {
			s.conn.binder.Clear()
			return result, nil
		}
		return s.conn.outcomeOf(ctx, s.conn.sent(plan, s.query, args, bound), result, err)
	}
	admitted, b, own := s.conn.memory()
	defer s.conn.forget(own)
	if err := s.admit(ctx, admitted, b, known, args, false); err != nil {
		return nil, err
	}
	return s.conn.exec(ctx, admitted, s.sender(ctx))
}

// QueryContext checks the statement with the token of ctx, and runs it.
func (s *Stmt) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	known, _, reason := s.conn.direct(ctx, s.query, args, true)
	if reason == gate.OnShortWay && s.isPrepared(s.query) {
		rows, err := s.queryInner(ctx, args)
		return s.conn.read(ctx, s.query, rows, err)
	}
	admitted := new(statement)
	if err := s.admit(ctx, admitted, new(check.Binder), known, args, true); err != nil {
		return nil, err
	}
	return s.conn.query(ctx, admitted, s.sender(ctx))
}

// sender sends the statement that was prepared.
func (s *Stmt) sender(ctx context.Context) sender {
	return sender{
		exec:  func(args []sqldriver.NamedValue) (sqldriver.Result, error) { return s.execInner(ctx, args) },
		query: func(args []sqldriver.NamedValue) (sqldriver.Rows, error) { return s.queryInner(ctx, args) },
	}
}

// isPrepared reports whether what is to be sent on the short way is what was prepared,
// and counts if it isn't.
func (s *Stmt) isPrepared(text string) bool {
	if text == s.text {
		return true
	}
	s.conn.detours.Count(DetourPreparedText)
	return false
}

// admit checks the prepared text again. An argument that would replace the
// text has no place here: what runs is what was prepared.
func (s *Stmt) admit(ctx context.Context, admitted *statement, b *check.Binder, known gate.Looked, args []sqldriver.NamedValue, asQuery bool) error {
	if err := s.conn.admit(ctx, admitted, b, known, s.query, args, asQuery); err != nil {
		return err
	}
	if admitted.sql != s.query {
		return s.conn.refuse(ctx, admitted.sql, check.Refuse(rewrite.QueryRewriter, "a query rewriter was passed to a prepared statement: pass it with the text to Exec or Query instead"))
	}
	if admitted.text != s.text {
		return s.prepareAgain(ctx, admitted)
	}
	return nil
}

// prepareAgain prepares the statement as it is to be sent by now: what is
// protected has changed since it was prepared.
func (s *Stmt) prepareAgain(ctx context.Context, admitted *statement) error {
	inner, err := s.conn.prepare(ctx, admitted.text)
	if err != nil {
		return err
	}
	old := s.inner
	s.inner, s.text, s.added = inner, admitted.text, admitted.plan.Added()
	return old.Close()
}

func (s *Stmt) execInner(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if e, ok := s.inner.(sqldriver.StmtExecContext); ok {
		return e.ExecContext(ctx, args)
	}
	values, err := plainValues(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 the only way that the wrapped driver has
	return s.inner.Exec(values)
}

func (s *Stmt) queryInner(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if q, ok := s.inner.(sqldriver.StmtQueryContext); ok {
		return q.QueryContext(ctx, args)
	}
	values, err := plainValues(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 the only way that the wrapped driver has
	return s.inner.Query(values)
}

// plainValues turns arguments into what a driver without contexts takes.
func plainValues(ctx context.Context, args []sqldriver.NamedValue) ([]sqldriver.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values := make([]sqldriver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, errors.New("fencerow: the wrapped driver takes no named arguments")
		}
		values[i] = a.Value
	}
	return values, nil
}
