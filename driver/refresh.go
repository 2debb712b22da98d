package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/rewrite"
)

const (
	defaultRefreshInterval = 30 * time.Second

	lookTimeout = 10 * time.Second // of a look between statements
	retryLook   = time.Second      // after one that failed
)

// WithRefreshInterval says how old what the driver knows of the registry and
// the catalog may become before a connection that is about to be used looks
// again, which costs it one round trip. The default is 30 seconds. What this
// handle itself changes is looked at with the next connection used; for a
// change by others a new view, function or registered table is known after the
// interval.
func WithRefreshInterval(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return errors.New("fencerow: WithRefreshInterval needs a positive duration")
		}
		s.refresh = d
		return nil
	}
}

// WithGuardedFunctions names functions, procedures and aggregates that may be
// called although they write protected tables: they carry a guard of their own.
// Names are written as for [Protect], and stand for all functions of a name. A
// function that calls one of them, and a table with a trigger by one, may then
// be used as well.
func WithGuardedFunctions(names ...string) Option {
	return func(s *settings) error {
		for _, written := range names {
			schema, name, err := splitName(written)
			if err != nil {
				return err
			}
			s.guarded = append(s.guarded, rewrite.Name{Schema: orPublic(schema), Name: name})
		}
		return nil
	}
}

// looking is when a connector looks at the registry and the catalog again.
type looking struct {
	due atomic.Int64 // by Connector.now; 0 while the handle's own changes are unread

	mu      sync.Mutex
	dirty   bool  // the handle has changed the catalog since the last look began
	running *look // the one at work, nil if there is none
}

// look is one that is at work.
type look struct {
	dirty bool // it reads what the handle has changed
	done  chan struct{}
}

// now is the time that due is compared with. It is never 0.
func (c *Connector) now() int64 { return int64(time.Since(c.made)) + 1 }

// change says that the handle has changed the catalog.
func (l *looking) change() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty = true
	l.due.Store(0)
}

// begin starts a look if one is due. Where another one reads what this handle
// has changed, that is returned to be waited for.
func (l *looking) begin(now int64) (begun, other *look) {
	if l.due.Load() > now {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running != nil && (l.running.dirty || l.dirty):
		return nil, l.running
	case l.running != nil || l.due.Load() > now:
		return nil, nil
	}
	l.running = &look{dirty: l.dirty, done: make(chan struct{})}
	l.dirty = false
	return l.running, nil
}

// turn starts a look if one is due, and returns it. It waits for one that reads
// what this handle has changed.
func (l *looking) turn(ctx context.Context, now func() int64) *look {
	for {
		begun, other := l.begin(now())
		if other == nil {
			return begun
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil
		}
		if other.dirty {
			return nil
		}
	}
}

// end says when the next look is due. What a failed one was to read is unread.
func (l *looking) end(k *look, next int64, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = nil
	l.dirty = l.dirty || failed && k.dirty
	if !l.dirty || failed {
		l.due.Store(next)
	}
	close(k.done)
}

// readAll reads the registry, the tables and the catalog for a new connection,
// and returns the session's search path and role.
func (c *Connector) readAll(ctx context.Context, conn *pgx.Conn) (path, user string, err error) {
	begun := c.looking.turn(ctx, c.now)
	tables, generation, err := c.wanted(ctx, conn)
	if err == nil {
		path, user, err = c.look(ctx, conn, tables, generation, begun != nil)
	}
	if begun != nil {
		next := c.settings.refresh
		if err != nil {
			next = min(next, retryLook)
		}
		c.looking.end(begun, c.now()+int64(next), err != nil)
	}
	return path, user, err
}

// catalogFor reads the catalog for the tables, nothing if it is known. Where it
// may have changed, its stamp tells.
func (c *Connector) catalogFor(ctx context.Context, conn *pgx.Conn, tables []heldTable, again bool) (*catalog, error) {
	if p := c.current.Load(); p != nil && p.last.Load().catalog && sameTables(p.tables, tables) {
		if !again {
			return nil, nil
		}
		if _, stamp, err := c.stampNow(ctx, conn); err != nil || stamp == p.last.Load().stamp {
			return nil, err
		}
	}
	return c.readCatalog(ctx, conn, tables)
}

// noteChanges says that the connection may have changed the catalog, once that
// is committed.
func (c *Conn) noteChanges() {
	if !c.changes || c.std == nil {
		return
	}
	c.connector.looking.change()
	if pg := c.std.Conn().PgConn(); !pg.IsBusy() && pg.TxStatus() == 'I' {
		c.changes = false
	}
}

// refresh looks at the registry and the catalog if that is due, while nothing
// else runs on the connection. Other connections go by what was known before,
// unless it is this handle itself that has changed something: for that they
// wait. The error is that the connection is gone.
func (c *Conn) refresh(ctx context.Context) error {
	if c.std == nil {
		return nil
	}
	c.noteChanges()
	n := c.connector
	if n.looking.due.Load() > n.now() || c.std.Conn().IsClosed() || c.std.Conn().PgConn().TxStatus() != 'I' {
		return nil
	}
	begun := n.looking.turn(ctx, n.now)
	if begun == nil {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err := n.lookAgain(bounded, c.std.Conn())
	next := n.settings.refresh
	switch {
	case err == nil:
	case ctx.Err() != nil: // the caller's time was up: the next one looks
		next = 0
	default:
		next = min(next, retryLook)
		n.tell(ctx, Event{Kind: EventUnread, Err: err})
	}
	n.looking.end(begun, n.now()+int64(next), err != nil)
	if c.std.Conn().IsClosed() {
		return sqldriver.ErrBadConn
	}
	return nil
}

// lookAgain reads what has changed since the last look: in most cases nothing,
// which one question answers.
func (c *Connector) lookAgain(ctx context.Context, conn *pgx.Conn) error {
	if p := c.current.Load(); p != nil && p.last.Load().catalog {
		generation, stamp, err := c.stampNow(ctx, conn)
		if err != nil {
			return err
		}
		if last := p.last.Load(); generation == last.generation && stamp == last.stamp {
			return nil
		}
	}
	tables, generation, err := c.wanted(ctx, conn)
	if err != nil {
		return err
	}
	_, _, err = c.look(ctx, conn, tables, generation, true)
	return err
}

// stampNow reads the registry's generation and the catalog's stamp.
func (c *Connector) stampNow(ctx context.Context, conn *pgx.Conn) (generation int64, stamp string, err error) {
	stampOf := stampQuery
	if p := c.current.Load(); p != nil && len(p.tables) == 0 {
		stampOf = `SELECT ''` // nothing was read, see readCatalog
	}
	query := `SELECT COALESCE((SELECT pg_catalog.max(value) FROM fencing.generation), 0), (` + stampOf + `)`
	if c.settings.fromCode {
		query = `SELECT 0::pg_catalog.int8, (` + stampOf + `)`
	}
	if err := conn.QueryRow(ctx, query, ownMode(conn)).Scan(&generation, &stamp); err != nil {
		return 0, "", fmt.Errorf("fencerow: look for changes of what is protected: %w", err)
	}
	return generation, stamp, nil
}
