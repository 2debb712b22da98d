package reach

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
)

// plainSQL are the words that statements of SQL begin with which a plain body may
// have.
var plainSQL = setOf("select", "insert", "update", "delete", "merge", "with", "values", "table", "truncate", "refresh", "copy", "lock", "notify", "listen", "unlisten", "analyze", "comment",
	"grant", "revoke", "set", "reset", "drop", "create")

// queryWords are those that queries begin with.
var queryWords = setOf("select", "insert", "update", "delete", "merge", "with", "values", "table")

// tableLeads are the words by which a table that is made leads to others, or calls
// something.
var tableLeads = setOf("default", "like", "inherits", "partition", "references", "generated", "of", "check", "exclude")

// sqlBody reads statements of SQL.
func (p *plainReader) sqlBody() {
	switch {
	case p.word(0) == "begin" && p.word(1) == "atomic":
		for p.pos = 2; !p.isLost && p.word(p.pos) != "end"; {
			p.sqlStatement(true)
		}
		p.expect("end")
		if p.word(p.pos) == ";" {
			p.pos++
		}
		if p.pos < len(p.tokens) {
			p.loseAt(p.pos)
		}
	case p.word(0) == "return":
		p.check(1, len(p.tokens))
	default:
		for p.pos < len(p.tokens) {
			p.sqlStatement(false)
		}
	}
}

// sqlStatement reads a statement up to the semicolon or the end, one that isn't needed
// behind the last statement.
func (p *plainReader) sqlStatement(isAtomic bool) {
	start := p.pos
	if p.word(start) == ";" {
		p.pos++
		return
	}
	end := len(p.tokens)
	if slices.ContainsFunc(p.tokens[start:], func(t bodyToken) bool { return t.is(";") }) {
		p.find(";")
		end = p.pos - 1
	} else if p.balanced(start) {
		p.pos = end
	}
	switch w := p.word(start); {
	case p.isLost:
	case isAtomic && w == "return", w == "call":
		p.check(start+1, end)
	case plainSQL[w] || w == "(":
		p.sql(start, end)
	case p.token(start).kind == wordToken:
		p.fail("has the statement %s", p.shownStatement(start))
	default:
		p.loseAt(start)
	}
}

// balanced reports whether all brackets close up to the end.
func (p *plainReader) balanced(i int) bool {
	depth := 0
	for ; i < len(p.tokens); i++ {
		switch p.word(i) {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
	}
	if depth != 0 {
		p.loseAt(i)
	}
	return depth == 0
}

// shownStatement returns the words by which a statement is known.
func (p *plainReader) shownStatement(i int) string {
	words := []string{strings.ToUpper(p.shown(i))}
	for slices.Contains([]string{"or", "replace", "global", "local", "temp", "temporary", "unlogged"}, p.word(i+1)) {
		i++
	}
	if w := p.word(i); (words[0] == "ALTER" || words[0] == "CREATE" || words[0] == "DROP") && p.token(i+1).kind == wordToken && w != "" {
		words = append(words, strings.ToUpper(p.shown(i+1)))
	}
	return strings.Join(words, " ")
}

// query reads what a loop, a cursor or RETURN QUERY goes through: a query or a
// cursor's name.
func (p *plainReader) query(start, end int) {
	first := start
	for p.word(first) == "(" {
		first++
	}
	switch {
	case p.isLost:
	case queryWords[p.word(first)]:
		p.sql(start, end)
	case first == start && p.token(start).kind != stringToken && p.isCursor(start, end):
	default:
		p.fail("goes through %s", p.shownStatement(start))
	}
}

// isCursor reports whether a cursor's name stands between two tokens, with its
// arguments or without.
func (p *plainReader) isCursor(start, end int) bool {
	next := p.path(start)
	return next > start && (next == end || p.word(next) == "(" && p.closing(next) == end-1)
}

// sql reads a statement of SQL.
func (p *plainReader) sql(start, end int) {
	if p.isLost {
		return
	}
	switch p.word(start) {
	case "insert", "update", "delete", "merge", "refresh":
		p.needTargets(start, 1)
	case "truncate":
		p.list(start, end)
	case "copy":
		p.copies(start, end)
	case "grant", "revoke", "comment":
		return
	case "set", "reset":
		for i := start; i < end; i++ {
			if p.token(i).text == stringsSetting {
				p.fail("sets %s, by which strings are read otherwise", stringsSetting)
			}
		}
	case "drop":
		p.drops(start, end)
	case "create":
		p.makes(start, end)
	}
	p.check(start+1, end)
}

// needTargets makes sure that the tables can be told that the statement at a token
// writes.
func (p *plainReader) needTargets(i, count int) {
	found := &routineReader{tokens: p.tokens, body: newRoutineBody()}
	found.at(i)
	if len(found.body.targets) < count {
		p.fail("has %s of a table that cannot be told", p.shownStatement(i))
	}
}

// list makes sure that all tables of TRUNCATE or DROP can be told.
func (p *plainReader) list(start, end int) {
	count := 1
	for i := start; i < end; i++ {
		if p.word(i) == "," {
			count++
		}
	}
	p.needTargets(start, count)
}

// copies reads COPY.
func (p *plainReader) copies(start, end int) {
	isFrom := false
	for i := start; i < end; i++ {
		if p.word(i) == "program" {
			p.fail("runs a program (COPY)")
		}
		isFrom = isFrom || p.word(i) == "from"
	}
	if isFrom && p.word(start+1) != "(" {
		p.needTargets(start, 1)
	}
}

// drops reads DROP.
func (p *plainReader) drops(start, end int) {
	kind := p.word(start + 1)
	if kind != "table" && kind != "index" && kind != "sequence" {
		p.fail("has the statement %s", p.shownStatement(start))
		return
	}
	for i := start; i < end; i++ {
		if p.word(i) == "cascade" {
			p.fail("has DROP with CASCADE")
		}
	}
	if kind == "table" {
		p.list(start, end)
	}
}

// makes reads CREATE of a table, an index or a sequence that lead to nothing else.
func (p *plainReader) makes(start, end int) {
	i := start + 1
	for slices.Contains([]string{"global", "local", "temp", "temporary", "unlogged", "unique"}, p.word(i)) {
		i++
	}
	switch p.word(i) {
	case "index", "sequence":
		return
	case "table":
	default:
		p.fail("has the statement %s", p.shownStatement(start))
		return
	}
	p.needTargets(start, 1)
	depth := 0
	for ; i < end; i++ {
		switch w := p.word(i); {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case w == "as" && depth == 0:
			return
		case w == "default" && p.isConstant(i+1):
		case tableLeads[w]:
			p.fail("makes a table with %s", strings.ToUpper(w))
		}
	}
}

// isConstant reports whether a column's default that begins at a token is a constant.
func (p *plainReader) isConstant(i int) bool {
	if p.word(i) == "-" {
		i++
	}
	t, next := p.token(i), i+1
	switch {
	case t.kind == stringToken, slices.Contains([]string{"true", "false", "null", "current_timestamp", "current_date"}, p.word(i)):
	case t.kind == wordToken && isNumber(t.text):
		if p.word(next) == "." {
			next += 2
		}
	case t.is("now") && p.word(next) == "(" && p.word(next+1) == ")":
		next += 2
	default:
		return false
	}
	return slices.Contains([]string{",", ")", "not", "primary", "unique"}, p.word(next))
}

// check looks through a piece of a statement for what could run SQL that doesn't
// stand there, or write a table that can't be told.
func (p *plainReader) check(start, end int) {
	for i := start; i < end; i++ {
		name, next := p.token(i).name(), p.word(i+1)
		switch w := p.word(i); {
		case next == "(" && name != "" && check.RunsText(name, p.schemaOf(i)):
			p.fail("calls %s, which runs SQL that it is given", name)
		case next == "(" || p.word(i-1) == ".":
		case w == "execute":
			p.fail("runs SQL that it makes (EXECUTE)")
		case w == "insert" || w == "update" || w == "delete" || w == "merge":
			p.checkWrite(i, start)
		}
	}
}

// checkWrite makes sure that a word within a statement begins the write of a table that
// can be told, or is part of another clause.
func (p *plainReader) checkWrite(i, start int) {
	switch before := p.word(i - 1); {
	case before == "for" || before == "key" || before == "do": // FOR UPDATE, DO UPDATE
	case before == "then" && slices.ContainsFunc(p.tokens[max(start-1, 0):i], func(t bodyToken) bool { return t.is("merge") }):
	default:
		p.needTargets(i, 1)
	}
}
