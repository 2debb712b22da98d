package sqltext

import "github.com/fencerow/fencerow/internal/parser"

// IsTooDeep reports whether the tree of a text may be deeper than a limit.
func IsTooDeep(sql string, limit int) bool { return (&Text{SQL: sql}).IsTooDeep(limit) }

// IsTooDeep reports whether the tree of the text may be deeper than a limit. Every
// level costs at least one sign or word, so short texts need no look.
func (l *Text) IsTooDeep(limit int) bool {
	if len(l.SQL) <= limit || CountMarks(l.SQL) <= limit {
		return false
	}
	tokens, err := l.Tokens()
	if err != nil {
		return false // the parser fails on it too, and builds no tree
	}
	return Depth(tokens) > limit
}

// CountMarks counts what can nest, an upper bound of it: words and visible signs, but
// for numbers, quotes, placeholders' "$" and what ends a chain or a name.
func CountMarks(sql string) int {
	n, inWord, counted := 0, false, false
	for i := range len(sql) {
		c := sql[i]
		switch {
		case !IsWordByte(c):
			inWord = false
			if c > ' ' && (!flat[c] || c == '.' && i+1 < len(sql) && sql[i+1] == '.') {
				n++
			}
		case !inWord:
			inWord, counted = true, !IsDigit(c)
			if counted {
				n++
			}
		case !counted && !IsDigit(c):
			counted = true
			n++
		}
	}
	return n
}

// flat are the signs by which nothing nests.
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

// Depth returns an upper bound of the depth of the tree that the tokens make.
// A chain of operators nests as deep as it is long, above the deepest of its
// operands, but ends at a comma, at AND and OR (which make one flat list, unless
// the AND is a BETWEEN's) and at the parts of a CASE.
func Depth(tokens []parser.Token) int {
	d := NewDepthCounter()
	for _, t := range tokens {
		d.Add(t)
	}
	return d.Deepest
}

// DepthCounter is depth for tokens that are given one after another.
type DepthCounter struct {
	before  parser.TokenKind
	levels  []level
	outside int // what the levels around the innermost one nest by now
	Deepest int
}

// NewDepthCounter returns a counter that has seen no token.
func NewDepthCounter() *DepthCounter { return &DepthCounter{levels: make([]level, 1, 64)} }

// Add counts the next token.
func (d *DepthCounter) Add(t parser.Token) {
	if t.IsComment() {
		return
	}
	d.count(t.Kind, d.before)
	d.note()
	d.before = t.Kind
}

// note notes how deep the innermost level is by now.
func (d *DepthCounter) note() {
	top := d.top()
	top.high = max(top.high, top.chained+top.below)
	d.Deepest = max(d.Deepest, d.outside+top.kept+top.high)
}

func (d *DepthCounter) top() *level { return &d.levels[len(d.levels)-1] }

func (d *DepthCounter) count(kind, before parser.TokenKind) {
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
func (d *DepthCounter) pop() bool {
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
