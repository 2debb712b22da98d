package driver

import (
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

// ErrUndetermined says that a guarded write changed no row and that the driver
// can't tell whether its token is stale or there is no such row. It is returned
// on request only; see [WithUndetermined].
var ErrUndetermined = errors.New("guarded write changed no row, and whether its token is stale cannot be told: read the row's token, or pin the primary key in the statement")

// PartialError is a guarded write that changed some of the rows it meant, while
// others carried a newer token. It is returned on request only; see
// [WithPartialCheck]. What was changed stays: roll the transaction back where
// one without the other would be wrong.
type PartialError struct {
	Table   string         // the protected table, as registered
	Token   tokenctx.Token // the token that the write carried
	Applied int64          // the rows that were changed
	Stale   int64          // the rows that carry a newer token
}

// Error names the table, the counts and what to do.
func (e *PartialError) Error() string {
	return fmt.Sprintf("token %d on %q changed %d rows and was stale on %d: another holder has taken over some of them; roll back, or stop and take the lock again", e.Token, e.Table, e.Applied, e.Stale)
}

// NotApplied reports whether err says for certain that the statement changed
// none of the rows it was to write: it was refused before it was sent or by the
// database, or rejected as stale or as a replay. What functions in it and
// triggers of an INSERT have written elsewhere stays, unless the transaction is
// rolled back. Where it is false the outcome is another error's to tell, and may
// be unknown, as after a connection that broke.
func NotApplied(err error) bool {
	return errors.Is(err, rewrite.ErrRefused) || errors.Is(err, ErrStale) || errors.Is(err, ErrReplay)
}

// StaleError and ReplayError are the structs behind ErrStale and ErrReplay,
// for errors.As.
type (
	StaleError  = tokenctx.StaleError
	ReplayError = tokenctx.ReplayError
)
