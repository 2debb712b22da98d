package gate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/reach"
)

// savedCatalog answers the reading of the catalog with a document.
type savedCatalog string

func (s savedCatalog) Query(context.Context, string, ...string) ([][]string, error) {
	return [][]string{{"1", "1", string(s)}}, nil
}

func (savedCatalog) ParameterStatus(string) string { return "UTF8" }

// Each scope has its own closure: of the tables at its levels, and none if no table
// is at a level that only that scope has.
func TestClosuresOfScopes(t *testing.T) {
	tables := []Table{
		{Table: check.Table{Schema: "public", Name: "orders", Mode: check.Strict}, Level: Report, HasWall: true},
		{Table: check.Table{Schema: "public", Name: "events", Mode: check.Strict}},
	}
	found, err := reach.Read(t.Context(), savedCatalog(`{"Held": [[0, 1], [1, 2]], "Relations": [
		{"OID": 1, "Schema": "public", "Name": "orders", "IsTable": true}, {"OID": 2, "Schema": "public", "Name": "events", "IsTable": true},
		{"OID": 3, "Schema": "public", "Name": "recent_orders"}, {"OID": 4, "Schema": "public", "Name": "recent_events"}], "Views": [[1, 3], [2, 4]]}`), ReachTables(tables))
	require.NoError(t, err)
	closures := ClosuresOf(tables, found, nil)
	name := func(name string) check.Name { return check.Name{Schema: "public", Name: name} }
	require.Equal(t, []check.Name{name("recent_events")}, closures[EnforcedTables].Views)
	require.Equal(t, []check.Name{name("recent_orders"), name("recent_events")}, closures[WatchedTables].Views)
	require.Equal(t, check.Closure{}, closures[AllTables])
	p, err := NewProtection(tables, closures, 1<<20)
	require.NoError(t, err)
	require.NoError(t, p.enforced.Plan(`DELETE FROM recent_orders`).Refusal())
	require.ErrorIs(t, p.Watched.Plan(`DELETE FROM recent_orders`).Refusal(), check.ErrRefused)
}
