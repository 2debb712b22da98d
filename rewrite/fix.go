package rewrite

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	plan := p.fullPlan(sql)
	if plan.Refusal() == nil {
		return sql, nil
	}
	f := p.fixer(sql)
	if f == nil {
		return "", plan.Refusal()
	}
	guarded, ok := f.guard()
	if !ok || p.fullPlan(guarded).Refusal() != nil {
		return "", fmt.Errorf("%w: %w", ErrNotGuardable, plan.Refusal())
	}
	return guarded, nil
}

// fixer adds guards to one text.
type fixer struct {
	checker
	root    *node
	tokens  []token // without comments
	edits   []edit
	growth  growth
	writes  []*node                // the writes to protected tables
	params  map[int64]map[int]bool // where each placeholder stands
	highest int64                  // the highest placeholder
	added   []string               // the resources whose tokens are new placeholders, in order

	takeover bool           // values that stand in the place of a token give way to it
	given    map[int]bool   // where placeholders are such values
	taken    map[int64]bool // the placeholders whose argument is not looked at

	hasGateColumn, hidesRows bool // see gate
}

type edit struct {
	at, end int
	text    string
}

// fixer returns a fixer for a text, nil if it isn't one statement.
func (p *Policy) fixer(sql string) *fixer {
	root := parseOne(sql)
	if root == nil {
		return nil
	}
	f := &fixer{
		checker: checker{policy: p, sql: sql}, root: root, tokens: significant(sql), growth: newGrowth(),
		params: make(map[int64]map[int]bool), given: make(map[int]bool), taken: make(map[int64]bool),
	}
	if len(f.tokens) == 0 {
		return nil
	}
	f.collect(root)
	return f
}

// significant returns the tokens of a text that are no comments.
func significant(sql string) []token {
	tokens, err := scan(sql)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(tokens, isComment)
}

// collect finds the writes to protected tables and the placeholders.
func (f *fixer) collect(n *node) {
	switch n.kind() {
	case "UpdateStmt", "DeleteStmt", "InsertStmt", "MergeStmt":
		rel := n.get("relation")
		for _, r := range f.policy.lookup(rel.str("schemaname"), rel.str("relname")) {
			if r.table != nil {
				f.writes = append(f.writes, n)
				break
			}
		}
	case "ParamRef":
		number, _ := n.number("number")
		f.highest = max(f.highest, number)
		if f.params[number] == nil {
			f.params[number] = make(map[int]bool)
		}
		f.params[number][n.offset()] = true
	}
	for _, k := range n.kids {
		f.collect(k)
	}
}

// guard returns the text with what its writes lack, and whether it could be
// added.
func (f *fixer) guard() (string, bool) {
	for _, n := range f.writes {
		if f.takeover {
			f.findGiven(n)
		}
	}
	for _, n := range f.writes {
		if !f.fix(n) {
			return "", false
		}
	}
	return f.prove()
}

// prove returns the text with what was added, and whether it is proved to be
// that.
func (f *fixer) prove() (string, bool) {
	text := f.apply()
	return text, f.growth.proves(f.root, text)
}

// fix adds what one write lacks. It reports whether it could.
func (f *fixer) fix(n *node) bool {
	t, ok := f.targetOf(n)
	if !ok {
		return false
	}
	clauses, ok := f.clauses(n)
	if !ok {
		return false
	}
	switch n.kind() {
	case "UpdateStmt":
		return f.guardUpdate(n, t, clauses, f.reader(n, "fromClause"), nil)
	case "DeleteStmt":
		where := n.get("whereClause")
		guards := f.findGuards(t, t.tables[0], conjuncts(where), f.reader(n, "usingClause"))
		return len(guards) > 0 || f.guardWhere(n, t, clauses, f.next(t.tables[0]))
	case "InsertStmt":
		done := len(f.edits) + len(f.taken)
		if !f.guardInsert(n, t, clauses) {
			return false
		}
		isChanged := len(f.edits)+len(f.taken) > done
		return !isChanged || !f.takeover || len(t.namesakes) == 0 || f.gate(n, false)
	}
	return false
}

// targetOf returns the target of a write if it is one table for certain.
func (f *fixer) targetOf(n *node) (target, bool) {
	t := f.target(n.get("relation"), f.beside(n))
	return t, len(t.tables) == 1 && !t.shared
}

// guardUpdate adds the raise and the guard to an UPDATE or the action of an
// upsert, with the token that either of them already has, or else by default
// with the given one.
func (f *fixer) guardUpdate(at *node, t target, c clauses, read operandReader, fallback *operand) bool {
	table := t.tables[0]
	value, item, ok := raise(at.list("targetList"), table.TokenColumn)
	if !ok {
		return false
	}
	guards := f.findGuards(t, table, conjuncts(at.get("whereClause")), read)
	raised, isToken := operand{}, false
	if item != nil {
		raised, isToken = read(value)
	}
	var token string
	switch {
	case len(guards) > 0 && item != nil && !isToken: // it has a guard of its own, and another value
		return false
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
		f.insert(f.before(c.setEnd), ", "+identifier(table.TokenColumn)+" = "+token)
		f.growth.add(at, "targetList", setItem(table.TokenColumn, token))
	case isToken && (len(guards) > 0 || token == f.spell(raised)):
	case !f.takeover || !f.replaceSet(item, c, token):
		return false
	}
	return len(guards) > 0 || f.guardWhere(at, t, c, token)
}

// guardWhere adds the guard to a WHERE, or a WHERE with the guard. Where a bare
// name may also stand for an unprotected table the guard has a gate beside it,
// so that no token is written there.
func (f *fixer) guardWhere(at *node, t target, c clauses, token string) bool {
	table := t.tables[0]
	op := map[Mode]string{Strict: "<", Lease: "<="}[table.Mode]
	guard := fmt.Sprintf("%s %s %s", f.qualified(t, table.TokenColumn), op, token)
	if f.takeover && len(t.namesakes) > 0 && !at.is("OnConflictClause") { // an upsert has the gate in RETURNING
		guard = "(" + guard + " AND " + gateCondition(t, false, true) + ")"
	}
	return f.restrict(at, c, guard)
}

// restrict adds a condition to a WHERE, or a WHERE with the condition.
func (f *fixer) restrict(at *node, c clauses, condition string) bool {
	where := at.get("whereClause")
	member := expression(condition)
	if where.is("CurrentOfExpr") || member == nil {
		return false
	}
	f.growth.members[at] = member
	switch {
	case where == nil:
		condition = " WHERE " + condition
	case where.is("BoolExpr") && where.str("boolop") == "OR_EXPR":
		f.insert(f.tokens[c.where+1].start, "(")
		condition = ") AND " + condition
	default:
		condition = " AND " + condition
	}
	f.insert(f.before(c.end), condition)
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
	return fmt.Sprintf("$%d", f.highest+int64(i)+1)
}

// spell writes an operand that stands in the statement.
func (f *fixer) spell(o operand) string {
	if o.literal > 0 {
		return fmt.Sprint(o.literal)
	}
	return o.spelled()
}

// before returns where the token before the given one ends: what is inserted
// there stands before any comment in between.
func (f *fixer) before(token int) int { return f.tokens[token-1].end }

func (f *fixer) insert(at int, text string) { f.edits = append(f.edits, edit{at, at, text}) }

// apply makes the edits. Those at one place keep their order.
func (f *fixer) apply() string {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	last := 0
	for _, e := range f.edits {
		b.WriteString(f.sql[last:e.at])
		if e.at > 0 && joins(f.sql[e.at-1]) && joinsBefore(e.text) {
			b.WriteByte(' ')
		}
		b.WriteString(e.text)
		if e.end < len(f.sql) && joins(e.text[len(e.text)-1]) && joinsBefore(f.sql[e.end:]) {
			b.WriteByte(' ')
		}
		last = e.end
	}
	b.WriteString(f.sql[last:])
	return b.String()
}

// joinsBefore reports whether a text would go on with the word before it: "$1"
// before "WHERE" is no placeholder to the server, though it is to the parser.
func joinsBefore(text string) bool { return text[0] == '\'' || text[0] == '"' || joins(text[0]) }

// showFix puts the guarded statement into a violation, on one line and without
// literals.
func (v *Violation) showFix(guarded string) {
	if text := Redact(guarded); text != "" && len(text) <= 4*snippetLength {
		v.Fix = text
		if strings.Contains(text, "?") {
			v.Fix += "   (? stands for your literal)"
		}
	}
}
