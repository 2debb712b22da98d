package migrations

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/internal/fault"
)

// ErrNotInstalled says that schema fencing, or a function of it that this
// program needs, is not in the database: run [Up]. It is the error of that name of
// package driver, too.
var ErrNotInstalled = fault.ErrNotInstalled

// SQLSTATEs that get advice, see
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	readOnlyTransaction   = "25006"
	invalidSchemaName     = "3F000"
	insufficientPrivilege = "42501"
	undefinedTable        = "42P01"
	undefinedColumn       = "42703"
	undefinedFunction     = "42883"
	duplicateTable        = "42P07"
	duplicateObject       = "42710"
	duplicateFunction     = "42723"
)

// isState reports whether err is the server's, with one of the SQLSTATEs.
func isState(err error, states ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(states, pg.Code)
}

// opError is err as an outcome of op. rights is what to do if the server
// missed a right.
func opError(op, rights string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("%s: %w", op, err)
	}
	e := &serverError{op: op, advice: pg.Hint, err: pg}
	switch {
	case pg.Hint != "":
	case pg.Code == insufficientPrivilege:
		e.advice = rights
	case pg.Code == readOnlyTransaction:
		e.advice = "connect to the primary, with a role and a database that may write"
	}
	return e
}

// functionMissing is err, which says that the database has schema fencing
// without the function that op calls, as an outcome of op.
func functionMissing(op string, err error) error {
	return fmt.Errorf("%s: %w as this program needs it: run migrations.Up(ctx, dsn) first: %w", op, ErrNotInstalled, err)
}

// serverError is the server's refusal with its hint, which the text of
// pgconn.PgError leaves out, or with ours.
type serverError struct {
	op     string
	advice string // may be empty
	err    *pgconn.PgError
}

func (e *serverError) Error() string {
	s := e.op + ": " + e.err.Message
	if e.advice != "" {
		s += ": " + e.advice
	}
	return s + " (SQLSTATE " + e.err.Code + ")"
}

// Unwrap gives the server's error.
func (e *serverError) Unwrap() error { return e.err }
