package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// unreadViolation refuses a text that doesn't parse. It names the place, and the
// word by which the text came to be checked. The parser's own text is left out where
// it may quote a literal.
func (p *Policy) unreadViolation(l *sqltext.Text, err error) *Violation {
	v := &Violation{Rule: Unparsable, offset: -1}
	near := ""
	var perr *parser.Error
	if errors.As(err, &perr) && perr.Character > 0 {
		v.offset = sqltext.ByteOffset(l.SQL, perr.Character-1)
		near = l.WordAt(v.offset)
	}
	if perr == nil {
		v.parserFailed = true
		v.Message = fmt.Sprintf("SQL text cannot be checked: %v; shorten it or pass a long list as an array parameter, and please report it if it is short", err)
		return v
	}
	cause := ""
	if near != "" {
		cause = fmt.Sprintf(" (syntax error at or near %q)", near)
	}
	instead := newerAt(l, v.offset)
	what, because := "SQL text cannot be parsed, so it cannot be checked"+cause, p.checkedFor(l.SQL)
	switch {
	case l.HasOtherPlaceholders():
		v.Message = what + ": write placeholders as $1, $2, or pass pgx.NamedArgs for @name"
	case instead != "":
		v.Message = what + ", " + because + ": it looks " + newerThanRead + instead
	default:
		v.Message = what + ", " + because + ": correct the syntax, or, if it is newer than the grammar of PostgreSQL 16 that fencerow reads, " + unreadAdvice
	}
	if instead == "" {
		instead = unreadAdvice
	}
	v.newer = what + ", " + because + ": the server can parse it, so it is " + newerThanRead + instead
	return v
}

// unreadAdvice is what to do about grammar that isn't known.
const unreadAdvice = "write it in the older grammar, or send it over a plain connection if it writes no protected table"

const newerThanRead = "newer than the grammar of PostgreSQL 16 that fencerow reads: "

// checkedFor says why a text wasn't left unread.
func (p *Policy) checkedFor(sql string) string {
	switch hit := p.hit(sql); {
	case p.quick.never || len(p.closure.Unseen) > 0:
		return "and every text is checked, as what reaches a protected table has no name to look for"
	case hit != "" && !strings.Contains(hit, "\x00"):
		return fmt.Sprintf("and it is checked because it has the name or word %q", hit)
	}
	return "and it is checked because it is not one plain query or write alone"
}

// NewerGrammar returns the violation of a text that doesn't parse, as it is to be told
// where the server can parse it.
func (v *Violation) NewerGrammar() *Violation {
	newer := *v
	if v.newer != "" {
		newer.Message = v.newer
	}
	return &newer
}

// newerGrammar are constructs of PostgreSQL 17 and 18: the words that stand before the
// place where the parser of 16 gives up, the one that stands there, a word that the
// text begins with, if any, and what passes instead.
var newerGrammar = []struct {
	before  []string
	at      string
	in      string
	instead string
}{
	{[]string{"not", "matched"}, "by", "", "write WHEN NOT MATCHED for NOT MATCHED BY TARGET, and an UPDATE or DELETE of its own, with a guard, for NOT MATCHED BY SOURCE"},
	{[]string{"returning"}, "with", "", "write RETURNING old.column, new.column without WITH"},
	{nil, "returning", "merge", "leave RETURNING out of the MERGE, or write INSERT ... ON CONFLICT DO UPDATE or UPDATE ... RETURNING"},
	{[]string{"json_table", "("}, "", "", "use jsonb_to_recordset, jsonb_array_elements or jsonb_path_query"},
	{[]string{"json_value", "("}, "", "", "use ->> or jsonb_path_query_first"},
	{[]string{"json_query", "("}, "", "", "use -> or jsonb_path_query"},
	{[]string{"json_exists", "("}, "", "", "use @? or jsonb_path_exists"},
}

// newerAt returns what passes instead of a construct that is newer than the grammar,
// if the parser gave up at one.
func newerAt(l *sqltext.Text, offset int) string {
	tokens := l.Significant()
	at := slices.IndexFunc(tokens, func(t parser.Token) bool { return t.Start == offset })
	if offset < 0 || at < 0 {
		return ""
	}
	word := func(i int) string {
		if i < 0 || i >= len(tokens) || tokens[i].IsLiteral() {
			return ""
		}
		return sqltext.Lower(l.SQL[tokens[i].Start:tokens[i].End])
	}
	for _, g := range newerGrammar {
		if g.at != "" {
			if word(at) == g.at && (g.in == "" || word(0) == g.in) && endsWith(g.before, at, word) {
				return g.instead
			}
			continue
		}
		// the parser gives up within the brackets
		for i := at; i >= 0; i-- {
			if endsWith(g.before, i, word) {
				return g.instead
			}
		}
	}
	return ""
}

// endsWith reports whether the words before a token are the given ones.
func endsWith(words []string, at int, word func(int) string) bool {
	for i, w := range words {
		if word(at-len(words)+i) != w {
			return false
		}
	}
	return true
}
