package sqledit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// Text is a text with edits that are to be made in it.
type Text struct {
	SQL    string
	Tokens []parser.Token // of the text, without comments
	Edits  []Edit
	Edited string // with the edits, once they have been made

	pieces map[string][]parser.Token // the tokens of edits
}

// New returns a text without edits. Its tokens have no comments.
func New(sql string, tokens []parser.Token) Text {
	return Text{SQL: sql, Tokens: tokens, pieces: make(map[string][]parser.Token)}
}

// Edit is a text that takes the place of what stands from one offset to another.
type Edit struct {
	At, End int
	Text    string
}

// EndBefore returns where the token before the given one ends: what is inserted
// there stands before any comment in between.
func (t *Text) EndBefore(token int) int { return t.Tokens[token-1].End }

// Insert notes that a text is to be put in at an offset.
func (t *Text) Insert(at int, text string) { t.Edits = append(t.Edits, Edit{at, at, text}) }

// Replace puts a text in the place of tokens.
func (t *Text) Replace(first, end int, text string) {
	t.Edits = append(t.Edits, Edit{t.Tokens[first].Start, t.EndBefore(end), text})
}

// TokenAt returns the token that begins at a place of the text, -1 if none does.
func (t *Text) TokenAt(offset int) int {
	at, ok := slices.BinarySearchFunc(t.Tokens, offset, func(t parser.Token, offset int) int { return cmp.Compare(t.Start, offset) })
	if !ok {
		return -1
	}
	return at
}

// Apply makes the edits. Those at one place keep their order.
func (t *Text) Apply() string {
	slices.SortStableFunc(t.Edits, func(a, b Edit) int { return cmp.Compare(a.At, b.At) })
	var b strings.Builder
	room := len(t.SQL)
	for _, e := range t.Edits {
		room += len(e.Text) + 2 - (e.End - e.At)
	}
	b.Grow(room)
	last := 0
	for _, e := range t.Edits {
		b.WriteString(t.SQL[last:e.At])
		if e.At > 0 && sqltext.JoinsNext(t.SQL[e.At-1]) && joinsBefore(e.Text) {
			b.WriteByte(' ')
		}
		b.WriteString(e.Text)
		if e.End < len(t.SQL) && sqltext.JoinsNext(e.Text[len(e.Text)-1]) && joinsBefore(t.SQL[e.End:]) {
			b.WriteByte(' ')
		}
		last = e.End
	}
	b.WriteString(t.SQL[last:])
	t.Edited = b.String()
	return t.Edited
}

// IsTooDeep reports whether the tree of the text with the edits may be deeper than a
// limit. Its tokens are those of the text without them, and those of the edits.
func (t *Text) IsTooDeep(limit int) bool {
	if len(t.Edited) <= limit || sqltext.CountMarks(t.Edited) <= limit {
		return false
	}
	d, edits, until := sqltext.NewDepthCounter(), t.Edits, 0
	for _, token := range t.Tokens {
		for ; len(edits) > 0 && edits[0].At <= token.Start; edits = edits[1:] {
			for _, added := range t.readPiece(edits[0].Text) {
				d.Add(added)
			}
			until = edits[0].End
		}
		if token.Start >= until {
			d.Add(token)
		}
	}
	for _, e := range edits {
		for _, added := range t.readPiece(e.Text) {
			d.Add(added)
		}
	}
	return d.Deepest > limit
}

// readPiece returns the tokens of an edit. Only their kinds count, so those that
// differ in the numbers of placeholders are read once.
func (t *Text) readPiece(text string) []parser.Token {
	key := make([]byte, 0, 128)
	for i := range len(text) {
		if !sqltext.IsDigit(text[i]) || i == 0 || text[i-1] != '$' && !sqltext.IsDigit(text[i-1]) {
			key = append(key, text[i])
		}
		if text[i] == '$' {
			key = append(key, '1')
		}
	}
	tokens, ok := t.pieces[string(key)]
	if !ok {
		tokens, _ = parser.Scan(string(key))
		t.pieces[string(key)] = tokens
	}
	return tokens
}

// joinsBefore reports whether a text would go on with the word before it: "$1"
// before "WHERE" is no placeholder to the server, though it is to the parser.
func joinsBefore(text string) bool {
	return text[0] == '\'' || text[0] == '"' || sqltext.JoinsNext(text[0])
}
