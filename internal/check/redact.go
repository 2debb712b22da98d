package check

import (
	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// locate fills in the snippet of a violation: the line of sql where it is,
// without any literal, since a literal may be somebody's data. A text that
// can't be scanned has no snippet: what its literals are is then unknown.
func (v *Violation) locate(sql string) {
	tokens, err := parser.Scan(sql)
	if err == nil {
		v.locateIn(sql, tokens)
	}
}

// locate fills in the snippets of what was found, scanning the text once.
func (c *checker) locate() {
	var tokens []parser.Token
	for _, v := range c.found {
		if v.offset < 0 {
			continue
		}
		if tokens == nil {
			var err error
			if tokens, err = c.lex.Tokens(); err != nil {
				return
			}
		}
		v.locateIn(c.sql, tokens)
	}
}

func (v *Violation) locateIn(sql string, tokens []parser.Token) {
	if v.offset < 0 || v.offset >= len(sql) {
		return
	}
	s := sqltext.SnippetAt(sql, tokens, v.offset)
	v.Line, v.Snippet, v.Column, v.Width = s.Line, s.Text, s.Column, s.Width
}

// Redact returns a text on one line for a message: its literals are "?", since a
// literal may be somebody's data, and its comments are left out. It is empty for a
// text that can't be scanned: what its literals are is then unknown.
func Redact(sql string) string { return sqltext.Redact(sql) }

// refuseFault returns the violation that a fault of the text is.
func refuseFault(f *sqltext.Fault) *Violation {
	if f == nil {
		return nil
	}
	return &Violation{Rule: faultRules[f.Kind], Message: f.Message, offset: -1}
}

// faultRules has the rule of each kind of fault.
var faultRules = map[sqltext.FaultKind]Rule{
	sqltext.NulByte: BadText, sqltext.NotUTF8: BadText, sqltext.TooLong: TooLarge, sqltext.LongOperator: TooDeep, sqltext.TooManyCopies: TooLarge, sqltext.TooDeep: TooDeep,
}
