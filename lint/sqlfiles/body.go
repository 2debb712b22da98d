package sqlfiles

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/fencerow/fencerow/rewrite"
)

// A body in dollar quotes, of DO or CREATE FUNCTION, is code that the policy
// takes as a whole: it is refused if it names a protected table. In a migration
// that is no finding, but the plain writes in it are: those that don't so much
// as name the token column. Others may have the token in a variable.

// writeWords begin a write in a body.
var writeWords = map[pg_query.Token]bool{
	pg_query.Token_UPDATE: true, pg_query.Token_DELETE_P: true, pg_query.Token_INSERT: true,
	pg_query.Token_MERGE: true, pg_query.Token_TRUNCATE: true, pg_query.Token_WITH: true,
}

// beforeStatement are the words behind which a statement of PL/pgSQL begins.
var beforeStatement = map[string]bool{"": true, ";": true, ">>": true, "begin": true, "then": true, "else": true, "loop": true, "in": true, "query": true}

// bodies looks for plain writes in the bodies of a statement.
func (c *fileCheck) bodies(statement int) {
	s := c.file.statements[statement]
	for _, t := range c.file.tokens[s.first : s.last+1] {
		word := c.file.code[t.start:t.end]
		tag := dollarQuote.FindString(word)
		if t.kind != pg_query.Token_SCONST || tag == "" || !strings.HasSuffix(word[len(tag):], tag) {
			continue
		}
		start, end := t.start+len(tag), t.end-len(tag)
		tokens, _ := lex(c.file.code[start:end])
		for _, w := range writesIn(c.file.code[start:end], tokens) {
			c.bodyWrite(statement, start+w[0], start+w[1])
		}
	}
}

// writesIn returns where the writes in a body begin and end. RETURNING is left
// out: behind it PL/pgSQL says INTO what.
func writesIn(code string, tokens []token) [][2]int {
	var found [][2]int
	before, start, end, brackets, returning := "", -1, 0, 0, false
	for _, t := range tokens {
		if t.isComment() {
			continue
		}
		word := strings.ToLower(code[t.start:t.end])
		switch {
		case start < 0 && writeWords[t.kind] && beforeStatement[before]:
			start, brackets, returning = t.start, 0, false
		case start >= 0 && brackets == 0 && (word == ";" || word == "loop"):
			found = append(found, [2]int{start, end})
			start = -1
		case word == "(":
			brackets++
		case word == ")":
			brackets--
		case word == "returning" && brackets == 0:
			returning = true
		}
		before = word
		if !returning {
			end = t.end
		}
	}
	if start >= 0 {
		found = append(found, [2]int{start, end})
	}
	return found
}

// bodyWrite judges one of them.
func (c *fileCheck) bodyWrite(statement, start, end int) {
	q := query{text: c.file.code[start:end]}
	for _, v := range c.policy.Plan(q.text).Violations {
		unguarded := v.Rule < rewrite.ProtectedDDL || v.Rule == rewrite.ProtectedTruncate
		if offset, ok := v.Offset(); ok && unguarded && !c.namesToken(q.text, v.Table) {
			c.add(statement, v, &q, start+offset)
		}
	}
}

// namesToken reports whether a text names the token column of a table.
func (c *fileCheck) namesToken(text, table string) bool {
	for _, t := range c.policy.Tables() {
		if t.String() == table {
			return strings.Contains(strings.ToLower(text), strings.ToLower(t.TokenColumn))
		}
	}
	return false
}
