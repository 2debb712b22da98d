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
// result is proved by the same check as any other text.
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
	if checkText(sql) != nil {
		return "", plan.Refusal()
	}
	stmts, err := parse(sql)
	if err != nil || len(stmts) != 1 {
		return "", plan.Refusal()
	}
	f := &fixer{checker: checker{policy: p, sql: sql}, tokens: significant(sql)}
	if len(f.tokens) == 0 {
		return "", plan.Refusal()
	}
	f.collect(stmts[0].get("stmt"))
	f.next = fmt.Sprintf("$%d", f.highest+1)
	for _, n := range f.writes {
		if !f.fix(n) {
			return "", fmt.Errorf("%w: %w", ErrNotGuardable, plan.Refusal())
		}
	}
	guarded := f.apply()
	if v := p.fullPlan(guarded).Refusal(); v != nil {
		return "", fmt.Errorf("%w: %w", ErrNotGuardable, plan.Refusal())
	}
	return guarded, nil
}

// fixer adds guards to one text.
type fixer struct {
	checker
	tokens  []token // without comments
	writes  []*node // the writes to protected tables
	highest int64   // the highest placeholder
	next    string  // the placeholder that is added
	edits   []edit
}

type edit struct {
	at   int
	text string
}

// significant returns the tokens of a text that are no comments.
func significant(sql string) []token {
	tokens, err := scan(sql)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(tokens, isComment)
}

// collect finds the writes to protected tables and the highest placeholder.
func (f *fixer) collect(n *node) {
	switch n.kind {
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
	}
	for _, k := range n.kids {
		f.collect(k)
	}
}

// fix adds what one write lacks. It reports whether it could.
func (f *fixer) fix(n *node) bool {
	field := map[string]string{"UpdateStmt": "fromClause", "DeleteStmt": "usingClause"}[n.kind]
	beside := []*node{nil}
	if field != "" {
		beside = n.list(field)
	}
	t := f.target(n.get("relation"), beside)
	if len(t.tables) != 1 || t.shared {
		return false
	}
	clauses, ok := f.clauses(n)
	if !ok {
		return false
	}
	switch n.kind {
	case "UpdateStmt":
		return f.guardUpdate(n, t, clauses, f.next, n.list("targetList"), n.get("whereClause"), f.reader(n, field))
	case "DeleteStmt":
		return f.guardWhere(t, clauses, f.next, n.get("whereClause"), f.reader(n, field))
	case "InsertStmt":
		return f.guardInsert(n, t, clauses)
	}
	return false
}

// guardUpdate adds the raise and the guard, with the token that either of them
// already has.
func (f *fixer) guardUpdate(n *node, t target, clauses clauses, token string, sets []*node, where *node, read operandReader) bool {
	table := t.tables[0]
	value, at, ok := raise(sets, table.TokenColumn)
	if !ok || where.is("CurrentOfExpr") {
		return false
	}
	if at != nil {
		raised, ok := read(value)
		if !ok {
			return false
		}
		token = f.spell(raised)
	} else {
		if guards := f.findGuards(t, table, conjuncts(where), read); len(guards) > 0 {
			token = f.spell(guards[0].operand)
		}
		f.insert(f.before(clauses.setEnd), ", "+identifier(table.TokenColumn)+" = "+token)
	}
	return f.guardWhere(t, clauses, token, where, read)
}

// guardWhere adds the guard to a WHERE, or a WHERE with the guard.
func (f *fixer) guardWhere(t target, clauses clauses, token string, where *node, read operandReader) bool {
	table := t.tables[0]
	if where.is("CurrentOfExpr") {
		return false
	}
	if len(f.findGuards(t, table, conjuncts(where), read)) > 0 {
		return true
	}
	op := map[Mode]string{Strict: "<", Lease: "<="}[table.Mode]
	guard := fmt.Sprintf("%s %s %s", f.qualified(t, table.TokenColumn), op, token)
	if where == nil {
		f.insert(f.before(clauses.end), " WHERE "+guard)
		return true
	}
	if where.is("BoolExpr") && where.str("boolop") == "OR_EXPR" {
		f.insert(f.tokens[clauses.where+1].start, "(")
		guard = ") AND " + guard
	} else {
		guard = " AND " + guard
	}
	f.insert(f.before(clauses.end), guard)
	return true
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

func (f *fixer) insert(at int, text string) { f.edits = append(f.edits, edit{at, text}) }

// apply makes the edits. Those at one place keep their order.
func (f *fixer) apply() string {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	last := 0
	for _, e := range f.edits {
		b.WriteString(f.sql[last:e.at])
		b.WriteString(e.text)
		last = e.at
	}
	b.WriteString(f.sql[last:])
	return b.String()
}

// showFix puts the guarded statement into a violation, on one line and without
// literals.
func (v *Violation) showFix(guarded string) {
	tokens, err := scan(guarded)
	if err != nil {
		return
	}
	text, _, _ := redact(guarded, tokens, 0)
	if text = strings.Join(strings.Fields(text), " "); len(text) <= 4*snippetLength {
		v.Fix = text
		if strings.Contains(text, "?") {
			v.Fix += "   (? stands for your literal)"
		}
	}
}
