package sqlfiles

import (
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
)

// queryWords begin the statements that may have a placeholder.
var queryWords = map[parser.TokenKind]bool{
	parser.SELECT: true, parser.INSERT: true, parser.UPDATE: true, parser.DELETE: true,
	parser.MERGE: true, parser.WITH: true, parser.VALUES: true, parser.EXPLAIN: true, parser.LPAREN: true,
}

// variable reads psql's :name, :'name' and :"name", which no other lexer has.
// In the subscripts of an array a colon is the language's own.
func (r *placeholderReader) variable(i int) int {
	t := r.tokens[i]
	if r.brackets > 0 || i+1 >= len(r.tokens) || r.tokens[i+1].Start != t.End {
		return 0
	}
	next := r.tokens[i+1]
	word := r.code[next.Start:next.End]
	literal := next.Kind == parser.SCONST && word[0] == '\''
	switch {
	case !literal && !next.IsName():
		return 0
	case !literal && i+2 < len(r.tokens) && r.code[r.tokens[i+2].Start:r.tokens[i+2].End] == ".":
		r.edits = append(r.edits, edit{t.Start, r.tokens[i+2].End, ""}) // whatever schema it is
		return 2
	case word[0] == '"' || !queryWords[r.first()]:
		r.edits = append(r.edits, edit{t.Start, t.End, ""})
	default:
		r.named(t.Start, next.End, strings.Trim(word, "'"))
	}
	return 1
}

// first is the kind of the statement's first token.
func (r *placeholderReader) first() parser.TokenKind {
	for _, t := range r.tokens {
		if !t.IsComment() {
			return t.Kind
		}
	}
	return parser.NOTOKEN
}
