package sqlfiles

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/rewrite"
)

// A body of DO or CREATE FUNCTION, in quotes of either kind, is code that the policy
// takes as a whole: it is refused if it names a protected table. In a migration
// that is no finding, but the plain writes in it are: those that don't so much
// as name the token column. Others may have the token in a variable.

// writeWords begin a write in a body.
var writeWords = map[parser.TokenKind]bool{
	parser.UPDATE: true, parser.DELETE: true, parser.INSERT: true,
	parser.MERGE: true, parser.TRUNCATE: true, parser.WITH: true,
	parser.COPY: true,
}

// beforeStatement are the words behind which a statement of PL/pgSQL begins.
var beforeStatement = map[string]bool{"": true, ";": true, ">>": true, "begin": true, "then": true, "else": true, "loop": true, "in": true, "query": true}

// checkBodies looks for plain writes in the bodies of a statement.
func (c *fileCheck) checkBodies(statement int) {
	s := c.file.statements[statement]
	before := parser.NOTOKEN
	runs := c.file.tokens[s.first].Kind == parser.DO
	for _, t := range c.file.tokens[s.first : s.last+1] {
		if t.IsComment() {
			continue
		}
		word := c.file.code[t.Start:t.End]
		isBody := runs || before == parser.AS || word[0] == '$'
		before = t.Kind
		if t.Kind != parser.SCONST && t.Kind != parser.USCONST || !isBody {
			continue
		}
		code, offsets := unquote(word)
		tokens, _ := sqltext.ScanPrefix(code)
		code = withoutInto(code, tokens)
		for _, w := range writesIn(code, tokens) {
			c.checkBodyWrite(statement, bodyOf{code, tokens, runs}, w, func(at int) int {
				if offsets != nil {
					at = offsets[min(at, len(offsets)-1)]
				}
				return t.Start + at
			})
		}
	}
}

// withoutInto blanks INTO and the variables behind it, which PL/pgSQL takes out
// of a statement before the parser sees it.
func withoutInto(body string, tokens []parser.Token) string {
	code, before, into, wanted := []byte(body), "", false, false
	for _, t := range tokens {
		if t.IsComment() {
			continue
		}
		word := strings.ToLower(body[t.Start:t.End])
		switch {
		case t.Kind == parser.INTO && before != "insert" && before != "merge":
			into, wanted = true, true
		case into && wanted && word == "strict":
		case into && wanted && t.IsName():
			wanted = false
		case into && !wanted && (word == "," || word == "."):
			wanted = true
		default:
			into = false
		}
		if into {
			copy(code[t.Start:t.End], strings.Repeat(" ", t.End-t.Start))
		}
		before = word
	}
	return string(code)
}

// bodyOf is a body: its code, and whether it runs where it stands.
type bodyOf struct {
	code   string
	tokens []parser.Token
	runs   bool
}

// writesIn returns where the writes in a body begin and end. RETURNING is left
// out: behind it PL/pgSQL says INTO what.
func writesIn(code string, tokens []parser.Token) [][2]int {
	var found [][2]int
	before, start, end, brackets, returning := "", -1, 0, 0, false
	for _, t := range tokens {
		if t.IsComment() {
			continue
		}
		word := strings.ToLower(code[t.Start:t.End])
		switch {
		case start < 0 && writeWords[t.Kind] && beforeStatement[before]:
			start, brackets, returning = t.Start, 0, false
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
			end = t.End
		}
	}
	if start >= 0 {
		found = append(found, [2]int{start, end})
	}
	return found
}

// checkBodyWrite judges one of these writes; place tells where in the file a byte of the body
// is.
func (c *fileCheck) checkBodyWrite(statement int, b bodyOf, w [2]int, place func(int) int) {
	q := query{text: b.code[w[0]:w[1]]}
	plan := c.policy.Plan(q.text)
	isSet := func(t *rewrite.Table) bool {
		earlier := b.tokens[:slices.IndexFunc(b.tokens, func(t parser.Token) bool { return t.Start == w[0] })]
		return setsToken(compactCode(b.code, earlier, false), t) || b.runs && c.hasSettingBefore(statement, t)
	}
	for _, v := range plan.Violations {
		unguarded := v.Rule.Class() == rewrite.UnprovenWrite || v.Rule == rewrite.ProtectedTruncate || v.Rule == rewrite.ProtectedCopy
		offset, ok := v.Offset()
		if !ok || !unguarded {
			continue
		}
		if i := slices.IndexFunc(plan.Writes(), func(w rewrite.Write) bool { return w.Table.String() == v.Table }); v.Rule == rewrite.UnguardedDelete && i >= 0 {
			t := plan.Writes()[i].Table
			if isSet(t) {
				continue
			}
			v.Message, v.Fix = lackingSetting(t)
		} else if c.namesToken(q.text, v.Table) {
			continue
		}
		c.add(statement, v, &q, place(w[0]+offset))
	}
	if !b.runs {
		return // whoever calls it may set the token
	}
	for _, write := range plan.Writes() {
		told := slices.ContainsFunc(plan.Violations, func(v rewrite.Violation) bool { return v.Rule == rewrite.UnguardedDelete })
		if write.Kind == "DELETE" && !told && !isSet(write.Table) {
			c.addLacking(statement, write.Table, place(w[0]))
		}
	}
}

// namesToken reports whether a text names the token column of a table.
func (c *fileCheck) namesToken(text, table string) bool {
	tokens, _ := sqltext.ScanPrefix(text)
	for _, t := range c.policy.Tables() {
		if t.String() == table {
			return slices.ContainsFunc(tokens, func(word parser.Token) bool {
				return word.IsName() && strings.EqualFold(strings.Trim(text[word.Start:word.End], `"`), t.TokenColumn)
			})
		}
	}
	return false
}
