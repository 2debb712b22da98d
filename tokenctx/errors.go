package tokenctx

import (
	"errors"
	"fmt"
)

// The errors a fenced write can end with. Use [errors.Is]: what the driver
// returns wraps them.
var (
	// ErrStale says that the row already carries a newer token: another
	// holder has taken over. Nothing was written. Stop working; do not retry
	// under the same token.
	ErrStale = errors.New("stale token")

	// ErrReplay says that, on a table in strict mode, the row already carries
	// this very token: by this statement sent before, or by another one.
	// Nothing was written by this attempt. That is what the primary has: where
	// a write's wait for a synchronous standby was cancelled, a failover may
	// still take it back.
	ErrReplay = errors.New("token already used on this row")

	// ErrNoToken says that the context carries no token for the table.
	// Nothing was sent.
	ErrNoToken = errors.New("no fencing token in the context")
)

// StaleError is a write that was rejected because the row carries a newer
// token. It matches [ErrStale] with [errors.Is].
type StaleError struct {
	Table   string // the protected table, as registered
	Token   Token  // the token the write carried
	Current Token  // the token found in the row; 0 if it is not known
	Sealed  bool   // Current is the token under which the table's lease was taken since; no row need carry it
	Lease   string // the lease that Token comes from, if nobody has taken it since: Current is another lease's, or comes from elsewhere
	Err     error  // the server's error, where the server refused the write; else nil
}

// Error names the table, both tokens and what to do.
func (e *StaleError) Error() string {
	current := "a newer token"
	if e.Current > 0 {
		current = "token " + e.Current.String()
	}
	if e.Lease != "" {
		return fmt.Sprintf("stale token %d on %q: the row carries %s, which isn't one of lease %q: that is still held under token %d, so the row is written under two leases, or under tokens from elsewhere; have one lease protect each row", e.Token, e.Table, current, e.Lease, e.Token)
	}
	has := "the row carries"
	switch {
	case e.Sealed:
		has = "the lease was taken under"
	case e.Err != nil:
		has = "the row carries, or was deleted under," // the server's error tells which
	}
	return fmt.Sprintf("stale token %d on %q: %s %s, so another holder has taken over; stop, and take the lock again before writing", e.Token, e.Table, has, current)
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Unwrap returns the server's error, if there is one.
func (e *StaleError) Unwrap() error { return e.Err }

// ReplayError is a write in strict mode that was rejected because the row
// already carries the same token. It matches [ErrReplay] with [errors.Is].
type ReplayError struct {
	Table string // the protected table, as registered
	Token Token  // the token of the write, and of the row
	Err   error  // the server's error, where the server refused the write; else nil
}

// Error names the table, the token and what it means.
func (e *ReplayError) Error() string {
	return fmt.Sprintf("replay of token %d on %q: the row already carries it, so this write or another under the same token was applied before; a new write needs the lock taken again and its new token; a table in lease mode takes many writes under one, by <= in the guard", e.Token, e.Table)
}

// Is makes errors.Is(err, ErrReplay) true.
func (e *ReplayError) Is(target error) bool { return target == ErrReplay }

// Unwrap returns the server's error, if there is one.
func (e *ReplayError) Unwrap() error { return e.Err }
