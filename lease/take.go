package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Take takes the lease of a resource, and waits for it while another holds it,
// until ctx ends. ctx bounds the waiting only: the lease goes on after it.
//
// ttl, a millisecond to 24 hours, is how long the lease lasts without being
// renewed, and so how long others wait after its holder has died. It is renewed
// at a third of that, over db, whose pool needs a connection to spare: work that
// has them all lets the lease end.
//
// While ctx lasts, Take polls at intervals that [WithPoll] sets, and at once when it is
// notified of a release. Takers are not served in the order of their calls. All takers
// who wait over db in this process share one connection of its pool for the
// notifications. They use it only if the driver is fencerow's or pgx's, no pooler is in
// between, and the pool has 4 connections or more, two of them free. The connection goes
// back to the pool when the last of these takers has ended. With [WithoutListen] Take
// only polls.
//
// An open transaction of a paused writer may hold up the taking of a lease that
// has ended: see [WithEndBlockers]. When ctx ends, the error matches its
// Err, and [ErrHeld] if the lease was held. Any other error ends Take at once. If
// the answer of the database was lost, or ctx ended before it came, the lease may
// have been taken all the same; then nobody has it until its time is over.
func Take(ctx context.Context, db *sql.DB, resource string, ttl time.Duration, opts ...Option) (*Lease, error) {
	r, err := newRequest(db, resource, ttl, opts)
	if err != nil {
		return nil, err
	}
	l, err := r.takeWhenFree(ctx)
	return l, r.withNote(err)
}

// takeWhenFree polls until it has the lease.
func (r *request) takeWhenFree(ctx context.Context) (l *Lease, err error) {
	var (
		held *HeldError
		w    *waiter
	)
	defer func() { w.leave(l != nil) }()
	for poll := r.pollMin; ; poll = min(2*poll, r.pollMax) {
		if !polls.begin(r.db) {
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("take lease %q: %w: others who take leases over this handle are not answered, and have the connections that its pool can spare (SetMaxOpenConns)", r.resource, causeOfEnd(ctx))
			case <-time.After(r.pause(poll, time.Hour)):
				continue
			}
		}
		stopTimer := w.endListeningAfter(pollTimeout)
		asked := time.Now()
		l, err = r.takeIfFree(ctx)
		polls.end(r.db)
		stopTimer()
		if err != nil && held != nil && ctx.Err() != nil && time.Since(asked) < blockedAfter {
			return nil, fmt.Errorf("take lease %q: %w: %w", r.resource, causeOfEnd(ctx), held) // as it was a moment ago
		}
		if !errors.As(err, &held) {
			return l, err
		}
		if w == nil && !r.withoutListen {
			w = joinHub(r.db, r.resource)
		}
		w.sleep(ctx, r.pause(poll, held.Remaining))
		if ctx.Err() != nil {
			return nil, fmt.Errorf("take lease %q: %w: %w", r.resource, causeOfEnd(ctx), held)
		}
	}
}

// TryTake is [Take] without the waiting: if another holder has the lease, it
// returns a [*HeldError] at once, which matches [ErrHeld]. Where another's
// taking is just being committed, it waits for that.
func TryTake(ctx context.Context, db *sql.DB, resource string, ttl time.Duration, opts ...Option) (*Lease, error) {
	r, err := newRequest(db, resource, ttl, opts)
	if err != nil {
		return nil, err
	}
	l, err := r.takeIfFree(ctx)
	return l, r.withNote(err)
}

// withNote adds to an error why the sessions that blocked the last call were not ended.
func (r *request) withNote(err error) error {
	if err == nil || r.note == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, r.note)
}

// pause is how long to wait before the next poll: between half of poll and
// poll, and not much longer than the lease has to go. The jitter keeps the takers who
// wait for one lease from polling all at once.
func (r *request) pause(poll, remaining time.Duration) time.Duration {
	return min(poll/2+rand.N(poll/2+1), max(remaining, 0)+rand.N(r.pollMin))
}

// maxTries bounds how often to try again at once for a lease that was free and that
// another took in the same moment.
const maxTries = 3

// takeIfFree calls fencing.take. If another has the lease, it returns a *HeldError.
func (r *request) takeIfFree(ctx context.Context) (*Lease, error) {
	doing := fmt.Sprintf("take lease %q", r.resource)
	held := &HeldError{Resource: r.resource}
	for range maxTries {
		sent := time.Now()
		g, err := r.take(ctx)
		switch state := sqlState(err); {
		case state == "40001", state == "55P03": // another was first, in a session that is SERIALIZABLE or has a lock_timeout
			continue
		case err != nil && ctx.Err() != nil:
			return nil, r.unansweredError(ctx, doing, time.Since(sent), err)
		case err != nil:
			return nil, callError(doing, "fencing.take", err)
		case g.token.Valid():
			return r.startLease(ctx, g, sent)
		case g.token != 0:
			return nil, fmt.Errorf("%s: fencing.take gave %d, which is no token: install schema fencing again with migrations.Up", doing, g.token)
		}
		held.Holder, held.Remaining = g.holder, g.remaining
		if g.holder != "" {
			break
		}
	}
	return nil, held
}

// unansweredError is the error of a call whose context ended while it ran.
func (r *request) unansweredError(ctx context.Context, doing string, after time.Duration, err error) error {
	advice := ""
	if after > blockedAfter && r.endAfter == 0 {
		advice = fmt.Sprintf("; the database had not answered for %v: an open transaction that has written under the lease may hold its taking up, which WithEndBlockers ends and driver.WithTransactionTimeouts bounds", after.Round(time.Millisecond))
	}
	if errors.Is(err, ctx.Err()) {
		err = nil
	}
	return fmt.Errorf("%s: %w%s", doing, errors.Join(causeOfEnd(ctx), err), advice)
}

// blockedAfter is how long a call takes that is likely to wait for a lock.
const blockedAfter = 200 * time.Millisecond

// startLease makes the lease of a grant. Its time counts from before the request was
// sent, which is before the database began to count.
func (r *request) startLease(ctx context.Context, g grant, sent time.Time) (*Lease, error) {
	l := newLease(ctx, r, g.token, sent)
	if err := l.Err(); err != nil {
		_ = l.finish(ctx)
		return nil, fmt.Errorf("take lease %q: the answer took longer than the lease's %v: choose a longer time to live: %w", r.resource, r.ttl, err)
	}
	return l, nil
}
