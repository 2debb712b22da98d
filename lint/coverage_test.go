package lint

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// What comes of a guarded statement is counted once for each table that it writes.
func TestCoverageCounts(t *testing.T) {
	defer shownCoverage.Store(shownCoverage.Swap(asText))
	orders, payments := &rewrite.Table{Schema: "public", Name: "orders"}, &rewrite.Table{Schema: "app", Name: "payments"}
	tests := map[string]struct {
		err    error
		writes []rewrite.Write
		want   string
	}{
		"accepted":         {nil, []rewrite.Write{{Table: orders, Kind: "UPDATE"}}, "1 of 1; UPDATE 1 accepted"},
		"in part":          {&driver.PartialError{Applied: 1, Stale: 1}, []rewrite.Write{{Table: orders, Kind: "UPDATE"}}, "1 of 1; UPDATE 1 accepted"},
		"stale":            {&tokenctx.StaleError{}, []rewrite.Write{{Table: orders, Kind: "DELETE"}}, "0 of 1; DELETE 1 stale"},
		"replay":           {fmt.Errorf("wrapped: %w", &tokenctx.ReplayError{}), []rewrite.Write{{Table: orders, Kind: "UPDATE"}}, "0 of 1; UPDATE 1 replay"},
		"failed":           {errors.New("deadlock detected"), []rewrite.Write{{Table: orders, Kind: "UPDATE"}}, "0 of 1; UPDATE 1 failed"},
		"refused by wall":  {check.Refuse(rewrite.WallRefused, "an event tells of it"), []rewrite.Write{{Table: orders, Kind: "UPDATE"}}, ""},
		"a read":           {nil, nil, ""},
		"one table, twice": {nil, []rewrite.Write{{Table: orders, Kind: "UPDATE"}, {Table: orders, Kind: "INSERT"}}, "1 of 1; UPDATE 1 accepted"},
		"two tables": {nil, []rewrite.Write{{Table: orders, Kind: "UPDATE"}, {Table: payments, Kind: "INSERT"}},
			"2 of 2; INSERT 1 accepted; UPDATE 1 accepted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCoverage()
			c.observer().After(t.Context(), driver.Operation{SQL: "SELECT 1", Writes: tt.writes, Location: "/repo/a.go:1"}, tt.err)
			shown := c.format(asText)
			var got []string
			if _, rest, ok := strings.Cut(shown, "fencerow coverage: "); ok && tt.want != "" {
				count, _, _ := strings.Cut(rest, " protected")
				got = append(got, count)
			}
			for line := range strings.Lines(shown) {
				if _, counts, ok := strings.Cut(line, "  /repo/a.go:1: "); ok {
					got = append(got, strings.TrimSpace(counts))
				}
			}
			require.Equal(t, tt.want, strings.Join(got, "; "), shown)
		})
	}
}

// Bulk statements of many lengths are one, and no rune is cut in two.
func TestCoverageShortens(t *testing.T) {
	defer shownCoverage.Store(shownCoverage.Swap(asText))
	c := newCoverage()
	for n := range 3 {
		sql := `INSERT INTO größen_1 VALUES (` + strings.Repeat("ö, ", 100+n) + `$1)`
		c.countSent(t.Context(),
			driver.Operation{SQL: sql, Writes: []rewrite.Write{{Table: &rewrite.Table{Schema: "public", Name: "größen_1"}, Kind: "INSERT"}}}, nil)
	}
	shown := c.format(asText)
	require.Contains(t, shown, "  unknown place: INSERT 3 accepted\n")
	require.Contains(t, shown, " ...\n")
	require.True(t, utf8.ValidString(shown), "%q", shown)
}
