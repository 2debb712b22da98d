package tokenctx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

func ExampleWithObserver() {
	ctx, cancel := context.WithCancelCause(tokenctx.With(context.Background(), 7))
	ctx = tokenctx.WithObserver(ctx, func(_ string, t tokenctx.Token) {
		if t == 7 {
			cancel(tokenctx.ErrStale)
		}
	})
	tokenctx.ReportStale(ctx, "", 7) // as the driver does
	fmt.Println(context.Cause(ctx))
	// Output: stale token
}

func TestObservers(t *testing.T) {
	var heard []string
	hear := func(who string) func(string, tokenctx.Token) {
		return func(resource string, token tokenctx.Token) {
			heard = append(heard, fmt.Sprintf("%s: %s %d", who, resource, token))
		}
	}
	tokenctx.ReportStale(t.Context(), "orders", 7)
	outer := tokenctx.WithObserver(t.Context(), hear("outer"))
	inner := tokenctx.WithObserver(outer, hear("inner"))
	derived, cancel := context.WithCancel(inner)
	defer cancel()
	tokenctx.ReportStale(outer, "", 8)
	tokenctx.ReportStale(derived, "orders", 9)
	require.Equal(t, []string{"outer:  8", "inner: orders 9", "outer: orders 9"}, heard)
}
