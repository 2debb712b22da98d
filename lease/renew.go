package lease

import (
	"context"
	"fmt"
	"time"
)

// keepRenewed renews the lease until it ends.
func (l *Lease) keepRenewed(taken time.Time) {
	defer close(l.stopped)
	next := time.NewTimer(time.Until(taken.Add(l.renewInterval)))
	defer next.Stop()
	for {
		select {
		case <-l.base.Done():
			return
		case <-next.C:
			next.Reset(l.renew())
		}
	}
}

// renew renews the lease once, and returns how long to wait before the next
// time. It ends the lease only if the database answers that the lease is over. After
// any other failure nobody knows whether the lease was renewed; the deadline stays,
// and ends the lease when it passes.
func (l *Lease) renew() time.Duration {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(l.base, l.answerTimeout())
	defer cancel()
	held, err := l.callRenew(ctx)
	if err != nil {
		return l.noteFailure(callError("renew it", "fencing.renew", err))
	}
	if !held.Valid {
		l.end(fmt.Errorf("%w: %w", ErrLost, l.rowDeleted()))
		return l.renewInterval
	}
	if !held.Bool {
		l.end(fmt.Errorf("%w: the database refused to renew %q: its time was over, and another may have taken it", ErrLost, l.resource))
		return l.renewInterval
	}
	l.extend(sent)
	return time.Until(sent.Add(l.renewInterval))
}

// rowDeleted says that the database doesn't know the lease any more.
func (l *Lease) rowDeleted() error {
	return fmt.Errorf("the row of %q was deleted from fencing.lease, so another may take it: leave the rows there to fencing.take and fencing.release", l.resource)
}

// answerTimeout is how long to wait for the answer to a renewal. It leaves time to try
// again over another connection if this one hangs.
func (l *Lease) answerTimeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.renewInterval, time.Until(l.deadline)/2)
}

// noteFailure keeps the error for the case that no later renewal succeeds, and returns
// how long to wait before the next one: a short time, as the deadline is near.
func (l *Lease) noteFailure(err error) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
	return min(max(time.Until(l.deadline)/8, 5*time.Millisecond), time.Second)
}
