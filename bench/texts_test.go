package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// kind is what a text is to fencerow, where orders is protected.
type kind string

const (
	unprotected kind = "unprotected" // names nothing that is protected
	guarded     kind = "guarded"     // writes orders under its token
	refused     kind = "refused"     // writes it without
)

// size is how long a text is, within a few bytes.
type size struct {
	name  string
	bytes int
}

var small, middle, large = size{"100B", 100}, size{"1KB", 1 << 10}, size{"10KB", 10 << 10}

// number is where a text takes one that makes it another.
const number = "00000000"

// textArgs are the arguments of all of them.
var textArgs = []any{"paid", int64(7), int64(17)}

var execTexts = map[kind]string{
	unprotected: `UPDATE notes SET body = $1, kind = $2 WHERE id = $3 AND r > '` + number + `'`,
	guarded:     `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token < $2 AND r > '` + number + `'`,
	refused:     `UPDATE orders SET status = $1, kind = $2 WHERE id = $3 AND r > '` + number + `'`,
}

// execText is a statement that changes a row, with as many conditions as fit.
func execText(k kind, s size) string { return filled(execTexts[k], s.bytes) }

// queryText is a statement that returns one.
func queryText(k kind, s size) string {
	if k == unprotected {
		return filled(`SELECT id, body FROM notes WHERE body <> $1 AND kind = $2 AND id = $3 AND r > '`+number+`'`, s.bytes)
	}
	return filled(execTexts[k], s.bytes-len(returning)) + returning
}

const returning = " RETURNING id"

// filled has conditions added up to a length.
func filled(text string, length int) string {
	var b strings.Builder
	b.WriteString(text)
	for i := 0; ; i++ {
		condition := fmt.Sprintf(" AND c%d <> %d", i, i)
		if i%3 == 1 {
			condition = fmt.Sprintf(" AND name%d <> 'value %d'", i, i)
		}
		if b.Len()+len(condition) > length {
			return b.String()
		}
		b.WriteString(condition)
	}
}

// unseen yields texts that have not been there before, at next to no cost: one
// text whose number is changed in its place. So each of them is only good until
// the next.
type unseen struct {
	text []byte
	at   int // where the number ends
	n    uint64
}

func newUnseen(text string) *unseen {
	return &unseen{text: []byte(text), at: strings.Index(text, number) + len(number)}
}

func (u *unseen) next() string {
	u.n++
	for i, n := u.at-1, u.n; n > 0; i, n = i-1, n/10 {
		u.text[i] = '0' + byte(n%10)
	}
	// a copy would cost more than some of what is measured; the driver makes its own
	return unsafe.String(&u.text[0], len(u.text))
}

// numbered are texts that differ by their number, each in memory of its own.
func numbered(text string, n int) []string {
	out := make([]string, n)
	for i := range out {
		digits := strconv.Itoa(i)
		out[i] = strings.Replace(text, number, number[len(digits):]+digits, 1)
	}
	return out
}

func TestUnseen(t *testing.T) {
	text := execText(guarded, small)
	u, all := newUnseen(text), make(map[string]bool)
	for range 1234 {
		all[strings.Clone(u.next())] = true
	}
	require.Len(t, all, 1234)
	last := strings.Replace(text, number, "00001234", 1)
	require.True(t, all[last])
	require.False(t, all[text])
	require.Equal(t, last, numbered(text, 1235)[1234])
}

func TestSizes(t *testing.T) {
	for _, s := range []size{small, middle, large} {
		for k := range execTexts {
			for _, text := range []string{execText(k, s), queryText(k, s)} {
				require.InDelta(t, s.bytes, len(text), 30, text)
				require.Equal(t, 1, strings.Count(text, number))
			}
		}
	}
}
