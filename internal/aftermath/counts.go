package aftermath

import (
	"reflect"
	"slices"

	"github.com/fencerow/fencerow/internal/check"
)

// Unknown stands for a number of rows that isn't known.
const Unknown = -1

// Wrote returns the number of rows that each part of a statement wrote, by the count of
// the whole and the columns of its first row that count parts.
func Wrote[Value any](parts []check.Part, n int64, first []Value, counts check.Counts) []int64 {
	wrote := make([]int64, len(parts))
	for i := range parts {
		switch {
		case parts[i].IsMain:
			wrote[i] = n
		case parts[i].IsFeed && n == 0:
			wrote[i] = 0
		default:
			wrote[i] = Unknown
		}
	}
	if len(first) < counts.Hidden() {
		return wrote
	}
	for i, part := range counts.Columns {
		if count, ok := any(first[len(first)-counts.Hidden()+i]).(int64); ok {
			wrote[part] = count
		}
	}
	return wrote
}

// MeantBy returns how many rows a part found, by its index, 0 if that isn't known.
func MeantBy[Value any](part int, first []Value, counts check.Counts) (n int64) {
	if i := slices.Index(counts.Meant, part); i >= 0 && len(first) >= counts.Hidden() {
		n, _ = any(first[len(first)-len(counts.Meant)+i]).(int64)
	}
	return n
}

// MeantByMain returns how many rows the statement's own write found, 0 if that isn't
// known.
func MeantByMain[Value any](parts []check.Part, first []Value, counts check.Counts) int64 {
	for i, part := range parts {
		if part.IsMain {
			return MeantBy(i, first, counts)
		}
	}
	return 0
}

// LeastRows is how many rows of a statement tell that its own write left none out: one,
// unless it has several rows to write. length returns that of the array bound to a
// placeholder.
func LeastRows(parts []check.Part, length func(placeholder int64) (int64, bool)) int {
	for _, part := range parts {
		if part.IsMain {
			return int(max(1, part.Expects(length)))
		}
	}
	return 1
}

// Length returns how many rows unnest makes of an argument, if it is an array for which
// that is known.
func Length(argument any) (int64, bool) {
	switch array := argument.(type) {
	case []int64:
		return int64(len(array)), true
	case []string:
		return int64(len(array)), true
	case nil, []byte:
		return 0, false
	}
	array := reflect.ValueOf(argument)
	if array.Kind() != reflect.Slice {
		return 0, false
	}
	if kind := array.Type().Elem().Kind(); kind == reflect.Slice && array.Type().Elem() != reflect.TypeFor[[]byte]() || kind == reflect.Array || kind == reflect.Interface {
		return 0, false // unnest would take its items apart
	}
	return int64(array.Len()), true
}
