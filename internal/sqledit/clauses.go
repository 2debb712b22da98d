package sqledit

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
)

// Clauses says where the clauses of one statement stand, as indexes of tokens.
// They are taken from the tokens, since the tree gives no ends.
type Clauses struct {
	Target    int // the target's name
	SetEnd    int // what ends the SET list, or the source of an INSERT
	Where     int // WHERE, -1 if there is none
	End       int // RETURNING, or what ends the statement
	Source    int // VALUES or SELECT of an INSERT
	SourceEnd int // what ends the source of an INSERT
	Action    int // SET of ON CONFLICT DO UPDATE, -1 if there is none
}

// Write is what is known of a write whose clauses are looked for.
type Write struct {
	Target   int // where its target stands
	From     int // where the first item of an UPDATE's FROM stands, -1 if there is none
	IsInsert bool
}

// FindClauses finds the clauses of a write by its key words outside brackets.
func (t *Text) FindClauses(w Write) (Clauses, bool) {
	first := t.TokenAt(w.Target)
	if first < 0 {
		return Clauses{}, false
	}
	c := Clauses{Target: first, Where: -1, Source: -1, Action: -1}
	fromToken, conflict, depth := -1, -1, 0
	i := first
	for ; i < len(t.Tokens) && depth >= 0; i++ {
		switch kind := t.Tokens[i].Kind; {
		case kind == parser.LPAREN || kind == parser.LBRACK:
			depth++
		case kind == parser.RPAREN || kind == parser.RBRACK:
			depth--
		case depth > 0 || t.IsAt(i-1, parser.PERIOD): // a key word behind a dot is a name
		case kind == parser.SEMICOLON:
			depth = -1
		case kind == parser.FROM && t.Tokens[i].Start < w.From:
			fromToken = i // the last one before FROM's first item
		case kind == parser.ON && w.IsInsert && t.IsAt(i+1, parser.CONFLICT):
			conflict = i
		case kind == parser.WHERE && (!w.IsInsert || c.Action >= 0):
			c.Where = i
		case kind == parser.SET && conflict >= 0 && c.Action < 0:
			c.Action = i
		case (kind == parser.VALUES || kind == parser.SELECT) && c.Source < 0:
			c.Source = i
		case kind == parser.RETURNING:
			depth = -1
		}
		if depth < 0 {
			break
		}
	}
	c.End = i
	c.SetEnd = c.End
	for _, boundary := range []int{fromToken, c.Where} {
		if boundary >= 0 {
			c.SetEnd = min(c.SetEnd, boundary)
		}
	}
	c.SourceEnd = c.End
	if conflict >= 0 {
		c.Source, c.SourceEnd = min(c.Source, conflict), conflict
	}
	return c, true
}

// IsAt reports whether the token of an index is of a kind.
func (t *Text) IsAt(i int, kind parser.TokenKind) bool {
	return i < len(t.Tokens) && t.Tokens[i].Kind == kind
}

// FindClosing returns the token that closes the bracket at the given one.
func (t *Text) FindClosing(open int) int {
	depth := 0
	for i := open; i < len(t.Tokens); i++ {
		switch t.Tokens[i].Kind {
		case parser.LPAREN:
			depth++
		case parser.RPAREN:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// ActionConditions returns what stands behind WHEN MATCHED or WHEN NOT MATCHED of each action of
// the MERGE whose target is given: AND, if it has a condition.
func (t *Text) ActionConditions(target int) []int {
	out := t.ActionWords(target, parser.WHEN)
	for i := range out {
		for out[i]++; t.IsAt(out[i], parser.NOT) || t.IsAt(out[i], parser.MATCHED); out[i]++ {
		}
	}
	return out
}

// ActionWords returns a key word of each action of the MERGE whose target is given.
func (t *Text) ActionWords(target int, word parser.TokenKind) []int {
	first := t.TokenAt(target)
	var out []int
	depth, cases := 0, 0
	for i := max(first, 1); i < len(t.Tokens) && depth >= 0; i++ {
		switch kind := t.Tokens[i].Kind; {
		case kind == parser.LPAREN || kind == parser.LBRACK:
			depth++
		case kind == parser.RPAREN || kind == parser.RBRACK:
			depth--
		case depth > 0 || t.IsAt(i-1, parser.PERIOD):
		case kind == parser.CASE:
			cases++
		case kind == parser.END:
			cases--
		case kind == parser.SEMICOLON:
			depth = -1
		case kind == word && cases == 0:
			out = append(out, i)
		}
	}
	return out
}

// SplitList returns where the items of a list begin and end, as tokens: it is split
// at the commas outside brackets.
func (t *Text) SplitList(first, end int) (out [][2]int) {
	depth, start := 0, first
	for i := first; i < end; i++ {
		switch t.Tokens[i].Kind {
		case parser.LPAREN, parser.LBRACK:
			depth++
		case parser.RPAREN, parser.RBRACK:
			depth--
		case parser.COMMA:
			if depth == 0 {
				out, start = append(out, [2]int{start, i}), i+1
			}
		}
	}
	return append(out, [2]int{start, end})
}

// listEnds are the key words that end the list of a SELECT without FROM.
var listEnds = []parser.TokenKind{
	parser.WHERE, parser.GROUP, parser.HAVING, parser.WINDOW, parser.ORDER,
	parser.LIMIT, parser.OFFSET, parser.FETCH, parser.FOR,
}

// FindListEnd returns what ends the list of a SELECT that is an INSERT's source. The first
// item of its FROM is given by where it stands, -1 if it has no FROM.
func (t *Text) FindListEnd(c Clauses, from int) int {
	depth, last := 0, c.SourceEnd
	for i := c.Source; i < c.SourceEnd; i++ {
		switch kind := t.Tokens[i].Kind; {
		case kind == parser.LPAREN || kind == parser.LBRACK:
			depth++
		case kind == parser.RPAREN || kind == parser.RBRACK:
			depth--
		case depth > 0:
		case from < 0 && slices.Contains(listEnds, kind) && !t.IsAt(i-1, parser.WITHIN):
			return i
		case kind == parser.FROM && t.Tokens[i].Start < from:
			last = i // the last one before FROM's first item: IS DISTINCT FROM has one too
		}
	}
	return last
}
