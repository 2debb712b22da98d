package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// release is what has come of Release so far.
type release struct {
	mu     sync.Mutex
	sent   bool  // and the answer was lost
	done   bool  // the database has answered
	result error // its answer
}

// Release ends the lease: first here, with every context under it, and then in
// the database, so that others need not wait for the end of its time. It waits
// for a renewal under way; when it has returned without the error of a call,
// nothing of the lease runs any more.
//
// It returns nil if the lease was held until then, and an error that matches
// [ErrLost] if it was lost before. Another error means that the database could
// not be told; the lease then ends by itself, or Release may be called again. More
// calls do nothing and return the same. A context that has ended can't send
// anything: use context.WithoutCancel for a deferred Release, with a timeout.
func (l *Lease) Release(ctx context.Context) error {
	l.expire()
	l.end(ErrReleased)
	l.release.mu.Lock()
	defer l.release.mu.Unlock()
	if l.release.done {
		return l.release.result
	}
	doing := fmt.Sprintf("release lease %q", l.resource)
	select {
	case <-l.stopped:
	case <-ctx.Done():
		return fmt.Errorf("%s: wait for the renewal under way: %w", doing, causeOfEnd(ctx))
	}
	held, err := l.callRelease(ctx)
	if err != nil {
		l.release.sent = true
		return callError(doing, "fencing.release", err)
	}
	l.release.done = true
	switch cause := context.Cause(l.base); {
	case !errors.Is(cause, ErrReleased):
		l.release.result = cause
	case !held.Valid:
		l.release.result = fmt.Errorf("%w: %w", ErrLost, l.rowDeleted())
	case !held.Bool && !l.release.sent: // else that may have been this lease's own doing
		l.release.result = fmt.Errorf("%w: %q had ended in the database before it was released", ErrLost, l.resource)
	}
	return l.release.result
}

// releaseTimeout bounds a release that nobody waits for the success of.
const releaseTimeout = 5 * time.Second

// finish releases the lease whether or not ctx has ended, and returns an error
// only if the lease was lost before: one that the database could not be told of
// ends by itself.
func (l *Lease) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := l.Release(ctx); errors.Is(err, ErrLost) {
		return err
	}
	if err := l.Err(); !errors.Is(err, ErrReleased) {
		return err
	}
	return nil
}
