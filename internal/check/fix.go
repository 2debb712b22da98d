package check

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// ErrNotGuardable is what Guard returns for a text that cannot be guarded by
// adding to it.
var ErrNotGuardable = errors.New("statement cannot be guarded by adding to it")

// Guard returns the guarded form of a text that writes protected tables
// without a proof: the raise and the guard are added, with the token as a new
// last parameter, or with the placeholder that the statement already has at
// one of the two. What is there stays as it is, comments and hints too. The
// result is proved by the same check as any other text, and to be what was
// there with these additions.
//
// A text that needs no guard, or has it, is returned unchanged. The error is
// ErrNotGuardable or a *Violation.
func (p *Policy) Guard(sql string) (string, error) {
	if p.clears(sql) {
		return sql, nil
	}
	a := workspaces.Get().(*workspace)
	defer a.release()
	plan := p.planIn(a, sql)
	if plan.Refusal() == nil {
		return sql, nil
	}
	if len(a.checker.stmts) != 1 {
		return "", plan.Refusal()
	}
	guarded := p.guarded(&a.checker)
	if guarded == nil {
		return "", fmt.Errorf("%w: %w", ErrNotGuardable, plan.Refusal())
	}
	return guarded.text, nil
}

// guarded returns the plan of the guarded form of the text that a checker has
// read, nil if it has none.
func (p *Policy) guarded(c *checker) *Plan {
	f := p.fixer(c)
	if f == nil || !f.guard() {
		return nil
	}
	if plan := f.plan(); plan != nil && len(plan.Violations) == 0 {
		return plan
	}
	return nil
}

// fixer adds guards to one text.
type fixer struct {
	checker
	sqledit.Text
	root    *sqltree.Node   // the statement
	roots   []*sqltree.Node // and those beside it, if there are several
	growth  growth
	known   map[string]*sqltree.Node // expressions that have been parsed
	writes  []*sqltree.Node          // the writes to protected tables
	params  map[int64][]int32        // where each placeholder stands
	highest int64                    // the highest placeholder
	added   []string                 // the resources whose tokens are new placeholders, in order

	takeover  bool           // values that stand in the place of a token give way to it
	given     map[int]bool   // where placeholders are such values
	left      []int64        // placeholders in what was left out of the text, in order
	elsewhere map[int64]bool // what standsElsewhere found
	taken     map[int64]bool // the placeholders whose argument is not looked at

	hasGateColumn, hidesRows bool // see gate

	why string // what keeps the text from being guarded, if that is known
}

// cannot notes why the text can't be guarded.
func (f *fixer) cannot(why string) bool {
	f.why = defaultTo(f.why, why)
	return false
}

// fixer returns a fixer for the text that a checker has read, nil if it isn't one
// statement.
func (p *Policy) fixer(c *checker) *fixer {
	if len(c.stmts) != 1 {
		return nil
	}
	return p.scriptFixer(c)
}

// scriptFixer is fixer for a text of one statement or several.
func (p *Policy) scriptFixer(c *checker) *fixer {
	if len(c.stmts) == 0 {
		return nil
	}
	f := newFixer(p, c.sql, c.stmts[0].Get("stmt"), &c.lex)
	for _, raw := range c.stmts[1:] {
		f.roots = append(f.roots, raw.Get("stmt"))
	}
	f.params, f.given, f.taken, f.elsewhere = make(map[int64][]int32), make(map[int]bool), make(map[int64]bool), make(map[int64]bool)
	if len(f.Tokens) == 0 {
		return nil
	}
	for _, root := range f.roots {
		f.collect(root)
	}
	return f
}

func newFixer(p *Policy, sql string, root *sqltree.Node, lex *sqltext.Text) *fixer {
	return &fixer{
		checker: checker{policy: p, sql: sql}, root: root, roots: []*sqltree.Node{root}, Text: sqledit.New(sql, lex.Significant()),
		growth: newGrowth(), known: make(map[string]*sqltree.Node),
	}
}

// collect finds the writes to protected tables and the placeholders.
func (f *fixer) collect(n *sqltree.Node) {
	switch n.Kind() {
	case "UpdateStmt", "DeleteStmt", "InsertStmt", "MergeStmt":
		rel := n.Get("relation")
		for _, r := range f.policy.lookup(rel.Str("schemaname"), rel.Str("relname")) {
			if r.table != nil {
				f.writes = append(f.writes, n)
				break
			}
		}
	case "ParamRef":
		number, _ := n.Number("number")
		f.highest = max(f.highest, number)
		f.params[number] = append(f.params[number], n.Location)
	}
	for _, k := range n.Kids {
		f.collect(k)
	}
}

// guard notes what the writes lack, and reports whether it can be added.
func (f *fixer) guard() bool {
	for _, n := range f.writes {
		if f.takeover {
			f.findGiven(n)
		}
	}
	for _, n := range f.writes {
		done := len(f.Edits)
		if !f.fix(n) {
			return false
		}
		if f.takeover && len(f.Edits) > done && !n.Is("InsertStmt") && !f.runOnce(n) {
			return false
		}
	}
	return true
}

// plan makes the edits, and returns the plan of the text with them. Its violations
// say that nothing was made: the text doesn't show to be what it was made of, or
// isn't proved yet.
func (f *fixer) plan() *Plan {
	a := workspaces.Get().(*workspace)
	defer a.release()
	c := a.check(f.policy, f.Apply())
	c.madeBy = f
	return c.plan()
}

// made reports whether a tree is that of the fixer's statement, grown by what was
// added, and nothing else.
func (f *fixer) made(stmts []*sqltree.Node) bool {
	return slices.EqualFunc(f.roots, stmts, func(root, raw *sqltree.Node) bool { return f.growth.same(root, raw.Get("stmt")) })
}

// fix adds what one write lacks. It reports whether it could.
func (f *fixer) fix(n *sqltree.Node) bool {
	t, ok := f.targetOf(n)
	switch {
	case !ok && t.shared:
		return f.cannot("something else that it reads has the target's name: give the target an alias")
	case !ok:
		return f.cannot("its name stands for several protected tables: write the schema")
	case n.Is("MergeStmt"):
		return f.guardMerge(n, t)
	}
	clauses, ok := f.clausesOf(n)
	if !ok {
		return false
	}
	switch n.Kind() {
	case "UpdateStmt":
		return f.guardUpdate(n, t, clauses, f.reader(n, "fromClause"), nil)
	case "DeleteStmt":
		where := n.Get("whereClause")
		guards := f.findGuards(t, t.tables[0], conjuncts(where), f.reader(n, "usingClause"))
		return len(guards) > 0 || f.guardWhere(n, t, clauses, f.next(t.tables[0]))
	case "InsertStmt":
		done := len(f.Edits) + len(f.taken)
		if !f.guardInsert(n, t, clauses) {
			return false
		}
		isChanged := len(f.Edits)+len(f.taken) > done
		return !isChanged || !f.takeover || len(t.namesakes) == 0 || f.gate(n)
	}
	return false
}

// clausesOf finds the clauses of a write.
func (f *fixer) clausesOf(n *sqltree.Node) (sqledit.Clauses, bool) {
	w := sqledit.Write{Target: n.Get("relation").Offset(), From: -1, IsInsert: n.Is("InsertStmt")}
	if n.Is("UpdateStmt") {
		w.From = fromOf(n)
	}
	return f.FindClauses(w)
}

// fromOf returns where the first item of a statement's FROM stands, -1 if it has none.
func fromOf(n *sqltree.Node) int {
	from := n.Get("fromClause")
	if from == nil {
		return -1
	}
	return max(0, sqltree.FirstOffset(from))
}

// targetOf returns the target of a write if it is one table for certain.
func (f *fixer) targetOf(n *sqltree.Node) (target, bool) {
	t := f.target(n.Get("relation"), f.beside(n))
	return t, len(t.tables) == 1 && !t.shared
}

// guardUpdate adds the raise and the guard to an UPDATE or the action of an
// upsert, with the token that either of them already has, or else by default
// with the given one.
func (f *fixer) guardUpdate(at *sqltree.Node, t target, c sqledit.Clauses, read operandReader, fallback *operand) bool {
	table := t.tables[0]
	value, item, ok := raise(at.List("targetList"), table.TokenColumn)
	switch {
	case !ok && item.Get("val").Is("MultiAssignRef"):
		return f.cannot(table.TokenColumn + " is set by a query among several columns, or twice: set it by itself, once")
	case !ok:
		return f.cannot(table.TokenColumn + " is set twice, or in part: set it once")
	}
	guards := f.findGuards(t, table, conjuncts(conditionOf(at)), read)
	raised, isToken := operand{}, false
	if item != nil {
		raised, isToken = read(value)
	}
	var token string
	switch {
	case len(guards) > 0 && item != nil && !isToken:
		return f.cannot("it compares " + table.TokenColumn + " with a token, and sets it to something else")
	case len(guards) > 0:
		token = f.spell(guards[0].operand)
	case isToken && (!f.takeover || raised.name != "" && len(raised.rows) == 0): // EXCLUDED's is the inserted one
		token = f.spell(raised)
	case isToken || item != nil && f.takeover:
		if token, ok = f.take(value, table); !ok {
			return false
		}
	case fallback != nil:
		token = fallback.spelled()
	default:
		token = f.next(table)
	}
	switch {
	case f.takeover && item == nil && len(guards) > 0 && len(t.namesakes) > 0:
		return false // the guard is there, so nothing would have a gate
	case item == nil:
		f.Insert(f.EndBefore(c.SetEnd), ", "+sqltext.QuoteIfNeeded(table.TokenColumn)+" = "+token)
		f.growth.add(at, "targetList", setItem(table.TokenColumn, token))
	case isToken && (len(guards) > 0 || token == f.spell(raised)):
	case !f.takeover || !f.replaceSet(at, item, c, token):
		return false
	}
	return len(guards) > 0 || f.guardWhere(at, t, c, token)
}

// guardWhere adds the guard to a WHERE, or a WHERE with the guard. Where a bare
// name may also stand for an unprotected table the guard has a gate beside it,
// so that no token is written there.
func (f *fixer) guardWhere(at *sqltree.Node, t target, c sqledit.Clauses, token string) bool {
	table := t.tables[0]
	op := map[Mode]string{Strict: "<", Lease: "<="}[table.Mode]
	guard := fmt.Sprintf("%s %s %s", f.qualified(t, table.TokenColumn), op, token)
	if f.takeover && len(t.namesakes) > 0 && !at.Is("OnConflictClause") { // an upsert has the gate in RETURNING
		guard = "(" + guard + " AND " + gateCondition(t, true) + ")"
	}
	return f.restrict(at, c, guard)
}

// restrict adds a condition to a WHERE, or a WHERE with the condition.
func (f *fixer) restrict(at *sqltree.Node, c sqledit.Clauses, condition string) bool {
	where := conditionOf(at)
	member := f.expression(condition)
	switch {
	case where.Is("CurrentOfExpr"):
		return f.cannot("WHERE CURRENT OF has no place for a guard: write by key")
	case member == nil:
		return false
	}
	f.growth.of(at).member = member
	switch {
	case where == nil && at.Is("MergeWhenClause"):
		condition = " AND " + condition
	case where == nil:
		condition = " WHERE " + condition
	case where.Is("BoolExpr") && where.Str("boolop") == "OR_EXPR":
		f.Insert(f.Tokens[c.Where+1].Start, "(")
		condition = ") AND " + condition
	default:
		condition = " AND " + condition
	}
	f.Insert(f.EndBefore(c.End), condition)
	return true
}

// next returns the new placeholder for the token of a table: one for each
// resource.
func (f *fixer) next(t *Table) string {
	i := slices.Index(f.added, t.Resource)
	if i < 0 {
		i = len(f.added)
		f.added = append(f.added, t.Resource)
	}
	return "$" + strconv.FormatInt(f.highest+int64(i)+1, 10)
}

// spell writes an operand that stands in the statement.
func (f *fixer) spell(o operand) string {
	if o.literal > 0 {
		return fmt.Sprint(o.literal)
	}
	return o.spelled()
}

// expression parses an expression that many rows may have.
func (f *fixer) expression(text string) *sqltree.Node {
	n, ok := f.known[text]
	if !ok {
		n = expression(text)
		f.known[text] = n
	}
	return n
}

// placeholder parses a placeholder, which may have a cast. Those of all numbers are
// parsed once.
func (f *fixer) placeholder(text string) *sqltree.Node {
	digits := strings.TrimLeft(text[1:], "0123456789")
	number := text[1 : len(text)-len(digits)]
	n := f.expression("$1" + digits)
	if n == nil || number == "1" {
		return n
	}
	return n.WithNumber(number)
}

// showFix puts the guarded statement into a violation, on one line and without
// literals.
func (v *Violation) showFix(guarded string) {
	if text := Redact(guarded); text != "" && len(text) <= 4*sqltext.SnippetLength {
		v.Fix, v.fixesAll = text, true
		if strings.Contains(text, "?") {
			v.Fix += "   (? stands for your literal)"
		}
	}
}
