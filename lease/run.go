package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Run takes the lease of a resource as [Take] does, runs work with the context
// of [Lease.Context], and releases the lease when work has returned or panicked.
//
// It returns the error of work, joined with one that matches [ErrLost] if the
// lease was lost before work returned; then work may have done only a part, and
// another holder may be at it. That a release failed is no error: the lease ends
// by itself after ttl.
func Run(ctx context.Context, db *sql.DB, resource string, ttl time.Duration, work func(context.Context) error, opts ...Option) error {
	if work == nil {
		return fmt.Errorf("run under lease %q: no work: pass a function", resource)
	}
	l, err := Take(ctx, db, resource, ttl, opts...)
	if err != nil {
		return err
	}
	var lost error
	func() {
		defer func() { lost = l.finish(ctx) }()
		err = work(l.Context(ctx))
	}()
	if lost != nil && !errors.Is(err, ErrLost) {
		err = errors.Join(err, lost)
	}
	return err
}
