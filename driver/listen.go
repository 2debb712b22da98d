package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// listenRetry is how long a listener waits after its connection was lost.
const listenRetry = time.Second

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
		for ctx.Err() == nil {
			if err := c.listen(ctx); ctx.Err() == nil {
				c.tell(ctx, Event{Kind: EventUnread, Err: fmt.Errorf("fencerow: listen for changes of the registry: %w", err)})
				c.looking.change() // something may have been missed
				select {
				case <-time.After(listenRetry):
				case <-ctx.Done():
				}
			}
		}
	}()
}

// listen listens until its connection is lost.
func (c *Connector) listen(ctx context.Context) error {
	inner, err := c.inner.Connect(ctx)
	if err != nil {
		return err
	}
	defer inner.Close()
	std, ok := inner.(*stdlib.Conn)
	if !ok {
		return errNoPgx
	}
	defer std.Conn().Close(context.WithoutCancel(ctx)) // a pool must not hand it on
	if _, err := std.Conn().Exec(ctx, "LISTEN fencerow_registry"); err != nil {
		return err
	}
	c.looking.change() // what came before
	for {
		if _, err := std.Conn().WaitForNotification(ctx); err != nil {
			return err
		}
		c.looking.change()
	}
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
