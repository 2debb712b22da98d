package rewrite

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
)

// clauses says where the clauses of one statement stand, as indexes of tokens.
// They are taken from the tokens, since the tree gives no ends.
type clauses struct {
	first  int // the target's name
	setEnd int // what ends the SET list, or the source of an INSERT
	where  int // WHERE, -1 if there is none
	end    int // RETURNING, or what ends the statement
	source int // VALUES or SELECT of an INSERT
	rest   int // what ends the source of an INSERT
	action int // SET of ON CONFLICT DO UPDATE, -1 if there is none
}

// clauses finds the clauses of a write by its key words outside brackets.
func (f *fixer) clauses(n *node) (clauses, bool) {
	rel := n.get("relation").offset()
	first := slices.IndexFunc(f.tokens, func(t parser.Token) bool { return t.Start == rel })
	if first < 0 {
		return clauses{}, false
	}
	c := clauses{first: first, where: -1, source: -1, action: -1}
	from := -1
	if n.kind() == "UpdateStmt" && len(n.list("fromClause")) > 0 {
		from = firstOffset(n.get("fromClause"))
	}
	fromToken, conflict, depth := -1, -1, 0
	i := first
	for ; i < len(f.tokens) && depth >= 0; i++ {
		switch kind := f.tokens[i].Kind; {
		case kind == parser.LPAREN || kind == parser.LBRACK:
			depth++
		case kind == parser.RPAREN || kind == parser.RBRACK:
			depth--
		case depth > 0 || f.is(i-1, parser.PERIOD): // a key word behind a dot is a name
		case kind == parser.SEMICOLON:
			depth = -1
		case kind == parser.FROM && f.tokens[i].Start < from:
			fromToken = i // the last one before FROM's first item
		case kind == parser.ON && n.kind() == "InsertStmt" && f.is(i+1, parser.CONFLICT):
			conflict = i
		case kind == parser.WHERE && (n.kind() != "InsertStmt" || c.action >= 0):
			c.where = i
		case kind == parser.SET && conflict >= 0 && c.action < 0:
			c.action = i
		case (kind == parser.VALUES || kind == parser.SELECT) && c.source < 0:
			c.source = i
		case kind == parser.RETURNING:
			depth = -1
		}
		if depth < 0 {
			break
		}
	}
	c.end = i
	c.setEnd = c.end
	for _, boundary := range []int{fromToken, c.where} {
		if boundary >= 0 {
			c.setEnd = min(c.setEnd, boundary)
		}
	}
	c.rest = c.end
	if conflict >= 0 {
		c.source, c.rest = min(c.source, conflict), conflict
	}
	return c, true
}

func (f *fixer) is(i int, kind parser.TokenKind) bool {
	return i < len(f.tokens) && f.tokens[i].Kind == kind
}

// closing returns the token that closes the bracket at the given one.
func (f *fixer) closing(open int) int {
	depth := 0
	for i := open; i < len(f.tokens); i++ {
		switch f.tokens[i].Kind {
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

// thens returns the THEN of each action of a MERGE.
func (f *fixer) thens(n *node) []int { return f.actionWords(n, parser.THEN) }

// ands returns what stands behind WHEN MATCHED or WHEN NOT MATCHED of each action of
// a MERGE: AND, if it has a condition.
func (f *fixer) ands(n *node) []int {
	out := f.actionWords(n, parser.WHEN)
	for i := range out {
		for out[i]++; f.is(out[i], parser.NOT) || f.is(out[i], parser.MATCHED); out[i]++ {
		}
	}
	return out
}

// actionWords returns a key word of each action of a MERGE.
func (f *fixer) actionWords(n *node, word parser.TokenKind) []int {
	rel := n.get("relation").offset()
	first := slices.IndexFunc(f.tokens, func(t parser.Token) bool { return t.Start == rel })
	var out []int
	depth, cases := 0, 0
	for i := max(first, 1); i < len(f.tokens) && depth >= 0; i++ {
		switch kind := f.tokens[i].Kind; {
		case kind == parser.LPAREN || kind == parser.LBRACK:
			depth++
		case kind == parser.RPAREN || kind == parser.RBRACK:
			depth--
		case depth > 0 || f.is(i-1, parser.PERIOD):
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

// items returns where the items of a list begin and end, as tokens: it is split
// at the commas outside brackets.
func (f *fixer) items(first, end int) (out [][2]int) {
	depth, start := 0, first
	for i := first; i < end; i++ {
		switch f.tokens[i].Kind {
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

// listEnd returns what ends the list of a SELECT that is an INSERT's source.
func (f *fixer) listEnd(source *node, c clauses) int {
	from, at := source.get("fromClause"), -1
	if from != nil {
		at = firstOffset(from)
	}
	depth, last := 0, c.rest
	for i := c.source; i < c.rest; i++ {
		switch kind := f.tokens[i].Kind; {
		case kind == parser.LPAREN || kind == parser.LBRACK:
			depth++
		case kind == parser.RPAREN || kind == parser.RBRACK:
			depth--
		case depth > 0:
		case from == nil && slices.Contains(listEnds, kind) && !f.is(i-1, parser.WITHIN):
			return i
		case kind == parser.FROM && f.tokens[i].Start < at:
			last = i // the last one before FROM's first item: IS DISTINCT FROM has one too
		}
	}
	return last
}
