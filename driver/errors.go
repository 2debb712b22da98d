package driver

import (
	"errors"

	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// The errors of guarded writes, as in package tokenctx.
var (
	ErrStale   = tokenctx.ErrStale
	ErrReplay  = tokenctx.ErrReplay
	ErrNoToken = tokenctx.ErrNoToken
)

// NotApplied reports whether err says for certain that the statement changed
// nothing: it was refused before it was sent, or rejected as stale or as a
// replay. Where it is false the outcome is another error's to tell, and may be
// unknown, as after a connection that broke.
func NotApplied(err error) bool {
	return errors.Is(err, rewrite.ErrRefused) || errors.Is(err, ErrStale) || errors.Is(err, ErrReplay)
}

// StaleError and ReplayError are the structs behind ErrStale and ErrReplay,
// for errors.As.
type (
	StaleError  = tokenctx.StaleError
	ReplayError = tokenctx.ReplayError
)
