package sqltext

import (
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
)

// maxCopies bounds the copies of tokens that a text's tree may have. The source of
// "(a, b) = (x, y)" stands in it once for each column, with all that is in it.
const maxCopies = 1 << 18

// copiesColumns reports whether the tree of the text would have too many copies of the
// sources of its SET lists.
func (l *Text) copiesColumns() bool {
	return MaySetColumns(l.SQL) && CopiesColumns(l.Significant()) // a text without tokens makes no tree
}

// CopiesColumns is copiesColumns for the tokens of a text, which has no comments among
// them.
func CopiesColumns(tokens []parser.Token) bool {
	open := []openBracket{{items: 1, times: 1, columns: 1}}
	repeated := 0
	for i, t := range tokens {
		top := &open[len(open)-1]
		if repeated += top.times*top.columns - 1; repeated > maxCopies {
			return true
		}
		var before, after parser.TokenKind
		if i > 0 {
			before = tokens[i-1].Kind
		}
		if i+1 < len(tokens) {
			after = tokens[i+1].Kind
		}
		switch t.Kind {
		case parser.LPAREN, parser.LBRACK: // ( [
			list := t.Kind == parser.LPAREN && (before == parser.SET || before == parser.COMMA)
			open = append(open, openBracket{items: 1, times: min(top.times*top.columns, maxCopies), columns: 1, list: list})
		case parser.COMMA: // ,
			top.items++
			top.columns = 1
		case parser.WHERE, parser.RETURNING:
			if before != parser.PERIOD { // else it is a name
				top.columns = 1
			}
		case parser.RPAREN, parser.RBRACK: // ) ]
			if len(open) == 1 {
				return false // not SQL
			}
			open = open[:len(open)-1]
			if top.list && after == parser.EQUAL { // =
				open[len(open)-1].columns = top.items
			}
		}
	}
	return false
}

// openBracket is an open bracket: how often what is in it stands in the tree.
type openBracket struct {
	items   int
	times   int
	columns int  // those of the SET list whose source goes on, 1 outside of one
	list    bool // it may be the list of a SET clause
}

// MaySetColumns reports without its tokens whether a text may set a list of columns: "SET (a, b) =", or
// ", (a, b) =". Comments may stand anywhere, so with them any bracket before "="
// is taken for one.
func MaySetColumns(sql string) bool {
	comments := strings.Contains(sql, "--") || strings.Contains(sql, "/*")
	looked := 0
	for i := range len(sql) {
		if sql[i] != ')' {
			continue
		}
		switch rest := strings.TrimLeft(sql[i+1:], Blanks); {
		case rest == "" || rest[0] != '=' && !(comments && (rest[0] == '/' || rest[0] == '-')):
			continue
		case comments:
			return true
		}
		open, comma := opening(sql[:i])
		if looked += i - open; open < 0 || looked > 8*len(sql) {
			return true
		}
		before := strings.TrimRight(sql[:open], Blanks)
		if comma && (strings.HasSuffix(before, ",") || len(before) >= 3 && strings.EqualFold(before[len(before)-3:], "set")) {
			return true
		}
	}
	return false
}

// opening returns where the bracket is opened that closes behind a text, and
// whether there is a comma inside. It returns -1 where that can't be told without
// reading literals and quoted names.
func opening(sql string) (open int, comma bool) {
	depth := 0
	for i := len(sql) - 1; i >= 0; i-- {
		switch sql[i] {
		case '\'', '"', '$':
			return -1, false
		case ',':
			comma = true
		case ')':
			depth++
		case '(':
			if depth--; depth < 0 {
				return i, comma
			}
		}
	}
	return -1, false
}
