package driver

import "github.com/fencerow/fencerow/tokenctx"

// The errors of guarded writes, as in package tokenctx.
var (
	ErrStale   = tokenctx.ErrStale
	ErrReplay  = tokenctx.ErrReplay
	ErrNoToken = tokenctx.ErrNoToken
)

// StaleError and ReplayError are the structs behind ErrStale and ErrReplay,
// for errors.As.
type (
	StaleError  = tokenctx.StaleError
	ReplayError = tokenctx.ReplayError
)
