package tokenctx

import "context"

// observer is one function that is called with stale tokens. Observers form a chain
// as bindings do.
type observer struct {
	outer   *observer
	observe func(resource string, t Token)
}

type observerKey struct{}

// WithObserver returns a context whose stale tokens are told to observe: the
// holder of a lock learns from the first write that met a newer token that the
// lock is lost, and can end the rest of the work. fencerow's driver tells it
// when it rejects a write, before the write returns, on the same goroutine.
//
// resource is the one that the token was carried for, "" for the default token.
// observe must return soon and not use the database. Observers of outer
// contexts are told too.
func WithObserver(ctx context.Context, observe func(resource string, t Token)) context.Context {
	outer, _ := ctx.Value(observerKey{}).(*observer)
	return context.WithValue(ctx, observerKey{}, &observer{outer: outer, observe: observe})
}

// ReportStale tells the observers of ctx that t, which was carried for the
// resource, or as the default token if that is "", is stale: something that it
// should have written carries a newer token. Drivers call it, and whoever else
// compares tokens.
func ReportStale(ctx context.Context, resource string, t Token) {
	o, _ := ctx.Value(observerKey{}).(*observer)
	for ; o != nil; o = o.outer {
		o.observe(resource, t)
	}
}
