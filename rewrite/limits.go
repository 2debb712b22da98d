package rewrite

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/cstack"
	"github.com/fencerow/fencerow/internal/parser"
)

// maxNesting bounds the depth of the tree a text may make. The parser has no
// guard for its own stack: "1+1+..." of 47 KB overflows it, which ends the
// process with a signal that Go cannot recover from.
//
// A level takes 140 bytes of C stack where a tree is made, and 2,000 where it is
// written as a text again, for a probe. Some C libraries give little of it.
var (
	maxNesting      = nestingFor(cstack.Size(), 256)
	maxProbeNesting = nestingFor(cstack.Size(), 2600)
)

const (
	mostNesting  = 4000
	stackBesides = 64 << 10
	leastStack   = 128 << 10
)

func nestingFor(stackBytes, bytesPerLevel int) int {
	return min(mostNesting, (max(stackBytes, leastStack)-stackBesides)/bytesPerLevel)
}

// maxText bounds the length of a text that has to be parsed, in bytes.
const maxText = 2 << 20

// maxRestarts bounds how often the lexer has to start anew in one run of
// operator characters. It reads the run again for each nested comment and for
// each "+" at its end, which takes hours for a run of a megabyte.
const maxRestarts = 64

// checkText refuses what must not reach the parser.
func checkText(sql string) *Violation {
	l := lexed{sql: sql}
	return l.check(l.tooDeep)
}

// check is checkText. What tells whether the tree may be too deep is given.
func (l *lexed) check(tooDeep func(limit int) bool) *Violation {
	sql := l.sql
	switch {
	case strings.IndexByte(sql, 0) >= 0:
		return &Violation{Rule: BadText, Message: "SQL text contains a NUL byte: the parser would stop there and the server would not; remove it"}
	case !utf8.ValidString(sql):
		return &Violation{Rule: BadText, Message: "SQL text is not valid UTF-8; send it as UTF-8"}
	case len(sql) > maxText:
		return &Violation{Rule: TooLarge, Message: fmt.Sprintf("SQL text of %d bytes is longer than the %d that are checked; split it, or send it over a plain connection", len(sql), maxText)}
	case longOperator(sql):
		return &Violation{Rule: TooDeep, Message: fmt.Sprintf("SQL text has more than %d comment or plus signs in one run, which the parser reads too slowly; shorten it, or pass it as an argument", maxRestarts)}
	case l.spreads():
		return &Violation{Rule: TooLarge, Message: "SQL text sets too many columns at once by (a, b, ...) = (...) for its length; write them one by one"}
	case tooDeep(maxNesting):
		return &Violation{Rule: TooDeep, Message: fmt.Sprintf("SQL text may nest deeper than %d levels, more than the parser can take; split the statement, or pass a long list as an array parameter", maxNesting)}
	}
	return nil
}

// checkFolding refuses a name beyond ASCII without quotes where the server may take
// it for another.
func (p *Policy) checkFolding(l *lexed) *Violation {
	sql := l.sql
	if !p.closure.FoldsNames || !p.quick.beyond || isASCII(sql) {
		return nil
	}
	tokens, err := l.scan()
	if err != nil {
		return nil // the parser fails on it too
	}
	for _, t := range tokens {
		if p.mayFold(sql, t) {
			return &Violation{Rule: BadText, offset: t.Start, Message: "SQL text has a name beyond ASCII without quotes, and the encoding of the database is not UTF8: it may take the name for another in other letters; write it in quotes, as it is stored"}
		}
	}
	return nil
}

// mayFold reports whether the server may take a token for another name.
func (p *Policy) mayFold(sql string, t parser.Token) bool {
	return p.closure.FoldsNames && p.quick.beyond && t.Kind == parser.IDENT && sql[t.Start] != '"' && !isASCII(sql[t.Start:t.End])
}

// longOperator reports whether a text has a run of operator characters on which
// the lexer is slow, wherever it stands.
func longOperator(sql string) bool {
	restarts := 0
	for i := range len(sql) {
		switch {
		case !isOperatorByte[sql[i]]:
			restarts = 0
		case sql[i] == '+' || sql[i] == '*' && i > 0 && sql[i-1] == '/':
			if restarts++; restarts > maxRestarts {
				return true
			}
		}
	}
	return false
}

// isOperatorByte tells the characters of PostgreSQL's operators.
var isOperatorByte = func() (table [256]bool) {
	for _, c := range []byte("~!@#^&|`?+-*/%<>=") {
		table[c] = true
	}
	return table
}()

// tooDeep reports whether the tree of a text may be deeper than a limit.
func tooDeep(sql string, limit int) bool { return (&lexed{sql: sql}).tooDeep(limit) }

// tooDeep reports whether the tree of the text may be deeper than a limit. Every
// level costs at least one sign or word, so short texts need no look.
func (l *lexed) tooDeep(limit int) bool {
	if len(l.sql) <= limit || marks(l.sql) <= limit {
		return false
	}
	tokens, err := l.scan()
	if err != nil {
		return false // the parser fails on it too, and builds no tree
	}
	return depth(tokens) > limit
}

// marks counts what can nest, an upper bound of it: words and visible signs, but
// for numbers, quotes, placeholders' "$" and what ends a chain or a name.
func marks(sql string) int {
	n, inWord, counted := 0, false, false
	for i := range len(sql) {
		c := sql[i]
		switch {
		case !isWordByte(c):
			inWord = false
			if c > ' ' && (!flat[c] || c == '.' && i+1 < len(sql) && sql[i+1] == '.') {
				n++
			}
		case !inWord:
			inWord, counted = true, !isDigit(c)
			if counted {
				n++
			}
		case !counted && !isDigit(c):
			counted = true
			n++
		}
	}
	return n
}

// flat are the signs that nothing nests by.
var flat = [256]bool{',': true, ';': true, '.': true, '\'': true, '"': true, '$': true}

// level counts what can nest between two brackets, or between CASE and END. It
// is a chain of joins and set operations whose operands are lists of items, each
// of them a chain of operators over operands.
type level struct {
	chained int  // operators and keywords of the current list item or conjunct
	below   int  // the depth of its deepest operand in brackets of its own
	high    int  // that of the deepest item so far, chain and operand
	kept    int  // what goes on past a comma: joins, set operations
	between int  // BETWEENs whose AND is still to come
	isCase  bool // it began with CASE
}

// depth returns an upper bound of the depth of the tree that the tokens make.
// A chain of operators nests as deep as it is long, above the deepest of its
// operands, but ends at a comma, at AND and OR (which make one flat list, unless
// the AND is a BETWEEN's) and at the parts of a CASE.
func depth(tokens []parser.Token) int {
	d := newDepthCounter()
	for _, t := range tokens {
		d.next(t)
	}
	return d.deepest
}

type depthCounter struct {
	before  parser.TokenKind
	levels  []level
	outside int // what the levels around the innermost one nest by now
	deepest int
}

func newDepthCounter() *depthCounter { return &depthCounter{levels: make([]level, 1, 64)} }

// next counts the next token.
func (d *depthCounter) next(t parser.Token) {
	if t.IsComment() {
		return
	}
	d.count(t.Kind, d.before)
	d.note()
	d.before = t.Kind
}

// note notes how deep the innermost level is by now.
func (d *depthCounter) note() {
	top := d.top()
	top.high = max(top.high, top.chained+top.below)
	d.deepest = max(d.deepest, d.outside+top.kept+top.high)
}

func (d *depthCounter) top() *level { return &d.levels[len(d.levels)-1] }

func (d *depthCounter) count(kind, before parser.TokenKind) {
	top := d.top()
	if before == parser.PERIOD { // a key word behind a dot is a name
		if kind != parser.IDENT {
			top.chained++
		}
		return
	}
	switch kind {
	case parser.LPAREN, parser.LBRACK, parser.CASE: // ( [ CASE
		top.chained++
		d.outside += top.kept + top.chained + 1
		d.levels = append(d.levels, level{isCase: kind == parser.CASE})
	case parser.RPAREN, parser.RBRACK: // ) ]
		for len(d.levels) > 1 && d.pop() {
		}
	case parser.END:
		if top.isCase {
			d.pop()
		}
	case parser.COMMA, parser.SEMICOLON, parser.OR: // , ;
		top.reset()
	case parser.WHEN, parser.THEN, parser.ELSE:
		if top.isCase {
			top.reset()
		} else {
			top.chained++
		}
	case parser.BETWEEN:
		top.between++
		top.chained++
	case parser.AND:
		if top.between > 0 {
			top.between--
			top.chained++
		} else {
			top.reset()
		}
	case parser.UNION, parser.INTERSECT, parser.EXCEPT, parser.JOIN:
		top.kept++
	case parser.IDENT, parser.SCONST, parser.ICONST, parser.FCONST, parser.BCONST,
		parser.XCONST, parser.PARAM, parser.PERIOD: // .
	default:
		top.chained++
	}
}

// reset ends an item of a level.
func (l *level) reset() { l.chained, l.below, l.between = 0, 0, 0 }

// pop closes the innermost level, which is an operand of the one around it, and
// reports whether it began with CASE. What may have begun with a column called
// "case" leaves its joins behind.
func (d *depthCounter) pop() bool {
	d.note()
	popped := *d.top()
	d.levels = d.levels[:len(d.levels)-1]
	top := d.top()
	d.outside -= top.kept + top.chained + 1
	top.below = max(top.below, popped.kept+popped.high+1)
	if popped.isCase {
		top.kept += popped.kept
	}
	return popped.isCase
}

// maxSpread bounds the tokens that a text's tree repeats. The source of
// "(a, b) = (x, y)" stands in it once for each column, with all that is in it.
const maxSpread = 1 << 18

// spreads reports whether the lists of columns of the text's SET clauses repeat
// too much in its tree.
func (l *lexed) spreads() bool {
	return hasList(l.sql) && repeats(l.significant()) // a text without tokens makes no tree
}

// repeats is spreads for the tokens of a text without comments.
func repeats(tokens []parser.Token) bool {
	open := []spread{{items: 1, times: 1, columns: 1}}
	repeated := 0
	for i, t := range tokens {
		top := &open[len(open)-1]
		if repeated += top.times*top.columns - 1; repeated > maxSpread {
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
			open = append(open, spread{items: 1, times: min(top.times*top.columns, maxSpread), columns: 1, list: list})
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

// spread is an open bracket: how often what is in it stands in the tree.
type spread struct {
	items   int
	times   int
	columns int  // those of the SET list whose source goes on, 1 outside of one
	list    bool // it may be the list of a SET clause
}

// hasList reports whether a text may set a list of columns: "SET (a, b) =", or
// ", (a, b) =". Comments may stand anywhere, so with them any bracket before "="
// is taken for one.
func hasList(sql string) bool {
	comments := strings.Contains(sql, "--") || strings.Contains(sql, "/*")
	looked := 0
	for i := range len(sql) {
		if sql[i] != ')' {
			continue
		}
		switch rest := strings.TrimLeft(sql[i+1:], blanks); {
		case rest == "" || rest[0] != '=' && !(comments && (rest[0] == '/' || rest[0] == '-')):
			continue
		case comments:
			return true
		}
		open, comma := opening(sql[:i])
		if looked += i - open; open < 0 || looked > 8*len(sql) {
			return true
		}
		before := strings.TrimRight(sql[:open], blanks)
		if comma && (strings.HasSuffix(before, ",") || len(before) >= 3 && strings.EqualFold(before[len(before)-3:], "set")) {
			return true
		}
	}
	return false
}

const blanks = " \t\r\n\f\v"

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
