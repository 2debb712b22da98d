package wordsearch

import (
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// Meaning is what a word can do: a set of the constants.
type Meaning uint8

// What a word of a text can be.
const (
	Hit         Meaning = 1 << iota // it could reach a protected table
	Catalog                         // it may be a catalog
	Write                           // it may write one
	OwnRelation                     // a relation of the schema fencing has the name
	OwnCaller                       // a function of the schema fencing that changes something has it, or one that may call it
)

// Table tells the words that matter from the thousands that don't. Nearly
// every word of a text is looked up in vain, so a bit of its hash says that
// first.
type Table struct {
	kinds map[string]Meaning
	bits  []uint64 // by the hashes of all words
	mask  uint64   // of an index of bits
}

// What the words begin with that matter whatever follows.
const (
	systemPrefix = "pg_"
	dblinkPrefix = "dblink"
)

// The table is a Bloom filter of 32 bits for each word: of the words that don't matter
// at most one in 32 is looked up whole.
const (
	bitsPerWord = 32
	minBits     = 1 << 15
)

// New returns a table of words in lower case. The kind of a word may be 0,
// if it has a prefix that matters and doesn't matter itself.
func New(words map[string]Meaning) Table {
	t := Table{kinds: words}
	size := minBits / 64
	for 64*size < bitsPerWord*len(t.kinds) {
		size *= 2
	}
	t.bits, t.mask = make([]uint64, size), uint64(size-1)
	for word := range t.kinds {
		t.addBit(word)
	}
	return t
}

// addBit sets the bit of a word's hash.
func (t *Table) addBit(word string) {
	hash := hashOf(word)
	t.bits[hash>>6&t.mask] |= 1 << (hash & 63)
}

// mayHave reports whether a word with that hash may be in the table.
func (t *Table) mayHave(hash uint64) bool {
	return t.bits[hash>>6&t.mask]>>(hash&63)&1 != 0
}

// Lookup looks a word up, in whatever case it is written.
func (t *Table) Lookup(word string) Meaning {
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
		return Hit
	case ok:
		return kind
	case strings.HasPrefix(string(lowered), dblinkPrefix):
		return Hit
	case strings.HasPrefix(string(lowered), systemPrefix):
		return Catalog
	}
	return 0
}
