package rewrite

import (
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// What a word of a text can be.
const (
	hitWord    = 1 << iota // it could reach a protected table
	systemWord             // it may be a catalog
	writeWord              // it may write one
	ownWord                // a relation of the schema fencing has the name
	callWord               // a function of the schema fencing that changes something has it, or one that may call it
)

// wordTable tells the words that matter from the thousands that don't. Nearly
// every word of a text is looked up in vain, so a bit of its hash says that
// first.
type wordTable struct {
	kinds map[string]int
	bits  []uint64 // by the hashes of all words
	mask  uint64   // of an index of bits
}

// What the words begin with that matter whatever follows.
const (
	systemPrefix = "pg_"
	dblinkPrefix = "dblink"
)

// Of the words that don't matter one in 32 is looked up whole, at the most.
const (
	bitsPerWord = 32
	leastBits   = 1 << 15
)

// newWordTable adds the words of SQL that matter to those of a policy: listed are
// names by which it reaches a protected table, relations those of the schema fencing,
// and calls those of functions that may reach that.
func newWordTable(listed, relations, calls map[string]bool) wordTable {
	t := wordTable{kinds: make(map[string]int, len(listed)+len(sqlFunctions)+len(quickWrites))}
	for word := range quickWrites {
		t.kinds[word] = writeWord
	}
	t.kinds["information_schema"] = systemWord
	for word := range quickSystem {
		t.kinds[word] = 0
	}
	for word := range relations {
		t.kinds[word] |= ownWord
	}
	for word := range calls {
		t.kinds[word] |= callWord
	}
	for word := range sqlFunctions {
		t.kinds[word] = hitWord
	}
	for word := range listed {
		t.kinds[word] = hitWord
	}
	size := leastBits / 64
	for 64*size < bitsPerWord*len(t.kinds) {
		size *= 2
	}
	t.bits, t.mask = make([]uint64, size), uint64(size-1)
	for word := range t.kinds {
		t.note(word)
	}
	return t
}

// note sets the bit of a word's hash.
func (t *wordTable) note(word string) {
	hash := hashOf(word)
	t.bits[hash>>6&t.mask] |= 1 << (hash & 63)
}

// may reports whether a word of that hash may be in the table.
func (t *wordTable) may(hash uint64) bool {
	return t.bits[hash>>6&t.mask]>>(hash&63)&1 != 0
}

// word looks a word up, in whatever case it is written.
func (t *wordTable) word(word string) int {
	var folded [sqltext.MaxName]byte
	lowered := folded[:copy(folded[:], word)]
	for i, c := range lowered {
		if c >= 'A' && c <= 'Z' {
			lowered[i] = c + 'a' - 'A'
		}
	}
	kind, ok := t.kinds[string(lowered)]
	switch {
	case len(word) > sqltext.MaxName:
		return hitWord
	case ok:
		return kind
	case strings.HasPrefix(string(lowered), dblinkPrefix):
		return hitWord
	case strings.HasPrefix(string(lowered), systemPrefix):
		return systemWord
	}
	return 0
}
