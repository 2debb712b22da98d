package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors of leases. Use [errors.Is]: what is returned wraps them.
var (
	// ErrHeld says that another holder has the lease; see [HeldError].
	ErrHeld = errors.New("lease is held by another")

	// ErrLost says that the lease is not held any more: it was not renewed in
	// time, the database refused to renew it, or a write met a newer token. Stop
	// working. It is the cause of the lease's contexts.
	ErrLost = errors.New("lease is not held any more")

	// ErrReleased says that the program itself has released the lease. It
	// matches ErrLost too, since to the work it is the same.
	ErrReleased = fmt.Errorf("%w: it was released", ErrLost)
)

// HeldError is a lease that another holder has. It matches [ErrHeld] with
// [errors.Is].
type HeldError struct {
	Resource  string
	Holder    string        // the name that the holder gave, "" if the lease has become free since
	Remaining time.Duration // until the lease ends unless it is renewed, when the database answered
}

// Error names the resource, the holder and the remaining time.
func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("lease %q is free, and was not to be had: another is taking it, or an open transaction that has written under it holds it up: try again, as Take does while its context lasts", e.Resource)
	}
	return fmt.Sprintf("lease %q is held by %q for another %v unless it is renewed: wait, as Take does while its context lasts", e.Resource, e.Holder, e.Remaining.Round(time.Millisecond))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// callError adds to the error of a function of schema fencing what was being
// done, and what to do about it.
func callError(doing, function string, err error) error {
	switch sqlState(err) {
	case "":
		return fmt.Errorf("%s: %w", doing, err)
	case "3F000", "42883": // no schema fencing, no function in it
		return fmt.Errorf("%s: schema fencing is not installed in this database: run migrations.Up(ctx, dsn) first, which makes %s: %w", doing, function, err)
	case "42501":
		return fmt.Errorf("%s: the role may not: GRANT USAGE ON SCHEMA fencing and EXECUTE ON FUNCTION %s to it: %w", doing, function, err)
	case "2200H", "22003": // the second where tokens were to jump past the end
		return fmt.Errorf("%s: sequence fencing.write_epoch has come to its end: ALTER SEQUENCE fencing.write_epoch AS bigint NO MAXVALUE if that is lower than bigint's; else it was set too far ahead, and setval puts it back above the largest token of your tables: %w", doing, err)
	case "25006":
		return fmt.Errorf("%s: the server is a standby, or the session is read-only: connect to the primary (target_session_attrs=read-write), without default_transaction_read_only: %w", doing, err)
	case "57014":
		return fmt.Errorf("%s: the server ended %s, by a statement_timeout that is shorter than its wait, or because somebody cancelled it: give the role a longer one, and writers that are paused in a transaction a shorter idle_in_transaction_session_timeout: %w", doing, function, err)
	}
	return fmt.Errorf("%s from %s: %w", doing, function, err)
}

// sqlState returns the server's code of an error, "" if the error is not the server's
// (https://www.postgresql.org/docs/current/errcodes-appendix.html). The drivers'
// error types have the method in common.
func sqlState(err error) string {
	var server interface{ SQLState() string }
	if errors.As(err, &server) {
		return server.SQLState()
	}
	return ""
}

// causeOfEnd returns why a context ended. It always matches the context's Err.
func causeOfEnd(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
