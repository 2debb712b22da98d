package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// Main is the body of a TestMain. It runs the tests, stops the server that
// [Database] has started, and, if the tests passed, fails if they have left
// goroutines behind. It doesn't return.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is [Main] that returns the exit code, for a TestMain that has more to do.
func Run(m *testing.M) int { return runTests(m.Run, &shared, os.Stderr) }

func runTests(run func() int, s *sharedServer, w io.Writer) int {
	code := run()
	if err := s.stop(); err != nil {
		fmt.Fprintf(w, "localpg: stop the server of this test binary: %v\n", err)
		code = max(code, 1)
	}
	if code == 0 {
		// After a failure a leak is mostly that failure's, and hides it.
		if err := goleak.Find(); err != nil {
			fmt.Fprintf(w, "localpg: the tests passed and left goroutines behind: %v\n", err)
			code = 1
		}
	}
	return code
}

// Template is a database that is built once in a test binary and then copied
// for each test, which takes a few milliseconds.
type Template struct {
	Name  string    // by which the templates of a test binary are told apart
	From  *Template // what it is a copy of before Setup, or nil for an empty database
	Setup func(ctx context.Context, dsn string) error
}

// empty is a database that a session has been in: it has left the caches there that
// every first session would have to build, which takes longer than to connect.
var empty = Template{Name: "localpg: empty", Setup: func(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}}

// Database returns the connection string of a fresh database of this test,
// which is dropped when the test ends. It is empty, or a copy of the template
// if one is given. The server is that of [Open], and one for all tests of the
// binary, so call [Main] in TestMain. Parallel tests may call it, and test
// binaries that run side by side on one existing server.
func Database(t testing.TB, setup ...Template) string {
	t.Helper()
	dsn, drop, err := shared.database(setup)
	if err != nil {
		t.Fatalf("localpg: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Errorf("localpg: %v", err)
		}
	})
	return dsn
}

// StartServer starts a private server, for a test that kills it or needs
// settings of its own, and stops it when the test ends. If
// FENCEROW_DATABASE_URL is set and there are no binaries, the test is skipped.
func StartServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return newFinder().startServer(t, opts...)
}

func (f finder) startServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := f.start(t.Context(), opts...)
	if errors.Is(err, ErrNoServer) && os.Getenv(envURL) != "" {
		t.Skipf("localpg: this test needs a server of its own: %v", err)
	}
	if err != nil {
		t.Fatalf("localpg: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("localpg: %v", err)
		}
	})
	return s
}

// shared is the one server of this test binary.
var shared sharedServer

// databaseTimeout bounds each step on the shared server's databases.
const databaseTimeout = 2 * time.Minute

type sharedServer struct {
	mu        sync.Mutex
	opened    bool
	err       error // of the attempt to open it, for all tests alike
	server    *Server
	owner     *owner
	count     int64 // databases named so far
	templates map[string]*template
}

type template struct {
	once     sync.Once
	database string
	err      error
}

// open opens the server on the first call.
func (s *sharedServer) open() error {
	if s.opened {
		return s.err
	}
	s.opened = true
	// Time enough for a download.
	ctx, cancel := context.WithTimeout(context.Background(), downloadTimeout+startTimeout)
	defer cancel()
	if s.server, s.err = Open(ctx); s.err != nil {
		return s.err
	}
	if s.owner, s.err = newOwner(ctx, s.server); s.err != nil {
		s.err = errors.Join(s.err, s.server.Stop())
	}
	return s.err
}

// next opens the server and names a database.
func (s *sharedServer) next() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return "", err
	}
	s.count++
	return s.owner.database(s.count), nil
}

// database creates a database; it returns its connection string and what
// drops it.
func (s *sharedServer) database(setup []Template) (dsn string, drop func() error, err error) {
	if len(setup) > 1 {
		return "", nil, errors.New("a database is a copy of one template: put all steps into one Setup")
	}
	name, err := s.next()
	if err != nil {
		return "", nil, err
	}
	from := empty
	if len(setup) == 1 {
		from = setup[0]
	}
	template, err := s.template(from)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	if err := s.server.CreateDatabase(ctx, name, template); err != nil {
		return "", nil, err
	}
	drop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		return s.server.DropDatabase(ctx, name)
	}
	return s.server.DSN(name), drop, nil
}

// template builds the template's database on the first call and returns its
// name.
func (s *sharedServer) template(t Template) (string, error) {
	s.mu.Lock()
	built := s.templates[t.Name]
	if built == nil {
		built = &template{err: errors.New("setup did not return")} // it may panic
		if s.templates == nil {
			s.templates = make(map[string]*template)
		}
		s.templates[t.Name] = built
	}
	s.mu.Unlock()

	built.once.Do(func() { built.database, built.err = s.build(t) })
	if built.err != nil {
		return "", fmt.Errorf("template %q: %w", t.Name, built.err)
	}
	return built.database, nil
}

func (s *sharedServer) build(t Template) (string, error) {
	name, err := s.next()
	if err != nil {
		return "", err
	}
	var from string
	if t.From != nil {
		if from, err = s.template(*t.From); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	if err := s.server.CreateDatabase(ctx, name, from); err != nil {
		return "", err
	}
	if err := t.Setup(ctx, s.server.DSN(name)); err != nil {
		return "", fmt.Errorf("setup: %w", err)
	}
	return name, s.server.seal(ctx, name)
}

// stop ends the server, if it was opened.
func (s *sharedServer) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// The lock goes last: without it another run may sweep what we drop.
	return errors.Join(s.server.Stop(), s.owner.close(ctx))
}
