package driver

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// The errors of guarded writes, as in package tokenctx.
var (
	ErrStale   = tokenctx.ErrStale
	ErrReplay  = tokenctx.ErrReplay
	ErrNoToken = tokenctx.ErrNoToken
)

// ErrUndetermined says that a guarded write left out rows, or may have, and that the
// driver can't tell whether a newer holder was in its way: because of the statement's
// shape, or since the query that asks for it failed, whose error is wrapped.
var ErrUndetermined = errors.New("whether a newer holder was in the way of a guarded write cannot be told")

// undeterminedError says of which write it can't be told.
type undeterminedError struct {
	table string
	token tokenctx.Token
	wrote int64
	cause error // nil if it is the statement's shape
}

// Error says what is known and what to do.
func (e *undeterminedError) Error() string {
	done, cause := "changed no row", ""
	if e.wrote != 0 {
		done = "may have left rows out"
	}
	if e.cause != nil {
		cause = " (" + e.cause.Error() + ")"
	}
	return fmt.Sprintf("write under token %d to %q %s, and whether a newer holder was in its way cannot be told%s: read the rows, or pin a unique key in the statement; with a lease, register the table for its resource and let the role read fencing.lease", e.token, e.table, done, cause)
}

// Is makes errors.Is(err, ErrUndetermined) true.
func (e *undeterminedError) Is(target error) bool { return target == ErrUndetermined }

// Unwrap returns why the question had no answer. database/sql would send the statement
// again for a connection that it takes for a bad one.
func (e *undeterminedError) Unwrap() error {
	if errors.Is(e.cause, sqldriver.ErrBadConn) {
		return nil
	}
	return e.cause
}

// besideError is the error of a write in a statement that writes something else, too.
type besideError struct{ error }

// Error says that the rest of the statement stands.
func (e *besideError) Error() string {
	return e.error.Error() + "; what else the statement wrote stays unless its transaction is rolled back"
}

// Unwrap returns the error of the write.
func (e *besideError) Unwrap() error { return e.error }

// PartialError is a guarded write that changed some of the rows it meant, while
// others carried a newer token, or in strict mode the same one. An upsert of several
// rows, a MERGE, an UPDATE with FROM, a DELETE with USING and what [WithRewrite] has
// guarded end with it; see [WithPartialCheck] for others. What was changed stays: roll
// the transaction back where one without the other would be wrong.
type PartialError struct {
	Table   string         // the protected table, as registered
	Token   tokenctx.Token // the token that the write carried
	Applied int64          // the rows that were changed
	Stale   int64          // the rows that carry a newer token

	Lease    string // the lease that the token comes from, if nobody has taken it since; see [StaleError]
	Replayed int64  // the rows that carry this very token, in strict mode, where that is counted
}

// Error names the table, the counts and what to do.
func (e *PartialError) Error() string {
	if e.Stale == 0 {
		return fmt.Sprintf("token %d on %q changed %d rows, and %d carried it already: a new write needs the lock taken again and its new token; roll back, or leave these rows out", e.Token, e.Table, e.Applied, e.Replayed)
	}
	if e.Lease != "" {
		return fmt.Sprintf("token %d on %q changed %d rows and was stale on %d: their newer token isn't one of lease %q, which is still held, so the rows are written under two leases; roll back, and have one lease protect each row", e.Token, e.Table, e.Applied, e.Stale, e.Lease)
	}
	return fmt.Sprintf("token %d on %q changed %d rows and was stale on %d: another holder has taken over some of them; roll back, or stop and take the lock again", e.Token, e.Table, e.Applied, e.Stale)
}

// NotApplied reports whether err says for certain that the statement changed
// nothing that it was to write: it was refused before it was sent or by the
// database, or rejected as stale or as a replay. What functions in it and
// triggers of an INSERT have written elsewhere stays, unless the transaction is
// rolled back. Where it is false the outcome is another error's to tell, and may
// be unknown, as after a connection that broke.
func NotApplied(err error) bool {
	if beside := (*besideError)(nil); errors.As(err, &beside) {
		return false
	}
	return errors.Is(err, rewrite.ErrRefused) || errors.Is(err, ErrStale) || errors.Is(err, ErrReplay)
}

// StaleError and ReplayError are the structs behind ErrStale and ErrReplay,
// for errors.As.
type (
	StaleError  = tokenctx.StaleError
	ReplayError = tokenctx.ReplayError
)
