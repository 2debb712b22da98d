package check

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/internal/wordsearch"
)

// checkDo checks DO: its body runs at once.
func checkDo(c *checker, n *sqltree.Node, _ bool) { c.checkBody(n, n.List("args")) }

// checkCreateFunction checks CREATE FUNCTION and PROCEDURE: the name, and the
// body in the same way as what is sent directly.
func checkCreateFunction(c *checker, n *sqltree.Node, top bool) {
	if at := c.namesProtected(n); at != nil {
		c.reportDDL(n, at)
	}
	defer func(before bool) { c.stored = before }(c.stored)
	c.stored = true
	for _, parameter := range n.List("parameters") {
		c.walkExpressions(parameter)
	}
	for _, o := range n.List("options") {
		// its own search_path ends with the call
		if set := o.Get("arg"); set.Is("VariableSetStmt") && sqltext.Lower(set.Str("name")) != "search_path" {
			checkVariableSet(c, set, false)
		}
	}
	if body := n.Get("sql_body"); body != nil {
		before := len(c.writes)
		c.walkCode(body)
		if len(c.writes) > before {
			t := c.writes[before].Table
			c.report(violation(HiddenCode, n, "a function that writes protected table %s cannot be proved when it is called: create it over a plain connection", quoted(t)).on(t))
		}
		return
	}
	c.checkBody(n, n.List("options"))
}

// checkCreateRule checks CREATE RULE: its actions run later, with whatever the
// triggering statement brings.
func checkCreateRule(c *checker, n *sqltree.Node, top bool) {
	checkCode(c, n, top)
	before := len(c.writes)
	defer func(before bool) { c.stored = before }(c.stored)
	c.stored = true
	for _, action := range n.List("actions") {
		c.statement(action)
	}
	if len(c.writes) > before {
		t := c.writes[before].Table
		c.report(violation(HiddenCode, n, "a rule that writes protected table %s cannot be proved when it fires: create it over a plain connection", quoted(t)).on(t))
	}
}

// checkCode checks a definition that makes a function run later: it must name
// nothing the protection rests on, writing functions included.
func checkCode(c *checker, n *sqltree.Node, _ bool) {
	if at := c.namesProtected(n); at != nil {
		c.reportDDL(n, at)
	}
	c.walkExpressions(n)
	if n.Kind() != "CreateTrigStmt" {
		return
	}
	// a trigger's arguments may be names that its function writes
	for _, arg := range n.List("args") {
		if arg.Is("String") && c.policy.hit(arg.Str("sval")) != "" {
			c.report(violation(HiddenCode, n, "an argument of this trigger names what the protection rests on: create it over a plain connection"))
		}
	}
}

func refuseCode(c *checker, n *sqltree.Node, _ bool) {
	c.report(violation(HiddenCode, n, "%s brings in code or tables that cannot be checked: use a plain connection", statementName(n.Kind())))
}

// checkWrapper checks a foreign data wrapper: its functions run at once.
func checkWrapper(c *checker, n *sqltree.Node, top bool) {
	for _, o := range n.List("func_options") {
		if o.Get("arg") != nil {
			refuseCode(c, n, top)
			return
		}
	}
}

// walkCode checks the statements of a body that the parser has read.
func (c *checker) walkCode(n *sqltree.Node) {
	if n.Kind() == sqltree.ListKind || n.Kind() == "List" {
		for _, k := range n.Kids {
			c.walkCode(k)
		}
		return
	}
	if n.Kind() == "ReturnStmt" {
		c.walk(n.Get("returnval"), n)
		return
	}
	c.statement(n)
}

// checkBody checks a body given as a string, in SQL or PL/pgSQL. It must pass
// the way that needs no parser: no name of the closure, nothing that can run
// other SQL or change the session.
func (c *checker) checkBody(n *sqltree.Node, options []*sqltree.Node) {
	language, body := "plpgsql", ""
	if n.Kind() == "CreateFunctionStmt" {
		language = "sql"
	}
	for _, o := range options {
		switch o.Str("defname") {
		case "language":
			language = strings.ToLower(o.Get("arg").Str("sval"))
		case "as":
			if arg := o.Get("arg"); arg.Is("List") {
				for _, part := range arg.List("items") {
					body += part.Str("sval") + "\n"
				}
			} else {
				body = arg.Str("sval")
			}
		}
	}
	if language != "sql" && language != "plpgsql" {
		c.report(violation(HiddenCode, n, "code in language %q cannot be checked: create or run it over a plain connection", language))
		return
	}
	if word := c.policy.bodyWord(body); word != "" {
		if !strings.Contains(word, " ") {
			word = strconv.Quote(word)
		}
		c.report(violation(HiddenCode, n, "the code in this text contains %s, so what it does to protected tables cannot be checked: run it over a plain connection", word))
	}
}

// bodyWord returns the word for which a body can't be cleared, "" if it can.
func (p *Policy) bodyWord(body string) string {
	all, err := parser.Scan(body)
	if err != nil || strings.IndexByte(body, 0) >= 0 {
		return "what the parser cannot read"
	}
	b := bodyTokens{text: body, tokens: slices.DeleteFunc(all, parser.Token.IsComment)}
	inTrigger, inCopy := false, false
	for i, t := range b.tokens {
		if b.starts(i) {
			inTrigger = false
		}
		inCopy = b.word(i-1) != ";" && inCopy || b.starts(i) && b.word(i) == "copy"
		switch word := b.word(i); {
		case t.Kind == parser.UIDENT || len(word) > sqltext.MaxName && !t.IsLiteral() || p.mayFold(body, t):
			return "a name that may stand for another"
		case t.IsLiteral():
			// strings are no code: what could run them is refused
			if p.hit(strings.ReplaceAll(word, "'", " ")) != "" {
				return "a string that names what the protection rests on"
			}
		case inCopy && word == "to" && b.shown(i+1) == "?":
			return "copy to a file of the server"
		case t.Kind == parser.EXECUTE && !b.harmlessExecute(i, inTrigger), b.changesSession(i), b.pair(i), b.writesCatalog(i):
			return strings.TrimSpace(word + " " + b.shown(i+1))
		case p.hasFencing() && b.namesOwn(i):
			return word + " without a schema, which the schema fencing has, too"
		case b.starts(i) && p.runsUnnamed(word):
			return word + ", which runs code that no text names"
		case p.isWord(word), p.quick.words.Lookup(word)&wordsearch.Hit != 0 && word != "execute" && !p.partOfName(word):
			return word
		case word == "trigger":
			inTrigger = inTrigger || b.creates(i)
		case word == "execute":
			inTrigger = false
		}
	}
	return ""
}

// runsUnnamed reports whether a word begins statements that run code which they don't
// name and which writes a protected table: event triggers, or what tables that
// are maintained call.
func (p *Policy) runsUnnamed(word string) bool {
	return len(p.closure.EventTriggers) > 0 && slices.Contains(changeWords, word) || p.hasReaders && slices.Contains(Maintainers(), word)
}

// partOfName reports whether a word is looked for by the quick way out only as
// a part of a longer name, such as "order" of "Order Items".
func (p *Policy) partOfName(word string) bool {
	return !quickWords[word] && !sqlFunctions[word] && !strings.HasPrefix(word, "dblink")
}

// bodyTokens are the tokens of a body in SQL or PL/pgSQL.
type bodyTokens struct {
	text   string
	tokens []parser.Token
}

// word returns a token's text: folded, and without the quotes of an identifier.
func (b bodyTokens) word(i int) string {
	if i < 0 || i >= len(b.tokens) {
		return ""
	}
	s := b.text[b.tokens[i].Start:b.tokens[i].End]
	if b.tokens[i].Kind == parser.IDENT && s[0] == '"' {
		return strings.ReplaceAll(s[1:len(s)-1], `""`, `"`)
	}
	return sqltext.Lower(s)
}

// shown is word for messages: a literal is not repeated.
func (b bodyTokens) shown(i int) string {
	if i < len(b.tokens) && b.tokens[i].IsLiteral() {
		return "?"
	}
	return b.word(i)
}

// starts reports whether a statement can begin at a token.
func (b bodyTokens) starts(i int) bool {
	return i == 0 || bodyStarts[b.word(i-1)]
}

var bodyStarts = setOf(";", "begin", "then", "else", "loop", ">>", "do", "atomic", "declare")

// creates reports whether CREATE, or CREATE OR REPLACE, stands before a token
// and begins a statement.
func (b bodyTokens) creates(i int) bool {
	for k := i - 1; k >= i-4; k-- {
		if b.word(k) == "create" {
			return b.starts(k)
		}
	}
	return false
}

// harmlessExecute reports whether EXECUTE is that of a trigger's definition
// without arguments, or of a right, which run nothing.
func (b bodyTokens) harmlessExecute(i int, inTrigger bool) bool {
	if before := b.word(i - 1); before == "grant" || before == "revoke" {
		return b.starts(i - 1)
	}
	if next := b.word(i + 1); !inTrigger || next != "function" && next != "procedure" {
		return false
	}
	j := i + 3 // past the function's name
	for b.word(j) == "." {
		j += 2
	}
	return b.word(j) == "(" && b.word(j+1) == ")"
}

// writesCatalog reports whether a name is a catalog's and the target of a
// write.
func (b bodyTokens) writesCatalog(i int) bool {
	word := b.word(i)
	if !strings.HasPrefix(word, "pg_") && word != "information_schema" {
		return false
	}
	if b.word(i-1) == "." {
		i -= 2
	}
	before := b.word(i - 1)
	if before == "only" {
		i--
		before = b.word(i - 1)
	}
	return before == "update" || before == "into" || before == "truncate" || before == "copy" || before == "table" || before == "from" && b.word(i-2) == "delete"
}

// namesOwn reports whether a name without a schema that the schema fencing has,
// too, is the target of a write or called. Other code of the body may lead the
// search path there.
func (b bodyTokens) namesOwn(i int) bool {
	if b.word(i-1) == "." || b.word(i+1) == "." {
		return false
	}
	word := b.word(i)
	return fencingRelations[word] && b.isTarget(i) || fencingChanges[word] && b.word(i+1) == "(" && !b.isTarget(i)
}

// isTarget reports whether a relation's name stands where a statement names the
// one that it writes or changes.
func (b bodyTokens) isTarget(i int) bool {
	for b.word(i-1) == "," { // TRUNCATE and DROP TABLE take several
		for i -= 2; b.word(i-1) == "."; i -= 2 {
		}
	}
	switch before := b.word(i - 1); before {
	case "only":
		return b.isTarget(i - 1)
	case "exists":
		return b.word(i-2) == "if"
	case "into":
		return b.word(i-2) == "insert" || b.word(i-2) == "merge"
	case "from":
		return b.word(i-2) == "delete"
	default:
		return before == "update" || before == "truncate" || before == "copy" || before == "table"
	}
}

// changesSession reports whether SET or RESET changes what the check rests on;
// settings with a name of their own are words of the quick way out.
func (b bodyTokens) changesSession(i int) bool {
	if word := b.word(i); !b.starts(i) || word != "set" && word != "reset" {
		return false
	}
	next := sqltext.Lower(b.word(i + 1))
	if next == "local" || next == "session" {
		next = sqltext.Lower(b.word(i + 2))
	}
	return bodySettings[next]
}

var bodySettings = setOf("role", "authorization", "session_authorization", "names", "schema", "all", "session")

// pair reports whether two words together change objects that they don't name,
// or run another body.
func (b bodyTokens) pair(i int) bool {
	next, literal := b.word(i+1), i+1 < len(b.tokens) && b.tokens[i+1].IsLiteral()
	switch word := b.word(i); word {
	case "do", "load":
		return literal || word == "do" && next == "language"
	case "for", "query", "in":
		return next == "execute"
	default:
		return bodyPairs[word][next]
	}
}

// bodyPairs are words which together change objects that they don't name.
var bodyPairs = map[string]map[string]bool{
	"import":   setOf("foreign"),
	"reassign": setOf("owned"),
	"alter":    setOf("schema", "subscription", "system", "operator", "function", "procedure", "routine", "role", "user", "group", "database", "type", "language", "foreign", "server", "extension", "event"),
	"create":   setOf("subscription", "language", "function", "procedure", "or", "foreign", "server", "user", "aggregate", "operator", "cast", "rule", "event"),
	"all":      setOf("tables"),
	"drop":     setOf("schema", "type", "domain", "extension", "collation", "access", "function", "procedure", "routine", "aggregate", "operator", "owned", "language"),
}
