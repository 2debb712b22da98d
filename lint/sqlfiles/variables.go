package sqlfiles

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
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
	if r.brackets > 0 || i+1 >= len(r.tokens) || r.tokens[i+1].start != t.end {
		return 0
	}
	next := r.tokens[i+1]
	word := r.code[next.start:next.end]
	literal := next.kind == parser.SCONST && word[0] == '\''
	switch {
	case !literal && !next.isName():
		return 0
	case !literal && i+2 < len(r.tokens) && r.code[r.tokens[i+2].start:r.tokens[i+2].end] == ".":
		r.edits = append(r.edits, edit{t.start, r.tokens[i+2].end, ""}) // whatever schema it is
		return 2
	case word[0] == '"' || !queryWords[r.first()]:
		r.edits = append(r.edits, edit{t.start, t.end, ""})
	default:
		r.named(t.start, next.end, strings.Trim(word, "'"))
	}
	return 1
}

// first is the kind of the statement's first token.
func (r *placeholderReader) first() parser.TokenKind {
	for _, t := range r.tokens {
		if !t.isComment() {
			return t.kind
		}
	}
	return parser.NOTOKEN
}
