package lease

import (
	"context"
	"fmt"
	"time"
)

// keep renews the lease until it ends.
func (l *Lease) keep(taken time.Time) {
	defer close(l.stopped)
	next := time.NewTimer(time.Until(taken.Add(l.every)))
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
// time. Only the database's own word ends the lease here. Whatever else goes
// wrong leaves open whether it was renewed; then the deadline stays, and ends it.
func (l *Lease) renew() time.Duration {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(l.base, l.patience())
	defer cancel()
	held, err := l.renewCall(ctx)
	if err != nil {
		return l.failed(callError("renew it", "fencing.renew", err))
	}
	if !held {
		l.end(fmt.Errorf("%w: the database refused to renew %q: its time was over, and another may have taken it", ErrLost, l.resource))
		return l.every
	}
	l.extend(sent)
	return time.Until(sent.Add(l.every))
}

// patience is how long to wait for an answer, so that a connection that hangs
// leaves time for another one.
func (l *Lease) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.every, time.Until(l.deadline)/2)
}

// failed keeps the error for the case that no other renewal comes through, and
// returns how long to wait: not long, as there isn't much time.
func (l *Lease) failed(err error) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
	return min(max(time.Until(l.deadline)/8, 5*time.Millisecond), time.Second)
}
