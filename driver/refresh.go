package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
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

// now is the time that due is compared with.
func (c *Connector) now() int64 { return int64(time.Since(c.made)) }

// readAll reads the registry, the tables and the catalog, and returns the
// session's search path and role.
func (c *Connector) readAll(ctx context.Context, conn *pgx.Conn) (path, user string, err error) {
	due, dirty := c.due.Load(), c.dirty.Swap(false)
	defer func() {
		if dirty && err != nil {
			c.dirty.Store(true)
		}
	}()
	tables, generation, err := c.wanted(ctx, conn)
	if err != nil {
		return "", "", err
	}
	again, isDue := dirty, c.now() >= due
	if p := c.current.Load(); !dirty && isDue && p != nil && p.last.Load().catalog {
		_, stamp, err := c.stampNow(ctx, conn)
		if err != nil {
			return "", "", err
		}
		again = stamp != p.last.Load().stamp
	}
	if path, user, err = c.look(ctx, conn, tables, generation, again); err == nil && (dirty || isDue) {
		// unless the handle has changed something meanwhile
		c.due.CompareAndSwap(due, c.now()+int64(c.settings.refresh))
	}
	return path, user, err
}

// catalogFor reads the catalog for the tables, nothing if it is known.
func (c *Connector) catalogFor(ctx context.Context, conn *pgx.Conn, tables []heldTable, again bool) (*catalog, error) {
	if p := c.current.Load(); !again && p != nil && p.last.Load().catalog && sameTables(p.tables, tables) {
		return nil, nil
	}
	return c.readCatalog(ctx, conn, tables)
}

// noteChanges says that the connection may have changed the catalog, once that
// is committed.
func (c *Conn) noteChanges() {
	if !c.changes || c.std == nil {
		return
	}
	c.connector.dirty.Store(true)
	c.connector.due.Store(0)
	if pg := c.std.Conn().PgConn(); !pg.IsBusy() && pg.TxStatus() == 'I' {
		c.changes = false
	}
}

// refresh looks at the registry and the catalog if that is due, while nothing
// else runs on the connection. Other connections don't wait for it, and go by
// what was known before. The error is that the connection is gone.
func (c *Conn) refresh(ctx context.Context) error {
	if c.std == nil {
		return nil
	}
	c.noteChanges()
	n := c.connector
	due, now := n.due.Load(), n.now()
	if now < due || c.std.Conn().IsClosed() || c.std.Conn().PgConn().TxStatus() != 'I' {
		return nil
	}
	looking := now + int64(lookTimeout)
	if !n.due.CompareAndSwap(due, looking) {
		return nil // another connection does
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	dirty := n.dirty.Swap(false)
	err := n.lookAgain(bounded, c.std.Conn(), dirty)
	next := n.settings.refresh
	if err != nil && dirty {
		n.dirty.Store(true)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil: // the caller's time was up: the next one looks
		next = 0
	default:
		next = min(next, retryLook)
		n.settings.tell(ctx, Event{Kind: EventUnread, Err: err})
	}
	n.due.CompareAndSwap(looking, n.now()+int64(next)) // unless a change came in between
	if c.std.Conn().IsClosed() {
		return sqldriver.ErrBadConn
	}
	return nil
}

// lookAgain reads what has changed since the last look: in most cases nothing,
// which one question answers.
func (c *Connector) lookAgain(ctx context.Context, conn *pgx.Conn, dirty bool) error {
	if p := c.current.Load(); !dirty && p != nil && p.last.Load().catalog {
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
	query := `SELECT COALESCE((SELECT pg_catalog.max(value) FROM fencing.generation), 0), (` + stampQuery + `)`
	if c.settings.fromCode {
		query = `SELECT 0::pg_catalog.int8, (` + stampQuery + `)`
	}
	if err := conn.QueryRow(ctx, query, ownMode(conn)).Scan(&generation, &stamp); err != nil {
		return 0, "", fmt.Errorf("fencerow: look for changes of what is protected: %w", err)
	}
	return generation, stamp, nil
}
