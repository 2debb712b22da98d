package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// checkDo checks DO: its body runs at once.
func checkDo(c *checker, n *node, _ bool) { c.checkBody(n, n.list("args")) }

// checkCreateFunction checks CREATE FUNCTION and PROCEDURE: the name, and the
// body in the same way as what is sent directly.
func checkCreateFunction(c *checker, n *node, top bool) {
	checkDDL(c, n, top)
	if body := n.get("sql_body"); body != nil {
		before := len(c.writes)
		c.walkCode(body)
		if len(c.writes) > before {
			t := c.writes[before].Table
			c.report(violation(HiddenCode, n, "a function that writes protected table %s cannot be proved when it is called: create it over a plain connection", quoted(t)).on(t))
		}
		return
	}
	c.checkBody(n, n.list("options"))
}

// checkCreateRule checks CREATE RULE: its actions run later, with whatever the
// triggering statement brings.
func checkCreateRule(c *checker, n *node, top bool) {
	checkCode(c, n, top)
	before := len(c.writes)
	for _, action := range n.list("actions") {
		c.walk(action, n)
	}
	if len(c.writes) > before {
		t := c.writes[before].Table
		c.report(violation(HiddenCode, n, "a rule that writes protected table %s cannot be proved when it fires: create it over a plain connection", quoted(t)).on(t))
	}
}

// checkCode checks a definition that makes a function run later: it must name
// nothing the protection rests on, writing functions included.
func checkCode(c *checker, n *node, _ bool) {
	if at := c.namesProtected(n); at != nil {
		c.reportDDL(n, at)
	}
}

func refuseCode(c *checker, n *node, _ bool) {
	c.report(violation(HiddenCode, n, "%s brings in code or tables that cannot be checked: use a plain connection", statementName(n.kind)))
}

// walkCode checks the statements of a body that the parser has read.
func (c *checker) walkCode(n *node) {
	if n.kind == listKind || n.kind == "List" {
		for _, k := range n.kids {
			c.walkCode(k)
		}
		return
	}
	if n.kind == "ReturnStmt" {
		c.walk(n.get("returnval"), n)
		return
	}
	c.statement(n)
}

// checkBody checks a body given as a string, in SQL or PL/pgSQL. It must pass
// the way that needs no parser: no name of the closure, nothing that can run
// other SQL or change the session.
func (c *checker) checkBody(n *node, options []*node) {
	language, body := "plpgsql", ""
	if n.kind == "CreateFunctionStmt" {
		language = "sql"
	}
	for _, o := range options {
		switch o.str("defname") {
		case "language":
			language = strings.ToLower(o.get("arg").str("sval"))
		case "as":
			if arg := o.get("arg"); arg.is("List") {
				for _, part := range arg.list("items") {
					body += part.str("sval") + "\n"
				}
			} else {
				body = arg.str("sval")
			}
		}
	}
	if language != "sql" && language != "plpgsql" {
		c.report(violation(HiddenCode, n, "code in language %q cannot be checked: create or run it over a plain connection", language))
		return
	}
	if word := c.policy.bodyWord(body); word != "" {
		c.report(violation(HiddenCode, n, "the code in this text contains %q, so what it does to protected tables cannot be checked: run it over a plain connection", word))
	}
}

// bodyWord returns the word for which a body can't be cleared, "" if it can.
// The words of EXECUTE FUNCTION and GRANT EXECUTE run nothing.
func (p *Policy) bodyWord(body string) string {
	tokens, err := scan(body)
	if err != nil || strings.IndexByte(body, 0) >= 0 {
		return "what the parser cannot read"
	}
	tokens = slices.DeleteFunc(tokens, isComment)
	at := func(i int) (pg_query.Token, string) {
		if i < 0 || i >= len(tokens) {
			return pg_query.Token_NUL, ""
		}
		return tokens[i].kind, lower(body[tokens[i].start:tokens[i].end])
	}
	for i := range tokens {
		kind, word := at(i)
		before, _ := at(i - 1)
		after, wordAfter := at(i + 1)
		switch {
		case kind == pg_query.Token_EXECUTE:
			if after != pg_query.Token_FUNCTION && after != pg_query.Token_PROCEDURE && before != pg_query.Token_GRANT && before != pg_query.Token_REVOKE {
				return word
			}
		case kind == pg_query.Token_UIDENT:
			return word // may spell any name
		case kind == pg_query.Token_SCONST || kind == pg_query.Token_USCONST:
			// a string may be decoded into anything, a nested body too
			if p.hit(strings.ReplaceAll(word, "'", " ")) != "" || strings.ContainsRune(word, '\\') {
				return word
			}
		case bodyPairs[word][wordAfter], word == "load" && after == pg_query.Token_SCONST:
			return word + " " + wordAfter
		}
	}
	return p.hit(withoutExecute(body, tokens))
}

// withoutExecute blanks the word EXECUTE where it has been judged, and the
// comments.
func withoutExecute(body string, tokens []token) string {
	var b strings.Builder
	for _, t := range tokens {
		if t.kind != pg_query.Token_EXECUTE {
			b.WriteString(body[t.start:t.end])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// bodyPairs are words which together change the session, or objects that they
// don't name.
var bodyPairs = map[string]map[string]bool{
	"set":      setOf("role", "session", "local", "names", "schema"),
	"local":    setOf("role", "schema"),
	"session":  setOf("authorization", "role"),
	"reset":    setOf("role", "session", "all"),
	"import":   setOf("foreign"),
	"reassign": setOf("owned"),
	"alter":    setOf("schema", "subscription", "system"),
	"create":   setOf("subscription", "language", "function", "procedure", "or"),
	"drop":     setOf("schema", "type", "domain", "extension", "function", "procedure", "routine", "aggregate", "operator", "owned", "language"),
}
