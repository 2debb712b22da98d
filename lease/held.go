package lease

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/fencerow/fencerow/tokenctx"
)

// Lease is a lease that was taken. Its methods may be called by many goroutines
// at once. Release it, also after it was lost: until then it may own a goroutine.
type Lease struct {
	db            *sql.DB
	resource      string
	holder        string
	token         tokenctx.Token
	ttl           time.Duration
	renewInterval time.Duration // between renewals, 0 for none

	base    context.Context // ended with the lease, and by nothing else
	cancel  context.CancelCauseFunc
	stopped chan struct{} // closed when no renewal will be sent any more

	mu       sync.Mutex
	deadline time.Time   // by this process's clock, which doesn't jump
	expiry   *time.Timer // runs expire at the deadline
	failure  error       // of the last renewal
	contexts map[*context.CancelCauseFunc]struct{}

	release release
}

func newLease(ctx context.Context, r *request, token tokenctx.Token, sent time.Time) *Lease {
	l := &Lease{
		db: r.db, resource: r.resource, holder: r.holder, token: token, ttl: r.ttl, renewInterval: r.renewInterval,
		stopped: make(chan struct{}), deadline: sent.Add(r.ttl), contexts: make(map[*context.CancelCauseFunc]struct{}),
	}
	l.base, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.mu.Lock() // the timer may run before it is stored
	defer l.mu.Unlock()
	l.expiry = time.AfterFunc(time.Until(l.deadline), l.expire)
	if l.renewInterval == 0 {
		close(l.stopped)
	} else {
		go l.keepRenewed(sent)
	}
	return l
}

// Resource returns the name of what is leased.
func (l *Lease) Resource() string { return l.resource }

// Holder returns the name under which the lease is held.
func (l *Lease) Holder() string { return l.holder }

// Token returns the lease's fencing token: larger than that of every lease
// before, of this resource or another.
func (l *Lease) Token() tokenctx.Token { return l.token }

// Done returns a channel that is closed when the lease is lost or released.
func (l *Lease) Done() <-chan struct{} { return l.base.Done() }

// Err returns nil while the lease is held, as far as this process can know, an
// error that matches [ErrLost] once it is lost, and [ErrReleased] once it is
// released. It keeps the first.
func (l *Lease) Err() error {
	l.expire()
	return context.Cause(l.base)
}

// Context returns a context for work under the lease. It carries the token,
// both as that of the resource, for tables that are registered for it, and as
// the default, for tables that name none. Of two leases' contexts, one in the other,
// neither token is the default: a write to a table that names no resource is refused
// there, since nothing says which of the two leases protects it.
//
// The context ends with ctx and with the lease, with [context.Cause] as [Err]
// tells it: as soon as the lease is released, or refused its renewal, or past its
// deadline by the local clock, and when the first write under it, through
// fencerow's driver, turns out to be stale. What it takes is freed when either
// has ended.
func (l *Lease) Context(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	l.expire()
	l.mu.Lock()
	defer l.mu.Unlock()
	if cause := context.Cause(l.base); cause != nil {
		cancel(cause)
	} else {
		l.contexts[&cancel] = struct{}{}
		context.AfterFunc(ctx, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.contexts, &cancel)
		})
	}
	outer, isNested := l.outerLease(ctx)
	ctx = tokenctx.WithResource(ctx, l.resource, l.token)
	if isNested {
		ctx = tokenctx.WithoutDefault(ctx, outer, l.resource)
	} else {
		ctx = tokenctx.With(ctx, l.token)
	}
	return tokenctx.WithObserver(ctx, l.endIfStale)
}

// outerLease returns the resource of another lease whose context ctx is or comes from.
func (l *Lease) outerLease(ctx context.Context) (resource string, ok bool) {
	if outer, _, isAmbiguous := tokenctx.Ambiguous(ctx); isAmbiguous {
		return outer, true
	}
	token, ok := tokenctx.From(ctx)
	if !ok || token == l.token {
		return "", false
	}
	return tokenctx.ResourceOf(ctx, token)
}

// endIfStale is called with each token that turned out to be stale, and ends the lease
// if the token is its own. The number alone tells this lease's from another's, unless
// they are drawn in different databases.
func (l *Lease) endIfStale(resource string, t tokenctx.Token) {
	if t == l.token && (resource == "" || resource == l.resource) {
		l.end(fmt.Errorf("%w: a write under token %d of %q was stale: another holder has taken over, or another lease writes the same rows, as the write's own error says", ErrLost, l.token, l.resource))
	}
}

// expire ends the lease if it is past its deadline.
func (l *Lease) expire() {
	l.mu.Lock()
	left, failure := time.Until(l.deadline), l.failure
	if left > 0 && l.base.Err() == nil {
		l.expiry.Reset(left)
	}
	l.mu.Unlock()
	switch {
	case left > 0:
	case failure != nil:
		l.end(fmt.Errorf("%w: %q was not renewed within %v: %w%s", ErrLost, l.resource, l.ttl, failure, poolAdvice(l.db)))
	default:
		l.end(fmt.Errorf("%w: the %v of %q are over", ErrLost, l.ttl, l.resource))
	}
}

// poolAdvice says that renewals may have had no connection, where that is so.
func poolAdvice(db *sql.DB) string {
	if s := db.Stats(); s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
		return fmt.Sprintf(" (all %d connections of the pool are in use: a renewal needs one, SetMaxOpenConns gives more)", s.MaxOpenConnections)
	}
	return ""
}

// extend moves the deadline, which counts from before the renewal was sent.
func (l *Lease) extend(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = nil
	if l.base.Err() == nil {
		l.deadline = sent.Add(l.ttl)
		l.expiry.Reset(time.Until(l.deadline))
	}
}

// end ends the lease, and all contexts under it before it returns, so that
// whoever gets the error of a stale write finds them ended. The first cause stays.
func (l *Lease) end(cause error) {
	l.mu.Lock()
	l.cancel(cause)
	l.expiry.Stop()
	contexts := l.contexts
	l.contexts = nil
	l.mu.Unlock()
	for cancel := range contexts {
		(*cancel)(context.Cause(l.base))
	}
}
