package gate

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// leased protects the table orders in lease mode.
func leased(t *testing.T) *Protection {
	t.Helper()
	tables := []Table{{Table: check.Table{Name: "orders", Mode: check.Lease}}}
	p, err := NewProtection(tables, ClosuresOf(tables, nil, nil), 16<<20)
	require.NoError(t, err)
	return p
}

// Connections that meet an unseen text at the same time wait for one of them to
// check it, and go by the same plan.
func TestConcurrentMisses(t *testing.T) {
	v := leased(t).View(nil)
	for i := range 20 {
		text := fmt.Sprintf(`INSERT INTO orders (id, last_token) VALUES (%d, $1)%s`, i, strings.Repeat(", (1, $1)", 2000))
		plans := make([]*check.Plan, 8)
		var ready, group sync.WaitGroup
		ready.Add(len(plans))
		for j := range plans {
			group.Go(func() {
				ready.Done()
				ready.Wait()
				plans[j], _ = v.Plan(t.Context(), text, EnforcedTables)
			})
		}
		group.Wait()
		for _, plan := range plans {
			require.Same(t, plans[0], plan)
		}
		again, known := v.Plan(t.Context(), text, EnforcedTables)
		require.True(t, known)
		require.Same(t, plans[0], again)
	}
}

// Texts above a size are checked each time, and not kept.
func TestLongTextsAreNotKept(t *testing.T) {
	v := leased(t).View(nil)
	text := `SELECT '` + strings.Repeat("x", keptText) + `'`
	first, _ := v.Plan(t.Context(), text, EnforcedTables)
	again, known := v.Plan(t.Context(), text, EnforcedTables)
	require.False(t, known)
	require.NotSame(t, first, again)
	require.Zero(t, v.plans.EstimatedSize())
}
