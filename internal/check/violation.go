package check

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/rewrite/rules"
	"github.com/fencerow/fencerow/tokenctx"
)

// ErrRefused is what every [Violation] is: the statement was not sent or, where
// the violation has the database's error in it, was taken back there.
var ErrRefused = errors.New("statement refused")

// Violation is the reason why a statement must not be sent, or why the database
// refused it. It matches
// [ErrRefused] with errors.Is, and tokenctx.ErrNoToken where the reason is a
// missing token.
type Violation struct {
	Rule    Rule
	Table   string // the protected table, if one is concerned
	Message string // one line: what is wrong and what to do
	Fix     string // what to write instead, if known

	// Snippet is the line of the text that is at fault, with its literals
	// replaced by "?"; Line is its number, from 1, and Column and Width say
	// which of its bytes are meant. Line is 0 if there is no snippet.
	Snippet             string
	Line, Column, Width int

	// Location is the caller's file:line, as far as the driver knows it.
	Location string

	// Err is the database's own error, where it refused the statement.
	Err error

	fixesAll bool        // Fix is a whole text, which is accepted
	replaces bool        // what Fix has for WHERE takes the place of the comparison that the violation is at
	others   []Violation // what else the text has, and has to be mended besides

	newer  string // the message instead, where the server can parse the text; see NewerGrammar
	offset int    // where in the text, -1 if nowhere; resolved by locate

	parserFailed bool // the parser came to no answer
}

// Is reports whether target is ErrRefused, or tokenctx.ErrNoToken for a
// missing token.
func (v *Violation) Is(target error) bool {
	return target == ErrRefused || target == tokenctx.ErrNoToken && v.Rule == NoToken
}

// Unwrap returns the database's error, if there is one.
func (v *Violation) Unwrap() error { return v.Err }

// Headline returns the first line of Error: location, message, rule.
func (v *Violation) Headline() string {
	where := v.Location
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("%s%s (%s %s)", where, v.Message, v.Rule, v.Rule.Slug())
}

// Error returns a message like a lint line, complete in its first line, then
// the line of SQL with a caret, the fix and the rule's page.
func (v *Violation) Error() string {
	var b strings.Builder
	b.WriteString(v.Headline())
	if v.Line > 0 {
		gutter := fmt.Sprintf("    %d | ", v.Line)
		fmt.Fprintf(&b, "\n%s%s", gutter, v.Snippet)
		if v.Width > 0 {
			fmt.Fprintf(&b, "\n%*s| %s%s", len(gutter)-2, "",
				strings.Repeat(" ", utf8.RuneCountInString(v.Snippet[:v.Column-1])),
				strings.Repeat("^", utf8.RuneCountInString(v.Snippet[v.Column-1:v.Column-1+v.Width])))
		}
	}
	if v.Fix != "" {
		b.WriteString("\n  fix:  " + v.Fix)
	}
	for i := range v.others {
		fmt.Fprintf(&b, "\n  also: %s (%s %s)", v.others[i].Message, v.others[i].Rule, v.others[i].Rule.Slug())
		if v.others[i].Fix != "" {
			b.WriteString("\n  fix:  " + v.others[i].Fix)
		}
	}
	b.WriteString("\n  docs: " + rules.URL(string(v.Rule)) + ", or fencerow explain " + string(v.Rule))
	return b.String()
}

// Offset returns where in the text the violation is, as a number of bytes, and
// false if it is at no place of its own. Column counts in the snippet instead,
// which is short and without literals.
func (v *Violation) Offset() (int, bool) { return v.offset, v.offset >= 0 }

// violation makes a Violation at a node of the text.
func violation(rule Rule, at *sqltree.Node, format string, args ...any) *Violation {
	return &Violation{Rule: rule, Message: fmt.Sprintf(format, args...), offset: at.Offset()}
}

// on names the table of a violation.
func (v *Violation) on(t *Table) *Violation {
	v.Table = t.String()
	return v
}

// Refuse returns a violation that concerns no place in a text, for what a
// driver finds beside it.
func Refuse(rule Rule, message string) *Violation {
	return &Violation{Rule: rule, Message: message, offset: -1}
}

// Doc returns the page of the violation's rule, see [Rule.Doc].
func (v *Violation) Doc() string { return v.Rule.Doc() }
