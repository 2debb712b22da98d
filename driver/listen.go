package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// WithRegistryListener makes a connector keep one connection of its own, which
// listens for changes of the registry: a table that is registered, or whose
// level or wall is set, is then known to the next statement of the handle, and
// not after the interval of [WithRefreshInterval]. It begins with the first
// connection and ends when the handle is closed. It needs a server, or a pooler
// in session mode, where LISTEN works; while it doesn't, the reporter hears of
// it and the interval goes on.
func WithRegistryListener() Option {
	return func(s *settings) error {
		s.listen = true
		return nil
	}
}

const (
	// listenRetry is how long a listener waits after its connection was lost. It
	// waits twice as long each time that it fails again, up to the interval.
	listenRetry = time.Second
	// listenQuiet is how long a listener believes in a connection on which nothing
	// is heard, before it asks for a sign of life, which has to come in signPatience.
	listenQuiet  = 15 * time.Second
	signPatience = 5 * time.Second
)

// listener is the connection that listens.
type listener struct {
	mu      sync.Mutex
	stop    context.CancelFunc // nil before it has begun
	stopped chan struct{}
	closed  bool
}

// listenOnce begins to listen, if that was asked for and nobody has begun.
func (c *Connector) listenOnce() {
	l := &c.listener
	if !c.settings.listen {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil || l.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.stopped = stop, make(chan struct{})
	go func() {
		defer close(l.stopped)
		for wait := listenRetry; ctx.Err() == nil; {
			listened, err := c.listen(ctx)
			if ctx.Err() != nil {
				return
			}
			c.tell(ctx, Event{Kind: EventUnread, Err: fmt.Errorf("fencerow: listen for changes of the registry: %w", err)})
			if listened {
				c.looking.change() // something may have been missed
				wait = listenRetry
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			wait = min(2*wait, max(c.settings.refresh, listenRetry))
		}
	}()
}

// listen listens until its connection is lost, and reports whether it came to
// that.
func (c *Connector) listen(ctx context.Context) (listened bool, err error) {
	begun, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	inner, err := c.inner.Connect(begun)
	if err != nil {
		return false, err
	}
	defer inner.Close()
	std, ok := inner.(*stdlib.Conn)
	if !ok {
		return false, errNoPgx
	}
	defer closeSoon(ctx, std.Conn()) // a pool must not hand it on
	if _, err := std.Conn().Exec(begun, "LISTEN fencerow_registry"); err != nil {
		return false, err
	}
	c.looking.change() // what came before
	for {
		switch heard, err := hear(ctx, std.Conn()); {
		case err != nil:
			return true, err
		case heard:
			c.looking.change()
		}
	}
}

// hear waits for a notification. While there is none it asks the server for a sign
// of life from time to time: a connection may have gone silent.
func hear(ctx context.Context, conn *pgx.Conn) (heard bool, err error) {
	quiet, cancel := context.WithTimeout(ctx, listenQuiet)
	defer cancel()
	_, err = conn.WaitForNotification(quiet)
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil || quiet.Err() == nil || conn.IsClosed() {
		return false, err
	}
	sign, cancel := context.WithTimeout(ctx, signPatience)
	defer cancel()
	return false, conn.Ping(sign)
}

// closeSoon closes a connection, one that has gone silent too.
func closeSoon(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signPatience)
	defer cancel()
	_ = conn.Close(ctx)
}

// Close ends what the connector does besides its connections; database/sql
// calls it when the handle is closed.
func (c *Connector) Close() error {
	l := &c.listener
	l.mu.Lock()
	stop := l.stop
	l.closed = true
	l.mu.Unlock()
	if stop != nil {
		stop()
		<-l.stopped
	}
	return nil
}

// checkListen refuses a listener where there is nothing to listen to.
func (c *Connector) checkListen() error {
	if c.settings.listen && (c.settings.fromCode || !c.sessions) {
		return errors.New("fencerow: WithRegistryListener is for tables from the registry: leave it out with Protect and Wrap")
	}
	return nil
}
