package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/reach"
)

// Connector makes connections for [database/sql.OpenDB]. All its connections
// share one set of protected tables and one cache of checked statements.
type Connector struct {
	inner    sqldriver.Connector
	settings *settings
	sessions bool // connections are pgx's, so their session can be read

	mu      sync.Mutex // held while the protection is replaced
	current atomic.Pointer[gate.Protection]

	made     time.Time // what due counts from
	listener listener
	looking  looking       // when the registry and the catalog are looked at again
	ticks    atomic.Uint64 // count the beginnings and the ends of readings
	heard    atomic.Int64  // when the server that the handle goes by was read last, by now

	serverQuery atomic.Int32 // which of serverQueries this role may send

	driver   *Driver
	counters *counters // shared with what its driver opens by a DSN

	observers observers
}

var (
	_ sqldriver.Connector = (*Connector)(nil)
	_ io.Closer           = (*Connector)(nil)
)

// NewConnector returns a connector for pgx's own configuration. Hooks, tracers
// and codecs in it are trusted: they can reach the server past the driver.
// [Protect] and [ProtectTable] say what is protected; without them it is what
// the database's registry says.
func NewConnector(config pgx.ConnConfig, opts ...Option) (*Connector, error) {
	s, err := collect(opts)
	if err != nil {
		return nil, err
	}
	return connectorOf(stdlib.GetConnector(config, s.pgx...), true, s)
}

// NewPoolConnector returns a connector that takes its connections from a pool
// of pgx's. Use it with [database/sql.OpenDB] and SetMaxIdleConns(0), so that
// the pool alone keeps connections; closing the handle leaves the pool open.
// The pool's hooks are trusted, and so is who takes connections from it.
func NewPoolConnector(pool *pgxpool.Pool, opts ...Option) (*Connector, error) {
	if pool == nil {
		return nil, errors.New("fencerow: NewPoolConnector needs a pool")
	}
	s, err := collect(opts)
	if err != nil {
		return nil, err
	}
	return connectorOf(stdlib.GetPoolConnector(pool, s.pgx...), true, s)
}

// Wrap returns a connector that checks what is sent through another driver's
// connections. It is for tests without PostgreSQL and for benchmarks: nothing
// is read from the server, so the search path is unknown, token columns are
// taken on trust, and the tables have to be given with [Protect]. The inner driver
// must not keep the arguments that it is passed once it has returned.
func Wrap(inner sqldriver.Connector, opts ...Option) (*Connector, error) {
	if inner == nil {
		return nil, errors.New("fencerow: Wrap needs a connector")
	}
	return newConnector(inner, false, opts)
}

func newConnector(inner sqldriver.Connector, sessions bool, opts []Option) (*Connector, error) {
	s, err := collect(opts)
	if err != nil {
		return nil, err
	}
	if len(s.pgx) > 0 {
		return nil, errors.New("fencerow: WithPgx is an option of NewConnector and NewPoolConnector")
	}
	return connectorOf(inner, sessions, s)
}

func connectorOf(inner sqldriver.Connector, sessions bool, s *settings) (*Connector, error) {
	c := &Connector{inner: inner, settings: s, sessions: sessions, made: time.Now(), counters: new(counters)}
	c.driver = &Driver{connector: c}
	check.Start()
	if s.doctor != nil && !sessions {
		return nil, errors.New("fencerow: WithDoctor is an option of Open, NewConnector and NewPoolConnector")
	}
	if err := c.checkListen(); err != nil {
		return nil, err
	}
	if s.fromCode || !sessions {
		if _, err := c.protect(s.tables, &gate.Reading{}, nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Driver returns fencerow's driver.
func (c *Connector) Driver() sqldriver.Driver { return c.driver }

// Connect opens a connection and, on PostgreSQL, reads what the check rests
// on: the session's search path, the protected tables' token columns and,
// where no table was given by code, the registry.
func (c *Connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	for {
		conn, err := c.connect(ctx)
		if !errors.Is(err, errOutdated) {
			if err != nil {
				return nil, err
			}
			c.counters.opened(conn)
			c.tellTables()
			c.listenOnce()
			return conn, nil
		}
		// closed by now: the pool hands out another one, in the end a new one
	}
}

func (c *Connector) connect(ctx context.Context) (*Conn, error) {
	inner, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &Conn{inner: inner, connector: c, session: &session{}}
	conn.execer, _ = inner.(sqldriver.ExecerContext)
	conn.queryer, _ = inner.(sqldriver.QueryerContext)
	conn.checker, _ = inner.(sqldriver.NamedValueChecker)
	conn.resetter, _ = inner.(sqldriver.SessionResetter)
	std, isPgx := inner.(*stdlib.Conn)
	switch {
	case !c.sessions && isPgx:
		return nil, errors.Join(errors.New("fencerow: Wrap does not look at pgx's sessions: use NewConnector or NewPoolConnector"), inner.Close())
	case !c.sessions:
		return conn, nil
	case !isPgx:
		return nil, errors.Join(fmt.Errorf("fencerow: the connector made a %T instead of pgx's connection", inner), inner.Close())
	}
	conn.std, conn.mode = std, std.Conn().Config().DefaultQueryExecMode
	if err := conn.start(ctx); errors.Is(err, errOutdated) {
		_ = std.Conn().Close(ctx)
		_ = inner.Close()
		return nil, errOutdated
	} else if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return conn, nil
}

// isKnown reports whether the handle has read what is protected.
func (c *Connector) isKnown() bool {
	p := c.current.Load()
	return p != nil && p.Reading().HasCatalog
}

// protect makes the tables the protected ones, with what else reaches them by
// the catalog, unless something newer was read meanwhile. Where all is the same
// as before, the cache of plans stays.
func (c *Connector) protect(tables []gate.Table, next *gate.Reading, found *reach.Catalog) (changed bool, err error) {
	if found != nil {
		next.HasCatalog, next.Stamp = true, found.Stamp
	}
	closures := gate.ClosuresOf(tables, found, c.settings.guarded)
	c.mu.Lock()
	defer c.mu.Unlock()
	next.Ended = c.ticks.Add(1)
	before := c.current.Load()
	if before != nil {
		if c.teachesNothing(next) || before.Keeps(tables, closures, next) {
			last := before.Reading()
			if next.Server == last.Server {
				c.heard.Store(c.now())
			}
			if !next.HasCatalog && last.HasCatalog && !gate.SameTables(before.Tables, tables) {
				c.looking.change() // another connection was faster: nobody has read the two together
			}
			return false, nil
		}
	}
	p, err := gate.NewProtection(tables, closures, c.settings.cacheBytes)
	if err != nil {
		return false, fmt.Errorf("fencerow: %w", err)
	}
	p.Follow(before, next)
	c.current.Store(p)
	c.heard.Store(c.now())
	return true, nil
}
