package check

import (
	"database/sql/driver"
	"slices"
	"sync"

	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/tokenctx"
)

// rewriting is what was done to a text to have it guarded.
type rewriting struct {
	text  string         // the caller's
	given int64          // its placeholders
	plain *Plan          // of the text as it was given, if it may be sent
	later *latePlan      // that plan, where it isn't made before it is asked for
	added int            // placeholders that it has more now, at the end: tokens all
	taken map[int64]bool // placeholders whose argument gives way to the token, whatever it is
}

// latePlan is the plan of a text as it was given, made when it is asked for. It keeps no
// more of the check than the text.
type latePlan struct {
	policy *Policy
	text   string
	once   sync.Once
	plan   *Plan
}

func (l *latePlan) make() *Plan {
	l.once.Do(func() { l.plan = l.policy.fullPlan(l.text) })
	return l.plan
}

// maxRewritten is the longest text that is rewritten, in bytes.
const maxRewritten = 1 << 20

// Rewritten reports whether the text was guarded by the policy: [Plan.Text] is
// then what it was made into, or its arguments are replaced. It is the case for
// writes to tables with [Table.Rewrite].
func (p *Plan) Rewritten() bool { return p.rewriting != nil }

// Text returns the text that the plan is for: the one that was given, or what it
// was rewritten into.
func (p *Plan) Text() string { return p.text }

// Given returns the text that was given.
func (p *Plan) Given() string {
	switch {
	case p.given != "":
		return p.given
	case p.rewriting != nil:
		return p.rewriting.text
	}
	return p.text
}

// Added returns how many placeholders the text has more than the one that was
// given. [Plan.Bind] adds their arguments.
func (p *Plan) Added() int {
	if p.rewriting == nil {
		return 0
	}
	return p.rewriting.added
}

// rewritten returns the plan of the guarded form of a text, nil if it has none
// or needs none. The values that a program writes back as it has read them, in
// the place of a token, give way to it. Where the text has a guard by itself,
// its values are the program's word on the token, and are held to it.
func (p *Policy) rewritten(plan *Plan, c *checker) (out *Plan) {
	sql := plan.text
	if !plan.mayBeRewritten() || len(sql) > maxRewritten {
		return nil
	}
	defer func() {
		if recover() != nil {
			out = nil // the text is refused as it is
		}
	}()
	f := p.fixer(c)
	if f == nil || !takesPlaceholders[f.root.Kind()] {
		plan.sayWhyNot(whyNotText(c.stmts))
		return nil
	}
	f.takeover = true
	defer func() {
		if out == nil {
			plan.sayWhyNot(f.why)
		}
	}()
	switch {
	case !f.guard() || len(f.Edits)+len(f.taken) == 0:
		return nil
	case len(f.Edits) == 0 && len(plan.Violations) == 0:
		return plan.withArguments(&rewriting{text: sql, given: f.highest, added: len(f.added), taken: f.taken})
	case len(f.Edits) == 0:
		return nil
	}
	out = f.plan()
	if len(out.Violations) > 0 {
		return nil
	}
	out.rewriting = &rewriting{text: sql, given: f.highest, added: len(f.added), taken: f.taken}
	if f.sharesName() {
		out.gate = &gate{hasColumn: f.hasGateColumn, hidesRows: f.hidesRows}
	}
	if out.direct = false; out.countsAnyMeant() {
		out.attests, out.later.attestOnce = true, sync.Once{} // with what the check was made of, it may be done already
	}
	if len(plan.Violations) == 0 {
		out.rewriting.plain = plan
	}
	return out
}

// whyNotText says why a text is of no kind that is rewritten.
func whyNotText(stmts []*sqltree.Node) string {
	switch {
	case len(stmts) != 1:
		return "a text of several statements isn't"
	case stmts[0].Get("stmt").Is("MergeStmt"):
		return "a MERGE isn't"
	}
	return statementName(stmts[0].Get("stmt").Kind()) + " takes no placeholder for the token"
}

// sayWhyNot adds to the first violation why the text wasn't rewritten, if it is for a write
// that a rewriting would have proved.
func (p *Plan) sayWhyNot(why string) {
	if len(p.Violations) > 0 && why != "" && p.Violations[0].Rule.Class() == UnprovenWrite {
		p.Violations[0].Message += " (not rewritten: " + why + ")"
	}
}

// sharesName reports whether a protected write's bare name may stand for a table
// that isn't protected.
func (f *fixer) sharesName() bool {
	return slices.ContainsFunc(f.writes, func(n *sqltree.Node) bool { return len(f.target(n.Get("relation"), nil).namesakes) > 0 })
}

// withArguments returns the plan for the same text, some arguments of which give way
// to the token.
func (p *Plan) withArguments(how *rewriting) *Plan {
	same := *p
	how.plain, same.rewriting, same.direct = p, how, false
	return &same
}

// Plain returns the plan of the text as it was given where that is guarded by
// itself, nil where it isn't or nothing was rewritten.
func (p *Plan) Plain() *Plan {
	switch {
	case p.rewriting == nil:
		return nil
	case p.rewriting.later == nil:
		return p.rewriting.plain
	}
	if plain := p.rewriting.later.make(); len(plain.Violations) == 0 {
		return plain
	}
	return nil
}

// mayBeRewritten reports whether a plan is for writes to tables whose statements
// are rewritten, and one of them lacks a proof or has values in it that nothing
// is compared with.
func (p *Plan) mayBeRewritten() bool {
	lacks := len(p.Violations) > 0
	for _, w := range p.writes {
		if !w.Table.Rewrite {
			return false
		}
		lacks = lacks || w.Kind == "INSERT"
	}
	return len(p.writes) > 0 && lacks
}

// takesPlaceholders are the statements that one may be added to.
var takesPlaceholders = setOf("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt")

// maxArguments is how many PostgreSQL takes with one statement.
const maxArguments = 1<<16 - 1

// extend adds the arguments of the placeholders that the text has more, and
// returns a violation if those that are there would stand for others.
func (p *Plan) extend(args *[]driver.NamedValue) *Violation {
	if p.rewriting == nil {
		return nil
	}
	switch given := len(*args); {
	case int64(given) != p.rewriting.given:
		return violation(MissingArgument, nil, "mismatched param and argument count: a statement that is sent with a token added has %d placeholders, and was passed %d arguments: pass one for each", p.rewriting.given, given)
	case given+p.rewriting.added > maxArguments:
		return violation(TokenArgument, nil, "a statement that is sent with a token added has no room for it among %d arguments: write fewer rows at once", given)
	}
	for range p.rewriting.added {
		*args = append(*args, driver.NamedValue{Ordinal: len(*args) + 1, Value: tokenctx.Arg})
	}
	for param := range p.rewriting.taken {
		(*args)[param-1].Value = tokenctx.Arg
	}
	return nil
}

// replaces reports whether the argument of a placeholder is the token whatever
// was passed for it.
func (p *Plan) replaces(param int64) bool {
	return p.rewriting != nil && (param > p.rewriting.given || p.rewriting.taken[param])
}
