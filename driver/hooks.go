package driver

import (
	"context"

	"github.com/fencerow/fencerow/rewrite"
)

// Hooks are called around everything that is sent for the caller. They run on
// the caller's goroutine, so one that blocks holds the statement up; only the
// ROLLBACK of a transaction whose context has ended comes from a goroutine of
// database/sql. A hook must not use the connection that the statement runs on,
// and must return: one that panics takes the connection along.
type Hooks struct {
	// Before is called right before an operation is sent, after it was checked
	// and its token bound. A statement that is refused never comes here.
	Before func(ctx context.Context, op Operation)
	// After is called with the error that the caller gets, if any. For a
	// statement that returns rows, that is before they are read.
	After func(ctx context.Context, op Operation, err error)
}

// Operation is what a hook is called around.
type Operation struct {
	Kind     OperationKind
	SQL      string          // the statement as the caller wrote it; "" for the other kinds
	Guarded  bool            // the statement writes a protected table, with its guard
	Writes   []rewrite.Write // those writes; must not be changed
	Location string          // the caller's file:line, for an [Observer] only
}

// OperationKind is the kind of an operation.
type OperationKind string

// The kinds of operations.
const (
	OpStatement OperationKind = "statement"
	OpBegin     OperationKind = "begin"
	OpCommit    OperationKind = "commit"
	OpRollback  OperationKind = "rollback"
)

// WithHooks adds hooks. Before runs in the order in which they were added,
// After in the opposite one.
func WithHooks(h Hooks) Option {
	return func(s *settings) error {
		s.hooks = append(s.hooks, h)
		return nil
	}
}

func (s *settings) before(ctx context.Context, op Operation) {
	for _, h := range s.hooks {
		if h.Before != nil {
			h.Before(ctx, op)
		}
	}
}

func (s *settings) after(ctx context.Context, op Operation, err error) {
	for i := len(s.hooks) - 1; i >= 0; i-- {
		if h := s.hooks[i]; h.After != nil {
			h.After(ctx, op, err)
		}
	}
}
