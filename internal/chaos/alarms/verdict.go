package main

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
)

// verdict is what an answer to a present holder counts as.
type verdict string

const (
	written      verdict = "wrote rows"
	nothing      verdict = "found no row to write"
	unseen       verdict = "ended well, without a count"
	taken        verdict = "refused by PostgreSQL, as anybody's"
	broken       verdict = "broken connections"
	undetermined verdict = "`ErrUndetermined`, since the connection broke"

	// None of these may be.
	stale    verdict = "**`ErrStale`**"
	replay   verdict = "**`ErrReplay`**"
	partial  verdict = "**`PartialError`**"
	needless verdict = "**`ErrUndetermined`, though the connection was whole**"
	refused  verdict = "**refused by fencerow, or wrong SQL**"
	ended    verdict = "**leases ended**"
)

// verdicts are all of them, those first that count as answered.
func verdicts() []verdict {
	return []verdict{written, nothing, unseen, taken, broken, undetermined, stale, replay, partial, needless, refused, ended}
}

// isAlarm reports whether the present holder may never be told so.
func (v verdict) isAlarm() bool {
	return v == stale || v == replay || v == partial || v == needless || v == refused || v == ended
}

// isAnswer reports whether the statement was answered for good.
func (v verdict) isAnswer() bool { return v != taken && v != broken && v != undetermined && v != ended }

// concurrent are the SQLSTATEs that rows give which others write at the same time, and
// servers that are shut down or started.
var concurrent = []string{"23505", "40P01", "40001", "25P02", "57P01", "57P02", "57P03", "57014"}

// judge returns what an error counts as; n is the number of rows, -1 if that isn't known.
func judge(n int64, err error) verdict {
	var server *pgconn.PgError
	switch {
	case err == nil && n < 0:
		return unseen
	case err == nil && n == 0:
		return nothing
	case err == nil:
		return written
	case errors.As(err, new(*driver.PartialError)):
		return partial
	case errors.Is(err, driver.ErrStale):
		return stale
	case errors.Is(err, driver.ErrReplay):
		return replay
	case errors.Is(err, driver.ErrUndetermined) && isBroken(err):
		return undetermined
	case errors.Is(err, driver.ErrUndetermined):
		return needless
	case errors.As(err, new(*rewrite.Violation)):
		return refused
	case errors.As(err, &server) && slices.Contains(concurrent, server.Code):
		return taken
	case isBroken(err):
		return broken
	}
	return refused
}

// isBroken reports whether an error says that a connection or a call's time is over. The
// cause of ErrUndetermined says so by its text alone, so that nobody sends the write again.
func isBroken(err error) bool {
	for _, end := range []error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED,
		sqldriver.ErrBadConn, sql.ErrTxDone, sql.ErrConnDone,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	var server *pgconn.PgError
	return errors.As(err, new(*pgconn.ConnectError)) || errors.As(err, new(net.Error)) || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), sqldriver.ErrBadConn.Error()) ||
		errors.As(err, &server) && slices.Contains(concurrent, server.Code)
}
