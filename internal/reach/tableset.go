package reach

import "math/bits"

// tableSet is a set of protected tables, by their place among the given ones: a
// bit for each. Nil is empty, and can't be added to.
type tableSet []uint64

func newTableSet(tables int) tableSet { return make(tableSet, (tables+63)/64) }

func (s tableSet) put(i int) { s[i/64] |= 1 << (i % 64) }

// add puts what is in more into the set, and reports whether that was new.
func (s tableSet) add(more tableSet) (grown bool) {
	for i, word := range more {
		grown = grown || word&^s[i] != 0
		s[i] |= word
	}
	return grown
}

// next returns the first table from a place on, -1 if there is none.
func (s tableSet) next(from int) int {
	for i := from / 64; i < len(s); i++ {
		word := s[i]
		if i == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if word != 0 {
			return i*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// isEmpty reports whether no table is in the set.
func (s tableSet) isEmpty() bool { return s.next(0) < 0 }

// all goes through the tables in order.
func (s tableSet) all(yield func(i int) bool) {
	for i := s.next(0); i >= 0; i = s.next(i + 1) {
		if !yield(i) {
			return
		}
	}
}
