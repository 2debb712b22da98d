package check

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// A bare name may stand for a protected table in one schema and for a namesake in
// another that isn't protected. Which one a statement writes is known only when it
// runs, since whatever changes the search path also changes that. So the driver asks
// the server, and sends the statement with the schema of the answer written before
// the name: what is sent names its tables itself, and is checked as any text is that
// does. Nothing that changes the search path meanwhile leads it anywhere else. If it
// has a place for a gate, it also ends with an error where the bare name means
// another table by then.

// Shared is what the writes of a text go by whose bare names stand for protected
// tables and may also stand for others. It is safe for concurrent use.
type Shared struct {
	policy  *Policy
	plan    *Plan // of the text by its bare names
	names   []string
	several bool // the text has several statements

	mu    sync.Mutex
	plans map[string]*Plan // by the answers
}

// Shared returns what the driver has to ask the server before the text is refused or
// rewritten, nil if there is nothing to be asked.
func (p *Plan) Shared() *Shared { return p.shared }

// sharedNames returns the shared names of the text that a checker has read, nil if
// it has none.
func (p *Policy) sharedNames(c *checker) *Shared {
	if len(p.namesakes) == 0 || len(c.sql) > maxRewritten {
		return nil
	}
	s := &Shared{policy: p, several: len(c.stmts) > 1}
	for _, raw := range c.stmts {
		for _, rel := range p.sharedTargets(raw.Get("stmt")) {
			if name := rel.Str("relname"); !slices.Contains(s.names, name) {
				s.names = append(s.names, name)
			}
		}
	}
	if len(s.names) == 0 {
		return nil
	}
	return s
}

// of returns the shared names as those of a plan.
func (s *Shared) of(plan *Plan) *Shared {
	if s != nil {
		s.plan = plan
	}
	return s
}

// runsAtOnce are the statements that run at once, and store nothing of their text.
var runsAtOnce = setOf("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "ExplainStmt", "CopyStmt", "TruncateStmt")

// sharedTargets returns the relations that a statement writes by a shared name.
func (p *Policy) sharedTargets(root *sqltree.Node) []*sqltree.Node {
	if !runsAtOnce[root.Kind()] {
		return nil
	}
	return p.targetsBelow(root, nil)
}

func (p *Policy) targetsBelow(n *sqltree.Node, out []*sqltree.Node) []*sqltree.Node {
	for _, rel := range targetsOf(n) {
		if p.isShared(rel) {
			out = append(out, rel)
		}
	}
	for _, k := range n.Kids {
		out = p.targetsBelow(k, out)
	}
	return out
}

// targetsOf returns the relations that a statement writes itself.
func targetsOf(n *sqltree.Node) []*sqltree.Node {
	switch n.Kind() {
	case "UpdateStmt", "DeleteStmt", "InsertStmt", "MergeStmt":
		return []*sqltree.Node{n.Get("relation")}
	case "CopyStmt":
		if rel := n.Get("relation"); rel != nil && n.Flag("is_from") {
			return []*sqltree.Node{rel}
		}
	case "TruncateStmt":
		return n.List("relations")
	}
	return nil
}

// What an answer begins with.
const (
	isRelation   = "=" // the name stands for the relation of the oid and schema that follow
	hasRules     = "~" // and an INSERT into that has a rule
	isMissing    = "+" // it stands for nothing, and what would be made by it goes to the schema that follows
	anyRelation  = isRelation + hasRules
	anyBeginning = anyRelation + isMissing
)

// Question returns the query that tells what the names mean in the session that is
// asked: it gives one row with an answer, a text or NULL, for each name.
func (s *Shared) Question() string {
	answers := make([]string, len(s.names))
	for i, name := range s.names {
		oid := oidOf(sqltext.QuoteName(name))
		answers[i] = "COALESCE((SELECT pg_catalog.concat(CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class OPERATOR(pg_catalog.=) c.oid AND r.ev_type OPERATOR(pg_catalog.=) '3') THEN " +
			sqltext.QuoteLiteral(hasRules) + " ELSE " + sqltext.QuoteLiteral(isRelation) + " END, c.oid, ' ', n.nspname)" +
			" FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace WHERE c.oid OPERATOR(pg_catalog.=) " + oid + ")," +
			" CASE WHEN " + oid + " IS NULL THEN pg_catalog.concat(" + sqltext.QuoteLiteral(isMissing+"0 ") + ", pg_catalog.current_schema()) END)"
	}
	return "SELECT " + strings.Join(answers, ", ")
}

// Names returns how many names are asked for.
func (s *Shared) Names() int { return len(s.names) }

// meaning is what a name stands for.
type meaning struct {
	schema    string
	oid       string // "0" if it stands for nothing
	hasRules  bool
	protected bool
}

// Plan returns the plan of the text by the answers: with the schemas written into
// it, or as it was given. What the answers don't tell is refused, or rewritten as a
// write of the protected tables with a gate that is closed for others.
func (s *Shared) Plan(answers []string) *Plan {
	key := strings.Join(answers, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	plan, ok := s.plans[key]
	if !ok {
		if plan = s.planFor(answers); s.plans == nil || len(s.plans) >= maxMeanings {
			s.plans = make(map[string]*Plan)
		}
		s.plans[key] = plan
	}
	return plan
}

// maxMeanings bounds the plans that are kept for one text.
const maxMeanings = 8

// PlanUnasked returns the plan of the text for a server that can't be asked, because
// the transaction has failed: it refuses the statement whatever it is, if it is one.
func (s *Shared) PlanUnasked() *Plan {
	if s.several {
		return s.unknown()
	}
	answers := make([]string, len(s.names))
	for i, name := range s.names {
		n := s.policy.namesakes[name][0]
		answers[i] = isRelation + strconv.FormatUint(uint64(n.OID), 10) + " " + n.Schema
	}
	return s.Plan(answers)
}

func (s *Shared) planFor(answers []string) (plan *Plan) {
	defer func() {
		if recover() != nil {
			plan = s.unknown()
		}
	}()
	meanings := make(map[string]meaning, len(s.names))
	anyProtected := false
	for i, name := range s.names {
		m, ok := s.policy.meaning(name, answers[i])
		if !ok {
			return s.unknown()
		}
		meanings[name] = m
		anyProtected = anyProtected || m.protected
	}
	if anyProtected && !s.mayRewrite() {
		return s.plan
	}
	sql := s.plan.Given()
	a := workspaces.Get().(*workspace)
	defer a.release()
	c := a.check(s.policy, sql)
	c.text()
	f := s.policy.scriptFixer(c)
	if f == nil {
		return s.unknown()
	}
	for _, root := range f.roots {
		if runsAtOnce[root.Kind()] && !f.qualify(root, meanings, !anyProtected) {
			return s.unknown()
		}
	}
	out := f.plan()
	out.gate, out.direct = &gate{hasColumn: f.hasGateColumn, hidesRows: f.hidesRows}, false
	if anyProtected {
		if out = s.policy.Plan(f.Edited); len(out.Violations) > 0 || !f.proves() {
			return s.plan
		}
		same := *out
		out = &same
	}
	out.given, out.shared = sql, nil
	out.Makes, out.ChangesCatalog = s.plan.Makes, out.ChangesCatalog || s.plan.ChangesCatalog
	return out
}

// mayRewrite reports whether a write by one of the names may be rewritten.
func (s *Shared) mayRewrite() bool {
	return slices.ContainsFunc(s.names, func(name string) bool {
		return slices.ContainsFunc(s.policy.lookup("", name), func(r *relation) bool { return r.table != nil && r.table.Rewrite })
	})
}

// unknown returns the plan where the answers don't tell which table is meant.
func (s *Shared) unknown() *Plan {
	if len(s.plan.Violations) == 0 {
		return s.plan
	}
	same := *s.plan
	same.Violations, same.shared = slices.Clone(s.plan.Violations), nil
	s.policy.adviseSchema(&same.Violations[0], s.names[0])
	return &same
}

// meaning reads an answer. It isn't ok if the name stands for a relation that wasn't
// there when the catalog was read, or that was another one then.
func (p *Policy) meaning(name, answer string) (m meaning, ok bool) {
	oid, schema, ok := strings.Cut(strings.TrimLeft(answer, anyBeginning), " ")
	if !ok || schema == "" {
		return m, false
	}
	m = meaning{schema: schema, oid: oid, hasRules: strings.HasPrefix(answer, hasRules)}
	switch {
	case len(p.lookup(schema, name)) > 0:
		m.protected = true
	case oid != "0":
		ok = slices.ContainsFunc(p.namesakes[name], func(n Namesake) bool {
			return n.Schema == schema && strconv.FormatUint(uint64(n.OID), 10) == oid
		})
	}
	return m, ok
}

// qualify writes the schemas before the shared names that are written below n, and
// adds gates where there is a place for one.
func (f *fixer) qualify(n *sqltree.Node, meanings map[string]meaning, hasGates bool) bool {
	for _, rel := range targetsOf(n) {
		if !f.policy.isShared(rel) {
			continue
		}
		m := meanings[rel.Str("relname")]
		at := f.TokenAt(rel.Offset())
		if at < 0 || m.schema == "" {
			return false
		}
		f.Insert(rel.Offset(), sqltext.QuoteName(m.schema)+".")
		f.growth.of(rel).added = append(f.growth.of(rel).added, &sqltree.Node{Type: sqltree.ScalarType, In: rel.Type.Field("schemaname"), Text: m.schema})
		if hasGates && !f.gateMeaning(n, rel.Str("relname"), m) {
			return false
		}
	}
	for _, k := range n.Kids {
		if !f.qualify(k, meanings, hasGates) {
			return false
		}
	}
	return true
}

// gateMeaning adds a gate to a write, if it has a place for one, that is open while
// the bare name means what it did when the server was asked. The gate reads no
// column, and so takes no right on the table but that of the write.
func (f *fixer) gateMeaning(n *sqltree.Node, name string, m meaning) bool {
	named := oidOf(sqltext.QuoteName(name))
	meant := sqltext.QuoteLiteral(m.oid) + "::pg_catalog.oid"
	if m.oid == "0" {
		meant = oidOf(sqltext.QuoteName(m.schema) + "." + sqltext.QuoteName(name))
	}
	condition := gateCase(name, named, named+" OPERATOR(pg_catalog.=) "+meant, true)
	switch n.Kind() {
	case "MergeStmt":
		return f.gateActions(n, condition)
	case "UpdateStmt", "DeleteStmt":
		c, ok := f.clausesOf(n)
		return ok && (n.Get("whereClause").Is("CurrentOfExpr") || f.restrict(n, c, condition))
	case "InsertStmt":
		c, ok := f.clausesOf(n)
		if ok && !m.hasRules {
			f.gateRows(n, c, condition) // it has none in some places
		}
		return ok
	}
	return true
}

// gateActions adds a gate to the conditions of a MERGE's actions.
func (f *fixer) gateActions(n *sqltree.Node, condition string) bool {
	whens, thens, ands := n.List("mergeWhenClauses"), f.ActionWords(n.Get("relation").Offset(), parser.THEN), f.ActionConditions(n.Get("relation").Offset())
	if len(thens) != len(whens) || len(ands) != len(whens) {
		return false
	}
	for i, when := range whens {
		if when.Str("commandType") == "CMD_NOTHING" {
			continue
		}
		f.growth.of(when).member = f.expression(condition)
		if own := when.Get("condition"); own.Is("BoolExpr") && own.Str("boolop") == "OR_EXPR" {
			f.Insert(f.Tokens[ands[i]+1].Start, "(")
			f.Insert(f.EndBefore(thens[i]), ") AND "+condition)
		} else {
			f.Insert(f.EndBefore(thens[i]), " AND "+condition)
		}
	}
	return true
}
