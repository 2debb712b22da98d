package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Session is a library's pool on a database of its own, with the recorder
// behind it.
type Session struct {
	DB *sql.DB

	config *pgx.ConnConfig
	rec    *Recorder
}

// Open opens a recording pool.
func Open(library, dsn string) (*Session, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	s := &Session{config: config, rec: newRecorder(library)}
	config.Tracer = s.rec
	s.DB = s.NewPool()
	return s, nil
}

// NewPool opens another recording pool on the same database, for a library
// that closes the one it is given.
func (s *Session) NewPool() *sql.DB {
	// A pool pings a connection that has idled for a second; whether one has
	// depends on the machine.
	noPing := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
	return stdlib.OpenDB(*s.config, noPing)
}

// Step is an operation of a library, under the name that its statements get.
type Step struct {
	Op string
	Do func(ctx context.Context) error
}

// Run does the steps in order and reports all that fail: a statement that
// PostgreSQL does not take is no example of an ordinary one.
func (s *Session) Run(ctx context.Context, steps ...Step) error {
	var errs []error
	for _, step := range steps {
		s.rec.setOp(step.Op)
		if err := step.Do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", s.rec.library, step.Op, err))
		}
	}
	return errors.Join(errs...)
}

// Unordered says that the statements of an operation come in any order, so
// that their file has them in the order of their text.
func (s *Session) Unordered(op string) { s.rec.unordered[op] = true }

// Setup executes statements that are not the library's.
func (s *Session) Setup(ctx context.Context, sql string) error {
	s.rec.setPaused(true)
	defer s.rec.setPaused(false)
	if _, err := s.DB.ExecContext(ctx, sql); err != nil {
		return fmt.Errorf("%s: setup: %w", s.rec.library, err)
	}
	return nil
}

// Close closes the pool; the statements stay.
func (s *Session) Close() error { return s.DB.Close() }
