package wordsearch

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// window is how many bytes of a text are searched for words at once: one more
// than the longest word that is looked up.
const window = sqltext.MaxName + 1

// Search returns the first word of a text that could reach a protected table, or
// else one that may be a catalog if another may write it, or what is wrong with
// its encoding. If there is no such word, it returns the kinds of the words that
// there are.
//
// It finds the bounds of words eight bytes at a time, since a processor can't predict a
// branch for each byte. A scanner of single bytes takes 1.4 times the processor time in
// the check of an unseen text of 1 KB (QuickWayOut in bench), and 2.6 times if it has no
// Bloom filter before its map; none of them allocates. BenchmarkSearch has a plain one.
func (t *Table) Search(text string) (hit string, found Meaning) {
	s := search{table: t, hasEscapes: strings.IndexByte(text, '&') >= 0}
	bytes := unsafe.Slice(unsafe.StringData(text), len(text)) // only read
	for len(bytes) >= window+8 {
		n := s.searchWindow((*[window + 8]byte)(bytes))
		if s.hit != "" {
			return s.hit, s.found
		}
		bytes = bytes[n:]
	}
	// the rest, with blanks behind it, so that eight bytes can be read anywhere
	var rest [2*window + 16]byte
	end := copy(rest[:], bytes)
	for i := end; i < len(rest); i++ {
		rest[i] = ' '
	}
	for at := 0; at < end; {
		n := s.searchWindow((*[window + 8]byte)(rest[at:]))
		if s.hit != "" {
			return s.hit, s.found
		}
		at += n
	}
	switch {
	case s.found&Write != 0 && s.system != "":
		return s.system, s.found
	case s.union&highs != 0 && !utf8.ValidString(text):
		return "invalid UTF-8", s.found
	}
	return "", s.found
}

// search is what has been found in a text so far.
type search struct {
	table      *Table
	hasEscapes bool    // the text may have U&"..." in it
	union      uint64  // of all eight-byte words of the text: a high bit says that it isn't ASCII
	found      Meaning // the kinds of its words
	system     string  // a word that may be a catalog
	hit        string
}

// searchWindow looks up the words that begin in the first bytes of a text, except for a
// word that ends behind them, and returns where to continue.
func (s *search) searchWindow(text *[window + 8]byte) int {
	runs, union := wordBytes(text)
	s.union |= union
	open := window - bits.LeadingZeros64(^runs) // where a word begins that goes on, or may
	if open == 0 {
		s.hit = string(text[:window]) // may be cut to another name
		return 0
	}
	for runs &= 1<<open - 1; runs != 0; {
		start, after := bits.TrailingZeros64(runs), runs+runs&-runs // the sum carries over the first run
		n := bits.TrailingZeros64(after) - start
		runs &= after
		hash, head := hashAt(text, start, n)
		switch begin := uint16(head); {
		case s.table.mayHave(hash) || begin == systemBegin || begin == dblinkBegin || s.hasEscapes && text[start+n] == '&':
			s.lookUpWord(text, start, n)
		case sqltext.IsDigit(byte(begin)):
			s.lookUpBehindDigits(text, start, n)
		default:
			continue
		}
		if s.hit != "" {
			return 0
		}
	}
	return open
}

// lookUpWord looks up a word that may matter.
func (s *search) lookUpWord(text *[window + 8]byte, at, n int) {
	kind := s.table.Lookup(string(text[at : at+n]))
	if s.hasEscapes && text[at+n] == '&' && text[at+n-1]|0x20 == 'u' {
		kind = Hit // may spell another name with escapes
	}
	if kind != 0 {
		s.noteWord(string(text[at:at+n]), kind)
	}
	if sqltext.IsDigit(text[at]) {
		s.lookUpBehindDigits(text, at, n)
	}
}

// lookUpBehindDigits looks up the names in a word that begins with a digit. A number or
// a placeholder may end inside the word, and older servers read a name right behind it.
// It ends with a digit then: only newer servers know 0xA, and they demand a gap. No
// unquoted name begins with a digit, so a name begins where digits end.
func (s *search) lookUpBehindDigits(text *[window + 8]byte, at, n int) {
	for i, end := at+1, at+n; i < end; i++ {
		if !sqltext.IsDigit(text[i]) && sqltext.IsDigit(text[i-1]) {
			if hash, head := hashAt(text, i, end-i); s.table.mayHave(hash) || uint16(head) == systemBegin || uint16(head) == dblinkBegin {
				s.lookUpWord(text, i, end-i)
			}
		}
	}
}

// noteWord notes a word that matters.
func (s *search) noteWord(word string, kind Meaning) {
	s.found |= kind
	if kind&Catalog != 0 {
		s.system = word
	}
	if kind&Hit != 0 {
		s.hit = word
	}
}

// Masks for eight bytes at once.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
	lows  = 0x7f * ones
	fold  = 0x20 * ones // has letters lower case
)

// wordBytes returns a bit for each byte of a window, set if the byte belongs to a word:
// letters, digits, "_" and non-ASCII bytes. "$" does not: names with a "$" are looked up
// by the parts on its sides. It also returns the union of the window's eight-byte words.
func wordBytes(text *[window + 8]byte) (words, union uint64) {
	for i := 0; i < window; i += 16 { // two at a time have the constants loaded once
		a, b := binary.LittleEndian.Uint64(text[i:]), binary.LittleEndian.Uint64(text[i+8:])
		words |= (gatherHighBits(wordBits(a)) | gatherHighBits(wordBits(b))<<8) << i
		union |= a | b
	}
	return words, union
}

// wordBits sets the highest bit of each of eight bytes that belongs to a word.
func wordBits(x uint64) uint64 {
	y := x & lows
	letter := y | fold
	letter = (letter + (0x80-'a')*ones) &^ (letter + (0x80-'z'-1)*ones)
	digit := (y + (0x80-'0')*ones) &^ (y + (0x80-'9'-1)*ones)
	underscore := ^((y ^ '_'*ones) + lows)
	return letter | digit | underscore | x
}

// gatherHighBits makes one byte of the highest bits of eight bytes.
func gatherHighBits(x uint64) uint64 { return x & highs >> 7 * 0x0102040810204080 >> 56 }

// hashAt returns a hash of the first eight of the n bytes at a place of a window
// and of their number, and those eight. It ignores the case of letters. Words that
// differ behind that are told apart when they are looked up whole.
func hashAt(text *[window + 8]byte, at, n int) (hash, head uint64) {
	head = (binary.LittleEndian.Uint64(text[at&(window-1):]) | fold) & firstBytes[n&(window-1)]
	return (head + uint64(n)) * 0x9E3779B97F4A7C15 >> 32, head
}

// firstBytes masks the first n of eight bytes.
var firstBytes = func() (masks [window]uint64) {
	for n := range masks {
		masks[n] = ^uint64(0) >> (64 - 8*min(n, 8))
	}
	return masks
}()

// hashOf is hashAt of a word by itself.
func hashOf(word string) uint64 {
	var padded [window + 8]byte
	hash, _ := hashAt(&padded, 0, copy(padded[:window], word))
	return hash
}

// The first two bytes of each prefix, as hashAt returns them: the first is the lowest.
const (
	systemBegin = 'p' | 'g'<<8
	dblinkBegin = 'd' | 'b'<<8
)
