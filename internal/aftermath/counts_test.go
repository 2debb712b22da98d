package aftermath

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/check"
)

// The hidden columns of the first row count the parts, and come last.
func TestCounts(t *testing.T) {
	parts := []check.Part{{IsFeed: true}, {IsMain: true}, {}}
	counted := check.Counts{Columns: []int{2}, Meant: []int{1}}
	for name, c := range map[string]struct {
		n      int64
		first  []any
		counts check.Counts
		wrote  []int64
		meant  int64
	}{
		"no row":                        {n: 0, wrote: []int64{0, 0, Unknown}},
		"rows of the statement's own":   {n: 3, wrote: []int64{Unknown, 3, Unknown}},
		"counted":                       {n: 3, first: []any{"a value", int64(2), int64(5)}, counts: counted, wrote: []int64{Unknown, 3, 2}, meant: 5},
		"counted, but no row to say so": {n: 0, counts: counted, wrote: []int64{0, 0, Unknown}},
		"counted as null":               {n: 3, first: []any{nil, nil}, counts: counted, wrote: []int64{Unknown, 3, Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.wrote, Wrote(parts, c.n, c.first, c.counts))
			require.Equal(t, c.meant, MeantByMain(parts, c.first, c.counts))
		})
	}
}

// An array counts if unnest makes as many rows of it as it has items.
func TestLength(t *testing.T) {
	for name, c := range map[string]struct {
		argument any
		length   int64
		isKnown  bool
	}{
		"integers":       {[]int64{1, 2}, 2, true},
		"texts":          {[]string{"a"}, 1, true},
		"byte strings":   {[][]byte{{1}, {2}, {3}}, 3, true},
		"booleans":       {[]bool{true}, 1, true},
		"nothing":        {argument: nil},
		"a byte string":  {argument: []byte{1, 2}},
		"a number":       {argument: int64(3)},
		"arrays":         {argument: [][]int64{{1}, {2}}},
		"fixed arrays":   {argument: [][2]int64{{1, 2}}},
		"whatever items": {argument: []any{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			length, isKnown := Length(c.argument)
			require.Equal(t, []any{c.length, c.isKnown}, []any{length, isKnown})
		})
	}
}
