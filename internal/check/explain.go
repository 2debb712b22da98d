package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// Explain says in a few lines which protected tables the text writes, what
// proves that it may be sent or what is missing, and the guarded text where it
// is rewritten. Literals are shown as "?".
func (p *Plan) Explain() string {
	var b strings.Builder
	for i, v := range p.Violations {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(v.Error() + "\n")
	}
	switch {
	case len(p.Violations) > 0:
	case p.Cleared:
		b.WriteString("names nothing that is protected: sent as it is\n")
	case len(p.writes) == 0:
		b.WriteString("writes no protected table: sent as it is\n")
	}
	if len(p.Violations) == 0 {
		for _, w := range p.writes {
			p.explainWrite(&b, w)
		}
	}
	if p.Rewritten() {
		b.WriteString("sent as: " + shown(p.text) + "\n")
	}
	return b.String()
}

func (p *Plan) explainWrite(b *strings.Builder, w Write) {
	fmt.Fprintf(b, "%s of protected table %s: mode %s, token column %s", w.Kind, quoted(w.Table), w.Table.Mode, w.Table.TokenColumn)
	if w.Table.Resource != "" {
		fmt.Fprintf(b, ", token of resource %q", w.Table.Resource)
	}
	b.WriteString("\n")
	if w.TopLevel {
		for _, g := range p.proof().guards {
			op := map[bool]string{false: "<", true: "<="}[g.equal]
			fmt.Fprintf(b, "  guard: %s %s %s\n", w.Table.TokenColumn, op, g.spelled())
		}
	}
	var places []string
	for _, use := range p.tokens {
		place := operand{param: use.param, literal: use.literal}.spelled()
		if p.replaces(use.param) {
			place += " (put there)"
		}
		if use.table == w.Table && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	fmt.Fprintf(b, "  token: %s\n", strings.Join(places, ", "))
}

// shown is a text on one line and without literals.
func shown(text string) string {
	tokens, err := parser.Scan(text)
	if err != nil {
		return "a text that cannot be shown"
	}
	return sqltext.RedactTokens(text, tokens)
}
