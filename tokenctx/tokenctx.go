// Package tokenctx carries fencing tokens in a [context.Context].
//
// A fencing token is a positive number that a lock service hands out with a
// lock: every later holder gets a larger one. The storage compares it in the
// same statement as the write, so a holder that was paused past its lease
// cannot overwrite its successor's work.
//
// Put the token into the context where the lock is taken, and hand that
// context to every statement:
//
//	ctx = tokenctx.With(ctx, 8)
//	_, err := db.ExecContext(ctx, `UPDATE orders
//	    SET status = $1, last_token = $2
//	  WHERE id = $3 AND last_token < $2`, "paid", tokenctx.Arg, 17)
//	if errors.Is(err, tokenctx.ErrStale) {
//	    // a newer holder has written this row: stop working
//	}
//
// A context carries one default token and at most one token for each named
// resource; see [WithResource]. There is no process-wide token on purpose: a
// goroutine that wakes up late would pick up the newer holder's.
//
// The package imports the standard library only, so domain code can use it
// without pulling in a database driver.
package tokenctx

import (
	"context"
	"strconv"
)

// Token is a fencing token: a positive 64-bit integer that grows with every
// new holder of a lock. Zero and negative values are not tokens; [With] keeps
// them, so that a statement sent with one fails with a clear error instead of
// silently falling back to an outer token.
type Token int64

// Valid reports whether t can be a token, that is whether it is positive.
func (t Token) Valid() bool { return t > 0 }

// String returns t in decimal.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// binding is one token of a context. Bindings form a chain from the nearest
// to the outermost, so that deriving a context never copies.
type binding struct {
	outer    *binding
	resource string // "" is the default token
	named    bool
	token    Token
	between  []string // the resources of two locks, neither of whose tokens is the default
}

type keyType int

// key is where a context holds its bindings. Contexts compare a pointer faster than
// a struct.
var key = new(keyType)

// With returns a context whose default token is t. Contexts derived from it
// keep the token; a nested With replaces it for the nested context only.
func With(ctx context.Context, t Token) context.Context {
	return bind(ctx, binding{token: t})
}

// WithResource returns a context that carries t as the token of the named
// resource. A table registered for that resource takes this token only: a
// larger token of another lease must not open it. Two leases in one
// transaction are two named tokens.
func WithResource(ctx context.Context, resource string, t Token) context.Context {
	return bind(ctx, binding{resource: resource, named: true, token: t})
}

// From returns the default token of ctx. ok is false when none was set. The
// token is returned as it was set: check [Token.Valid] where it comes from
// outside.
func From(ctx context.Context) (t Token, ok bool) {
	return find(ctx, "", false)
}

// FromResource returns the token that ctx carries for the named resource. It
// never falls back to the default token.
func FromResource(ctx context.Context, resource string) (t Token, ok bool) {
	return find(ctx, resource, true)
}

// ResourceOf returns the resource that ctx carries t for, the nearest if there are
// several. A lease's context carries its token for the lease's resource, beside having
// it as the default.
func ResourceOf(ctx context.Context, t Token) (resource string, ok bool) {
	b, _ := ctx.Value(key).(*binding)
	for ; b != nil; b = b.outer {
		if b.named && b.token == t {
			return b.resource, true
		}
	}
	return "", false
}

// WithoutDefault returns a context that has no default token, since it carries those of
// two locks, of the outer and the inner resource: whichever was the default, a table that
// names no resource might take the other lock's. Each of the two tokens stays that of its
// resource. A write that needs the default one is refused, and names both.
func WithoutDefault(ctx context.Context, outer, inner string) context.Context {
	return bind(ctx, binding{between: []string{outer, inner}})
}

// Ambiguous returns the resources of the locks for which ctx has no default token; see
// [WithoutDefault].
func Ambiguous(ctx context.Context) (outer, inner string, ok bool) {
	b, _ := ctx.Value(key).(*binding)
	for ; b != nil; b = b.outer {
		if !b.named && b.resource == "" {
			if b.between == nil {
				return "", "", false
			}
			return b.between[0], b.between[1], true
		}
	}
	return "", "", false
}

func bind(ctx context.Context, b binding) context.Context {
	b.outer, _ = ctx.Value(key).(*binding)
	return context.WithValue(ctx, key, &b)
}

func find(ctx context.Context, resource string, named bool) (Token, bool) {
	b, _ := ctx.Value(key).(*binding)
	for ; b != nil; b = b.outer {
		if b.named == named && b.resource == resource {
			return b.token, b.between == nil
		}
	}
	return 0, false
}
