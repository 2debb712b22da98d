package driver

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/gate"
	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/rewrite"
)

const (
	defaultRefreshInterval = 30 * time.Second

	lookTimeout  = 10 * time.Second // of all the queries of a look, a new connection's as well
	retryLook    = time.Second      // after one that failed
	lookPatience = time.Second      // with a look on another connection
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
// be used as well. What such a function makes, drops or changes in the database by SQL
// that isn't read is known to the next statement, not to other code that the same
// statement runs.
//
// For registered tables the database can say so itself: migrations.AllowFunction
// allows one function, without its overloads and only as it is now.
func WithGuardedFunctions(names ...string) Option {
	return func(s *settings) error {
		for _, written := range names {
			schema, name, err := splitName(written)
			if err != nil {
				return err
			}
			s.guarded = append(s.guarded, rewrite.Name{Schema: gate.OrPublic(schema), Name: name})
		}
		return nil
	}
}

// looking is when a connector looks at the registry and the catalog again.
type looking struct {
	due     atomic.Int64 // by Connector.now; 0 while the handle's own changes are unread
	changes atomic.Int64 // how often the handle has changed the catalog

	mu      sync.Mutex
	dirty   bool  // the handle has changed the catalog since the last look began
	running *look // the newest one at work, nil if there is none
}

// look is one that is at work.
type look struct {
	dirty bool  // it reads what the handle has changed
	since int64 // by Connector.now
	done  chan struct{}
}

// now is the time that due is compared with. It is never 0.
func (c *Connector) now() int64 { return int64(time.Since(c.made)) + 1 }

// change says that the handle has changed the catalog.
func (l *looking) change() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty = true
	l.changes.Add(1)
	l.due.Store(0)
}

// begin starts a look if one is due. Where another one reads what this handle
// has changed, that is returned to be waited for. One that takes too long, on a
// connection that has gone silent it may be, gives way to a new one.
func (l *looking) begin(now int64) (begun, other *look) {
	if l.due.Load() > now {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due.Load() > now {
		return nil, nil
	}
	dirty := l.dirty
	if r := l.running; r != nil {
		dirty = dirty || r.dirty
		switch {
		case now-r.since >= int64(lookPatience):
		case dirty:
			return nil, r
		default:
			return nil, nil
		}
	}
	l.running = &look{dirty: dirty, since: now, done: make(chan struct{})}
	l.dirty = false
	return l.running, nil
}

// turn starts a look if one is due, and returns it. It waits for one that reads
// what this handle has changed, but not for long.
func (l *looking) turn(ctx context.Context, now func() int64) *look {
	for {
		begun, other := l.begin(now())
		if other == nil {
			return begun
		}
		patience := time.NewTimer(lookPatience - time.Duration(now()-other.since))
		select {
		case <-other.done:
			patience.Stop()
			if other.dirty {
				return nil
			}
		case <-patience.C:
		case <-ctx.Done():
			patience.Stop()
			return nil
		}
	}
}

// end says when the next look is due. What a failed one was to read is unread. One
// that has given way to another leaves that to the other.
func (l *looking) end(k *look, next int64, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(k.done)
	if l.running != k {
		return
	}
	l.running = nil
	l.dirty = l.dirty || failed && k.dirty
	if !l.dirty || failed {
		l.due.Store(next)
	}
}

// seen is what a look has seen of its session.
type seen struct {
	path, user string
	server     gate.Server
}

// readAll reads the registry, the tables and the catalog for a new connection.
// Where the server can't answer in time, the handle goes by what it knows of that
// server; without that there is no connection.
func (c *Connector) readAll(ctx context.Context, conn *pgx.Conn) (seen, error) {
	begun := c.looking.turn(ctx, c.now)
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s, err := c.look(bounded, conn, begun != nil)
	if begun != nil {
		next := c.settings.refresh
		if err != nil {
			next = min(next, retryLook)
		}
		c.looking.end(begun, c.now()+int64(next), err != nil)
	}
	if err == nil || !isLockedOut(err) || conn.IsClosed() || !c.isKnown() {
		return s, err
	}
	answer, ownErr := c.askServer(bounded, conn, func(columns string) string { return "SELECT " + columns })
	if ownErr != nil || len(answer.rows) != 1 {
		return s, err
	}
	known := c.current.Load().Reading().Server
	s = seen{answer.path, answer.user, serverOf(answer.rows[0])}
	if st := s.server.Against(known); st != gate.SameServer && st != gate.Behind {
		return s, err // what this server says of its tables may be anything
	}
	c.tell(ctx, Event{Kind: EventUnread, Err: err})
	return s, nil
}

// catalogFor reads the catalog for the tables, nothing if it is known and hasn't
// changed, and the registry allows no other functions than before.
func (c *Connector) catalogFor(ctx context.Context, conn *pgx.Conn, tables []gate.Table, next *gate.Reading, hasChanged func(context.Context) (bool, error)) (*reach.Catalog, error) {
	if p := c.current.Load(); len(tables) > 0 && p != nil && p.Reading().HasCatalog && next.Same(p.Reading()) && next.Allows == p.Reading().Allows && gate.SameTables(p.Tables, tables) {
		if changed, err := hasChanged(ctx); err != nil || !changed {
			return nil, err
		}
	}
	return c.readCatalog(ctx, conn, tables, next.Allows)
}

// readCatalog reads the catalog for the tables, and which functions the registry
// allows if it says so.
func (c *Connector) readCatalog(ctx context.Context, conn *pgx.Conn, tables []gate.Table, allows bool) (*reach.Catalog, error) {
	if allows {
		return reach.ReadRegistered(ctx, catalogSession{c, conn}, gate.ReachTables(tables))
	}
	return reach.Read(ctx, catalogSession{c, conn}, gate.ReachTables(tables))
}

// catalogSession reads the catalog by the connector's own queries.
type catalogSession struct {
	connector *Connector
	conn      *pgx.Conn
}

// Query returns the rows of a query as text.
func (s catalogSession) Query(ctx context.Context, sql string, args ...string) ([][]string, error) {
	answer, err := s.connector.askOwn(ctx, s.conn, sql, args...)
	return answer.rows, err
}

// ParameterStatus returns what the server has reported of a setting.
func (s catalogSession) ParameterStatus(name string) string {
	return s.conn.PgConn().ParameterStatus(name)
}

// noteChanges says that the connection may have changed the catalog, once that
// is committed.
func (c *Conn) noteChanges() {
	if !c.changes || c.std == nil {
		return
	}
	c.connector.looking.change()
	c.begun++ // this one is the connection's own
	if c.within != nil {
		c.within.after++
	}
	if pg := c.std.Conn().PgConn(); !pg.IsBusy() && pg.TxStatus() == 'I' {
		c.changes = false
		if c.within != nil {
			c.within.unread = true // by the next transaction, unless a look comes before
		}
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
	if pg := c.std.Conn().PgConn(); !pg.IsBusy() && pg.TxStatus() == 'I' {
		c.within = nil
	}
	n := c.connector
	elsewhere := c.isElsewhere()
	if n.looking.due.Load() > n.now() && !elsewhere || c.std.Conn().IsClosed() || c.std.Conn().PgConn().TxStatus() != 'I' {
		return nil
	}
	begun := n.looking.turn(ctx, n.now)
	if begun == nil && !elsewhere {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	from, err := n.lookAgain(bounded, c.std.Conn())
	next := n.settings.refresh
	switch {
	case err == nil:
		c.session.server = from
	case ctx.Err() != nil, errors.Is(err, errTooLate): // the caller's time was up: the next one looks
		next = 0
	default:
		next = min(next, retryLook)
		n.tell(ctx, Event{Kind: EventUnread, Err: err})
	}
	if begun != nil {
		n.looking.end(begun, n.now()+int64(next), err != nil)
	}
	if c.std.Conn().IsClosed() {
		return sqldriver.ErrBadConn
	}
	return nil
}

// isElsewhere reports whether the handle goes by another server than the one that
// this connection leads to, and not by a newer one.
func (c *Conn) isElsewhere() bool {
	return c.std != nil && !c.follows(c.connector.current.Load())
}

// follows reports whether what was read from a protection's server counts for this
// connection: it leads there, or to one that has since given way to that.
func (c *Conn) follows(p *gate.Protection) bool {
	own := c.session.server
	if own.IsStandby || own == (gate.Server{}) {
		return true
	}
	st := p.Reading().Server.Against(own)
	return st == gate.SameServer || st == gate.NewerServer
}

// protection returns the newest protection that counts for this connection.
func (c *Conn) protection() *gate.Protection {
	if p := c.connector.current.Load(); p != c.held && (c.held == nil || c.follows(p)) {
		c.held = p
	}
	return c.held
}

// lookAgain reads what has changed since the last look: in most cases nothing,
// which one question answers. It returns the server that it came to.
func (c *Connector) lookAgain(ctx context.Context, conn *pgx.Conn) (gate.Server, error) {
	p := c.current.Load()
	if p == nil || !p.Reading().HasCatalog {
		s, err := c.look(ctx, conn, true)
		return s.server, err
	}
	now, stamp, err := c.stampNow(ctx, conn)
	if err != nil || c.teachesNothing(&now) {
		return now.Server, err
	}
	if last := p.Reading(); now.Same(last) && stamp == last.Stamp {
		c.heard.Store(c.now())
		return now.Server, nil
	}
	s, err := c.lookAt(ctx, conn, func(context.Context) (bool, error) { return stamp != c.current.Load().Reading().Stamp, nil })
	return s.server, err
}

// stampNow reads the registry's generation, from which server, and the catalog's
// stamp. Where nothing is registered the catalog doesn't matter, and its stamp is
// "".
func (c *Connector) stampNow(ctx context.Context, conn *pgx.Conn) (now gate.Reading, stamp string, err error) {
	registry := `COALESCE((SELECT pg_catalog.max(value) FROM fencing.generation), 0), (` + markQuery + `)`
	if c.settings.fromCode {
		registry = `0, ''`
	}
	catalog := reach.StampColumns
	if p := c.current.Load(); p != nil && len(p.Tables) == 0 {
		catalog = `'', ''`
	}
	answer, err := c.askServer(ctx, conn, func(columns string) string { return "SELECT " + columns + ", " + registry + ", " + catalog })
	if err != nil {
		return gate.Reading{}, "", fmt.Errorf("fencerow: look for changes of what is protected: %w%s", err, lookAdvice(err))
	}
	row := answer.rows[0]
	now = gate.Reading{Server: serverOf(row), Mark: row[serverWidth+1]}
	if now.Generation, err = strconv.ParseInt(row[serverWidth], 10, 64); err != nil {
		return gate.Reading{}, "", fmt.Errorf("fencerow: look for changes of what is protected: %w", err)
	}
	if catalog, fitness := row[serverWidth+2], row[serverWidth+3]; catalog != "" {
		stamp = reach.JoinStamp(catalog, fitness)
	}
	return now, stamp, nil
}

// markQuery tells the row that has the registry's generation from an earlier or a
// lost one with the same value.
const markQuery = `SELECT pg_catalog.string_agg(pg_catalog.concat_ws('-', g.tableoid, g.xmin, g.ctid), ' ') FROM fencing.generation g`

// lookAdvice says what to do about an error of a look, if that is known.
func lookAdvice(err error) string {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return ""
	}
	switch pgErr.Code {
	case "55P03":
		return ": somebody holds a lock on the registry, or on a catalog, that excludes readers, as a change of their structure or VACUUM FULL does: let that end"
	case "57014":
		return ": the server took too long to read the registry and the catalogs, or somebody has cancelled that"
	}
	return ""
}
