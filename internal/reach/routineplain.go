package reach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// A body is read if it is plain: every statement begins with a known word, and the SQL
// that it runs stands in it. What a plain body writes is what it names. Of any
// other body nothing is told.

// plainReader reads whether a body is plain. PL/pgSQL is followed as its own grammar
// splits it: an expression ends at the first word that can end it and isn't in
// brackets, and the words by which it is split are reserved.
type plainReader struct {
	routineReader
	pos    int
	why    string // why the body isn't plain, "" if it is
	isLost bool   // where statements begin isn't known, or what a name stands for
	hasRow bool   // a variable is called like one that PL/pgSQL gives a trigger's function
}

// readPlain reads a body. The names are those of its parameters.
func readPlain(language string, tokens []bodyToken, names []string) *plainReader {
	p := &plainReader{routineReader: routineReader{tokens: tokens}}
	switch language {
	case "internal": // the functions of an aggregate
		return p
	case "sql":
		p.sqlBody()
	case "plpgsql":
		p.plpgsqlBody(names)
	case givenLanguage:
		p.fail("is a function under another name that runs SQL which it is given, or sets what it is given")
	default:
		p.fail("is written in %s", language)
	}
	for _, t := range tokens {
		if t.kind == wordToken && t.text == "uescape" { // the lexer takes in that of a plain constant
			p.lose("has names or strings with UESCAPE")
		}
		if t.kind == wordToken && sqltext.IsDigit(t.text[0]) && slices.Contains([]byte(t.text), '$') {
			p.lose("has a number that a string may begin in")
		}
	}
	return p
}

// fail notes the first reason for which the body isn't plain.
func (p *plainReader) fail(format string, args ...any) {
	if p.why == "" {
		p.why = fmt.Sprintf(format, args...)
	}
}

// lose is fail for a body of which it isn't known where its statements begin. It ends the
// reading.
func (p *plainReader) lose(format string, args ...any) {
	p.fail(format, args...)
	p.isLost, p.pos = true, len(p.tokens)
}

// loseAt is lose for a token that nothing is known to begin or to go on with.
func (p *plainReader) loseAt(i int) {
	if i >= len(p.tokens) {
		p.lose("ends within a statement, as far as it can be followed")
		return
	}
	p.lose("cannot be followed from %q on", p.shown(i))
}

// shown is a token for messages: a string's text isn't repeated.
func (p *plainReader) shown(i int) string {
	if t := p.token(i); t.kind != stringToken {
		return t.text
	}
	return "a string"
}

// expect passes over words.
func (p *plainReader) expect(words ...string) {
	for _, w := range words {
		if p.word(p.pos) != w {
			p.loseAt(p.pos)
			return
		}
		p.pos++
	}
}

// plpgsqlBody reads a body in PL/pgSQL.
func (p *plainReader) plpgsqlBody(names []string) {
	for _, name := range names {
		p.declared(lowerASCII(name))
	}
	for p.word(p.pos) == "#" && p.token(p.pos+1).name() != "" { // an option
		p.pos += 3
	}
	if p.word(p.pos) == "<<" {
		p.label()
	}
	p.block()
	if p.pos < len(p.tokens) {
		p.loseAt(p.pos)
	}
}

func (p *plainReader) label() {
	p.pos += 2
	p.expect(">>")
}

// block reads DECLARE, BEGIN and what stands up to END.
func (p *plainReader) block() {
	if p.word(p.pos) == "declare" {
		p.declarations()
	}
	p.expect("begin")
	if p.statements("end", "exception") == "exception" {
		p.pos++
		for p.word(p.pos) == "when" {
			p.pos++
			p.expression("then")
			p.statements("when", "end")
		}
	}
	p.expect("end")
	if p.pos < len(p.tokens) && p.word(p.pos) != ";" {
		p.pos++ // the label
	}
	if p.pos < len(p.tokens) {
		p.expect(";")
	}
}

// declarations reads what stands between DECLARE and BEGIN.
func (p *plainReader) declarations() {
	for !p.isLost && p.word(p.pos) != "begin" {
		if p.word(p.pos) == "declare" {
			p.pos++
			continue
		}
		name := p.token(p.pos).name()
		if name == "" {
			p.loseAt(p.pos)
			return
		}
		p.declared(name)
		p.pos++
		if p.word(p.pos) == "no" {
			p.pos++
		}
		if p.word(p.pos) == "scroll" {
			p.pos++
		}
		if p.word(p.pos) == "cursor" {
			p.cursor()
		} else {
			p.expression(";")
		}
	}
}

// cursor reads the declaration of a cursor from CURSOR on.
func (p *plainReader) cursor() {
	p.pos++
	if p.word(p.pos) == "(" {
		depth := 0
		for start := p.pos; p.pos < len(p.tokens) && (p.pos == start || depth > 0); p.pos++ {
			switch w := p.word(p.pos); {
			case w == "(":
				depth++
			case w == ")":
				depth--
			}
			if w := p.word(p.pos); depth == 1 && (w == "(" || w == ",") {
				p.declared(p.token(p.pos + 1).name())
			}
		}
	}
	if w := p.word(p.pos); w != "is" && w != "for" {
		p.loseAt(p.pos)
		return
	}
	p.pos++
	start := p.pos
	p.expression(";")
	p.query(start, p.pos-1)
}

// declared makes sure that a variable isn't called like a word that statements begin with,
// or that the reader goes by.
func (p *plainReader) declared(name string) {
	p.hasRow = p.hasRow || name == "old" || name == "new" || name == "tg_op"
	if misleadingNames[name] {
		p.lose("has a variable or parameter that is called %q like a word of a statement", name)
	}
}

// statements reads statements up to one of the words, and returns it.
func (p *plainReader) statements(ends ...string) string {
	for !p.isLost {
		if w := p.word(p.pos); slices.Contains(ends, w) && !p.assigns() {
			return w
		}
		p.statement()
	}
	return ""
}

// statement reads one statement.
func (p *plainReader) statement() {
	w := p.word(p.pos)
	switch {
	case p.assigns():
		p.expression(";")
	case w == "<<":
		p.label()
		if next := p.word(p.pos); !slices.Contains([]string{"declare", "begin", "loop", "while", "for", "foreach"}, next) {
			p.loseAt(p.pos)
			return
		}
		p.statement()
	case w == "declare" || w == "begin":
		p.block()
	case w == "if":
		p.branches()
	case w == "case":
		p.cases()
	case w == "loop" || w == "while":
		p.pos++
		if w == "while" {
			p.expression("loop")
		}
		p.loop()
	case w == "for" || w == "foreach":
		p.loopOver()
	case w == "return":
		p.returns()
	case w == "open":
		p.opens()
	case w == "execute":
		p.pos++
		p.executes("into", "using", ";")
		p.expression(";")
	case plainStatements[w]:
		p.pos++
		p.expression(";")
	case plainSQL[w]:
		start := p.pos
		p.find(";")
		p.sql(start, p.pos-1)
	case p.token(p.pos).kind == wordToken && p.pos < len(p.tokens):
		p.fail("has the statement %s", p.shownStatement(p.pos))
		p.find(";")
	default:
		p.loseAt(p.pos)
	}
}

// plainStatements are the words that begin statements of PL/pgSQL of which all
// that matters are the expressions.
var plainStatements = setOf("exit", "continue", "raise", "assert", "null", "get", "perform", "fetch", "move", "close", "commit", "rollback", "call")

// misleadingNames are names of variables by which a statement could be taken for
// another. The words that PL/pgSQL reserves are none: as a name one of them has quotes, by
// which it is told from the word.
var misleadingNames = setOf("elsif", "elseif", "exit", "continue", "return", "raise", "assert", "perform", "fetch", "commit", "rollback", "exception", "select", "insert", "update", "delete", "merge",
	"with", "truncate", "refresh", "drop", "alter", "setval")

// path returns where a variable's name ends, or that of a part of it.
func (p *plainReader) path(i int) int {
	if p.word(i) == "$" {
		i++
	}
	if p.token(i).name() == "" {
		return i
	}
	for i++; i < len(p.tokens); {
		switch {
		case p.word(i) == "." && p.token(i+1).name() != "":
			i += 2
		case p.word(i) == "[":
			depth := 0
			for start := i; i < len(p.tokens) && (i == start || depth > 0); i++ {
				switch p.word(i) {
				case "[":
					depth++
				case "]":
					depth--
				}
			}
		default:
			return i
		}
	}
	return i
}

// assigns reports whether a variable is set by the statement that begins here. The words
// that PL/pgSQL reserves are no variables.
func (p *plainReader) assigns() bool {
	end := p.path(p.pos)
	if end == p.pos || reservedWords[p.word(p.pos)] {
		return false
	}
	next := p.word(end)
	return next == ":" && hasEquals(p.word(end+1)) || hasEquals(next)
}

// hasEquals reports whether an operator begins with =, whose sign a number's may stand with.
func hasEquals(operator string) bool {
	return operator == "=" || len(operator) == 2 && operator[0] == '=' && (operator[1] == '-' || operator[1] == '+')
}

var reservedWords = setOf("all", "begin", "by", "case", "declare", "else", "end", "execute", "for", "foreach", "from", "if", "in", "into", "loop", "not", "null", "or", "strict", "then", "to",
	"using", "when", "while")

// find goes behind the first of the words that stands outside brackets. A semicolon ends
// every statement.
func (p *plainReader) find(ends ...string) {
	depth := 0
	for ; p.pos < len(p.tokens); p.pos++ {
		w := p.word(p.pos)
		switch {
		case depth == 0 && slices.Contains(ends, w):
			p.pos++
			return
		case w == "(" || w == "[":
			depth++
		case w == ")" || w == "]":
			depth--
		}
		if w == ";" || depth < 0 {
			break
		}
	}
	p.loseAt(p.pos)
}

// expression reads up to one of the words, and goes behind it.
func (p *plainReader) expression(ends ...string) {
	start := p.pos
	p.find(ends...)
	p.check(start, p.pos-1)
}

// executes reads what EXECUTE runs: a constant, in brackets or without, behind which one of
// the words has to stand.
func (p *plainReader) executes(ends ...string) {
	at, depth := p.pos, 0
	for ; p.word(at) == "("; at++ {
		depth++
	}
	t, next := p.token(at), at+1
	for ; depth > 0 && p.word(next) == ")"; next++ {
		depth--
	}
	if t.kind == stringToken && strings.Contains(t.raw, `\`) {
		p.fail("runs a constant with a backslash, which a setting may have read otherwise")
		return
	}
	if t.kind != stringToken || t.isEscaped || depth > 0 || !slices.Contains(ends, p.word(next)) {
		p.fail("runs SQL that it makes (EXECUTE of what is no constant)")
		return
	}
	if inner := readPlain("sql", lexBody(t.raw, true), nil); inner.why != "" {
		p.fail("%s", inner.why)
	}
	p.pos = next
}

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}
