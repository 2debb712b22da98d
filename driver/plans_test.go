package driver

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// Connections that meet an unseen text at the same time wait for one of them to
// check it, and go by the same plan.
func TestConcurrentMisses(t *testing.T) {
	connector, err := Wrap(&fake{quiet: true}, Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	v := connector.current.Load().view(nil)
	for i := range 20 {
		text := fmt.Sprintf(`INSERT INTO orders (id, last_token) VALUES (%d, $1)%s`, i, strings.Repeat(", (1, $1)", 2000))
		plans := make([]*rewrite.Plan, 8)
		var ready, group sync.WaitGroup
		ready.Add(len(plans))
		for j := range plans {
			group.Go(func() {
				ready.Done()
				ready.Wait()
				plans[j], _ = v.plan(t.Context(), text, enforcedTables)
			})
		}
		group.Wait()
		for _, plan := range plans {
			require.Same(t, plans[0], plan)
		}
		again, known := v.plan(t.Context(), text, enforcedTables)
		require.True(t, known)
		require.Same(t, plans[0], again)
	}
}

// Texts above a size are checked each time, and not kept.
func TestLongTextsAreNotKept(t *testing.T) {
	connector, err := Wrap(&fake{quiet: true}, Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	v := connector.current.Load().view(nil)
	text := `SELECT '` + strings.Repeat("x", keptText) + `'`
	first, _ := v.plan(t.Context(), text, enforcedTables)
	again, known := v.plan(t.Context(), text, enforcedTables)
	require.False(t, known)
	require.NotSame(t, first, again)
	require.Zero(t, v.plans.EstimatedSize())
}
