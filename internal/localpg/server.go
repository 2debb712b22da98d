package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL server: one started by [Start], or the existing one
// that FENCEROW_DATABASE_URL names. Its methods may be called by several
// goroutines.
type Server struct {
	mu      sync.Mutex // held while the server starts or stops
	cluster *cluster   // nil for an existing server
	stopped bool

	url     string // of an existing server
	version string
	major   int

	idleMu sync.Mutex
	idle   []*pgx.Conn // to the maintenance database, for the next call of admin

	createdMu sync.Mutex
	created   map[string]bool // databases to drop from an existing server
}

var (
	errExisting = errors.New("this server was not started by localpg (" + envURL + " is set): unset it, or use Start, to kill and restart one")
	errStopped  = errors.New("the server is stopped and its directory removed: start a new one")
)

// Start makes a new, empty server in a temporary directory and starts it.
// [Server.Stop] must be called to end it. Where the system can, which is on
// Linux, the server also ends with this process, however that dies; what a
// killed process leaves on disk is removed by the next Start. The data directory is a
// copy of what initdb has made once for these binaries, which is kept where downloads are.
//
// The context bounds the start only. Without binaries the error is
// [ErrNoServer]; if the server doesn't come up, the error has the end of its log.
func Start(ctx context.Context, opts ...Option) (*Server, error) {
	return newFinder().start(ctx, opts...)
}

// start is Start with the places to look for binaries in.
func (f finder) start(ctx context.Context, opts ...Option) (*Server, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	if err := canRunServer(); err != nil {
		return nil, err
	}
	bin, err := f.find(ctx)
	if err != nil {
		return nil, err
	}
	sweep()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := newCluster(ctx, bin, f.cache, o)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL from %s: %w", bin, err)
	}
	s := &Server{cluster: c}
	if err := s.readVersion(ctx); err != nil {
		s.closeIdle()
		return nil, errors.Join(err, c.remove())
	}
	return s, nil
}

// readVersion asks the server who it is.
func (s *Server) readVersion(ctx context.Context) error {
	return s.admin(ctx, func(conn *pgx.Conn) error {
		var num string
		row := conn.QueryRow(ctx, "SELECT current_setting('server_version'), current_setting('server_version_num')")
		if err := row.Scan(&s.version, &num); err != nil {
			return fmt.Errorf("read the server's version: %w", err)
		}
		n, err := strconv.Atoi(num)
		s.major = n / 10000
		return err
	})
}

// admin runs fn on a connection to the maintenance database. The connection stays for
// the next call: to connect costs more than most of what is done here.
func (s *Server) admin(ctx context.Context, fn func(*pgx.Conn) error) error {
	conn, err := s.takeIdle(ctx)
	if err != nil {
		return fmt.Errorf("connect to the PostgreSQL server: %w", err)
	}
	if err := fn(conn); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	s.idleMu.Lock()
	defer s.idleMu.Unlock()
	s.idle = append(s.idle, conn)
	return nil
}

// takeIdle returns an idle connection that still works, or a new one.
func (s *Server) takeIdle(ctx context.Context) (*pgx.Conn, error) {
	for {
		conn := s.popIdle()
		if conn == nil {
			return pgx.Connect(ctx, s.DSN(""))
		}
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		_ = conn.Close(ctx)
	}
}

func (s *Server) popIdle() *pgx.Conn {
	s.idleMu.Lock()
	defer s.idleMu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	conn := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	return conn
}

// closeIdle closes the idle connections.
func (s *Server) closeIdle() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for conn := s.popIdle(); conn != nil; conn = s.popIdle() {
		_ = conn.Close(ctx) // it may be broken
	}
}

// DSN returns a connection string for a database of the server, in the form of
// a URL, or in that of FENCEROW_DATABASE_URL for an existing server. An empty
// name stands for the database that is always there.
func (s *Server) DSN(database string) string {
	if s.cluster == nil {
		if database == "" {
			return s.url
		}
		return withDatabase(s.url, database)
	}
	if database == "" {
		database = "postgres"
	}
	return s.cluster.dsn(database)
}

// DataDir returns the server's data directory, or "" for an existing server.
func (s *Server) DataDir() string {
	if s.cluster == nil {
		return ""
	}
	return s.cluster.dir.data()
}

// LogTail returns the end of the server's log, or "" for an existing server
// and after [Server.Stop].
func (s *Server) LogTail() string {
	if s.cluster == nil {
		return ""
	}
	return s.cluster.dir.tail()
}

// Version returns what the server says of itself, such as "17.2".
func (s *Server) Version() string { return s.version }

// Major returns the server's major version, such as 17.
func (s *Server) Major() int { return s.major }

// Kill ends the server as a crash would: no shutdown, no goodbye to clients.
// It returns when all of the server's processes are gone; [Server.Restart]
// then goes through recovery.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cluster == nil:
		return errExisting
	case s.stopped:
		return errStopped
	}
	return s.cluster.kill()
}

// Restart starts the server again on the same data directory, after [Server.Kill]
// or, if it still runs, after shutting it down in order. Connection strings stay
// valid.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cluster == nil:
		return errExisting
	case s.stopped:
		return errStopped
	}
	s.closeIdle()
	if err := s.cluster.stop(syscall.SIGINT); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return s.cluster.start(ctx)
}

// Stop ends the server at once and removes its directory. On an existing
// server it drops the databases that were created through s. A second call
// does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	if s.cluster == nil {
		defer s.closeIdle()
		return s.dropCreated()
	}
	s.closeIdle()
	return s.cluster.remove()
}

// Open returns the existing server that FENCEROW_DATABASE_URL names, or starts
// one like [Start] if that is not set. The options are for a server it starts.
func Open(ctx context.Context, opts ...Option) (*Server, error) {
	url := os.Getenv(envURL)
	if url == "" {
		return Start(ctx, opts...)
	}
	if err := checkURL(url); err != nil {
		return nil, err
	}
	s := &Server{url: url}
	if err := s.readVersion(ctx); err != nil {
		s.closeIdle()
		return nil, fmt.Errorf("%s: %w", envURL, err)
	}
	return s, nil
}
