package rewrite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A bare name may stand for a protected table in one schema and for a namesake
// in another that isn't protected. Which one a statement writes is known only
// when it runs, since whatever changes the search path also changes that. So an
// unguarded statement has two plans: as a write of the protected table it is
// refused or rewritten, and as a write of the namesake it is sent. The driver asks
// the server which of the two is meant, and a gate holds the statement to the
// answer: a condition that is added to it, which holds while the rows are those of
// the tables that the statement was checked for, and ends the statement with an
// error otherwise, in the same step as the write.

// gateMark begins the text that PostgreSQL quotes in the error of a closed gate.
const gateMark = "fencerow: bare name "

// gateColumn is the name of a gate's place among the columns of RETURNING.
const gateColumn = "fencerow_gate"

// ClosedGate returns the bare name of the statement whose gate the message of a
// PostgreSQL error comes from, and whether it comes from one. The error has the
// SQLSTATE 22P02.
func ClosedGate(message string) (name string, ok bool) {
	_, rest, ok := strings.Cut(message, gateMark)
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest, " (oid ")
	return name, ok
}

// elsewherePlan returns the plan of a text as a write of what its bare names may stand
// for besides protected tables, nil if there is none. Each write has a gate that is
// open for the namesakes only.
func (p *Policy) elsewherePlan(c *checker) *Plan {
	if len(c.sql) > maxRewritten {
		return nil
	}
	f := p.fixer(c)
	if f == nil || !gateRoots[f.root.kind()] {
		return nil
	}
	writes := f.bareWrites(f.root, nil)
	if len(writes) == 0 || f.hasOtherTarget(f.root, writes) {
		return nil
	}
	under := *p
	under.meant = make(map[string]bool)
	for _, n := range writes {
		under.meant[n.get("relation").str("relname")] = true
		if !f.gate(n, true) {
			return nil
		}
	}
	f.policy = &under
	out := f.plan()
	if len(out.Violations) > 0 {
		return nil
	}
	out.gate = &gate{text: c.sql, hasColumn: f.hasGateColumn, hidesRows: f.hidesRows}
	out.direct = false
	out.question = p.questionOf(under.meant)
	return out
}

// gateRoots are the statements in which a gate may stand: those that run at once,
// and store nothing of their text.
var gateRoots = setOf("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "ExplainStmt", "CopyStmt")

// hasOtherTarget reports whether a statement below n writes, in a place for which
// there is no gate, a table by one of the bare names that the writes have.
func (f *fixer) hasOtherTarget(n *node, writes []*node) bool {
	switch n.kind() {
	case "MergeStmt", "CopyStmt", "IntoClause":
		field := "relation"
		if n.is("IntoClause") {
			field = "rel"
		}
		if rel := n.get(field); rel != nil && rel.str("schemaname") == "" && slices.ContainsFunc(writes, func(w *node) bool { return w.get("relation").str("relname") == rel.str("relname") }) {
			return true
		}
	}
	return slices.ContainsFunc(n.kids, func(k *node) bool { return f.hasOtherTarget(k, writes) })
}

// questionOf writes the query whether all of the bare names mean namesakes of
// protected tables, or nothing, in the session that is asked.
func (p *Policy) questionOf(names map[string]bool) string {
	var conditions []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		oid := "pg_catalog.to_regclass(" + literal(quoteName(name)) + ")::pg_catalog.oid"
		conditions = append(conditions, "COALESCE("+oid+" OPERATOR(pg_catalog.=) "+anyOid(p.namesakes[name])+", "+oid+" IS NULL)")
	}
	return "SELECT " + strings.Join(conditions, " AND ")
}

// Elsewhere returns the plan of the text for where its bare names mean tables that
// aren't protected although a protected one has the name, too, and the query that
// tells whether they do: it gives one boolean, in the session that the text is for.
// The plan is nil where there is no such plan.
func (p *Plan) Elsewhere() (plan *Plan, question string) {
	if p.elsewhere == nil {
		return nil, ""
	}
	return p.elsewhere, p.elsewhere.question
}

// gate is what a plan has besides whose text was given a gate.
type gate struct {
	text      string // as it was given
	hasColumn bool   // the rows have one more column, the last
	hidesRows bool   // the rows have nothing but the gate's column
}

// bareWrites collects the writes below n whose bare name may stand for a
// protected table, or for one by which a protected table is reached, and for a
// namesake that is a table.
func (f *fixer) bareWrites(n *node, out []*node) []*node {
	switch n.kind() {
	case "UpdateStmt", "DeleteStmt", "InsertStmt":
		rel := n.get("relation")
		schema, name := rel.str("schemaname"), rel.str("relname")
		if schema == "" && f.policy.mayGate(name) {
			out = append(out, n)
		}
	}
	for _, k := range n.kids {
		out = f.bareWrites(k, out)
	}
	return out
}

// mayGate reports whether a gate tells what a bare name stands for: its rows are
// those of a table, and nothing is written before a row is there, as a trigger
// for each statement would.
func (p *Policy) mayGate(name string) bool {
	known := p.lookup("", name)
	return len(known) > 0 && slices.ContainsFunc(p.namesakes[name], func(n Namesake) bool { return n.IsTable }) &&
		!slices.ContainsFunc(known, func(r *relation) bool { return r.view || r.system || len(r.writers)+len(r.replaced) > 0 })
}

// adviseSchema adds to a violation that a bare name in the text may also stand
// for a table which isn't protected.
func (p *Policy) adviseSchema(v *Violation, stmts []*node) {
	name := ""
	for _, raw := range stmts {
		if name == "" {
			name = p.sharedName(raw)
		}
	}
	if name == "" || !bareNameRules[v.Rule] {
		return
	}
	var protected []string
	for _, r := range p.lookup("", name) {
		protected = append(protected, r.Schema+"."+r.Name.Name)
	}
	v.Message += fmt.Sprintf("; the bare name %q stands for %s, and may stand for %s.%s, which is not protected: write the schema to say which is meant",
		name, strings.Join(shortened(protected), ", "), p.namesakes[name][0].Schema, name)
}

// bareNameRules are the rules that a write of the other table wouldn't break.
var bareNameRules = map[Rule]bool{UnguardedUpdate: true, UnguardedDelete: true, UnguardedInsert: true, UnguardedUpsert: true, UnguardedMerge: true,
	ProtectedTruncate: true, ProtectedCopy: true, CascadeWrite: true, ViewWrite: true, IndirectWrite: true}

// sharedName returns the first bare name of a relation below n that a namesake
// shares, "" if there is none.
func (p *Policy) sharedName(n *node) string {
	if n.is("RangeVar") && n.str("schemaname") == "" {
		if name := n.str("relname"); len(p.namesakes[name]) > 0 && len(p.lookup("", name)) > 0 {
			return name
		}
	}
	for _, k := range n.kids {
		if name := p.sharedName(k); name != "" {
			return name
		}
	}
	return ""
}

// shortened keeps a list for a message short.
func shortened(names []string) []string {
	const most = 3
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), "...")
}

// gate adds a gate to a write. If besides is true the gate is open for the
// namesakes of protected tables, and else for all tables but these. It reports
// whether there is a place for a gate.
func (f *fixer) gate(n *node, besides bool) bool {
	rel := n.get("relation")
	t := f.target(rel, f.beside(n))
	c, ok := f.clauses(n)
	if !ok || t.shared {
		return false
	}
	if n.is("InsertStmt") {
		return f.gateRows(n, c, gateCondition(t, besides, false))
	}
	return f.restrict(n, c, gateCondition(t, besides, true))
}

// gateRows has an INSERT return the gate for each of its rows.
func (f *fixer) gateRows(n *node, c clauses, condition string) bool {
	item := outputItem(condition + " AS " + gateColumn)
	isWhole, returns := n == f.root, len(n.list("returningList")) > 0
	switch {
	case item == nil || returns && !isWhole:
		return false // what is around the INSERT would see the column
	case slices.ContainsFunc(n.list("returningList"), func(r *node) bool { return sameTree(r, item) }):
		return true // the text was given it before
	}
	if returns {
		f.insert(f.before(f.statementEnd(c.end)), ", "+condition+" AS "+gateColumn)
	} else {
		f.insert(f.before(c.end), " RETURNING "+condition+" AS "+gateColumn)
	}
	f.hasGateColumn = f.hasGateColumn || isWhole
	f.hidesRows = f.hidesRows || isWhole && !returns
	f.growth.add(n, "returningList", item)
	return true
}

// statementEnd returns the token that ends the statement of which the given
// token is one.
func (f *fixer) statementEnd(i int) int {
	for depth := 0; i < len(f.tokens); i++ {
		switch f.sql[f.tokens[i].start:f.tokens[i].end] {
		case "(", "[":
			depth++
		case ")", "]":
			if depth--; depth < 0 {
				return i
			}
		case ";":
			return i
		}
	}
	return i
}

// beside lists what stands beside the target of a write.
func (f *fixer) beside(n *node) []*node {
	switch n.kind() {
	case "UpdateStmt":
		return n.list("fromClause")
	case "DeleteStmt":
		return n.list("usingClause")
	}
	return []*node{nil}
}

// gateCondition writes the condition of a gate, for each row: its own table, or
// the partitioned table that it is a part of, is one of the namesakes or isn't. A
// write that may meet no row at all is also asked once what its name stands for,
// so that it doesn't pass for one that found nothing.
func gateCondition(t target, besides, onceToo bool) string {
	list := anyOf(t.name, t.namesakes)
	if besides {
		list = anyOid(t.namesakes)
	}
	row := identifier(t.ref()) + ".tableoid"
	condition := t.gateCase(row, row+" OPERATOR(pg_catalog.=) "+list+" OR pg_catalog.pg_partition_root("+row+")::pg_catalog.oid OPERATOR(pg_catalog.=) "+list, besides)
	if !onceToo {
		return condition
	}
	named := "pg_catalog.to_regclass(" + literal(quoteName(t.name)) + ")::pg_catalog.oid"
	return "(" + t.gateCase(named, named+" OPERATOR(pg_catalog.=) "+list, besides) + " AND " + condition + ")"
}

// anyOid writes the right side of a comparison of an oid with those that namesakes
// had when the catalog was read: a protected table that has come to one of their
// names since isn't among them.
func anyOid(namesakes []Namesake) string {
	oids := make([]string, 0, len(namesakes))
	for _, n := range namesakes {
		if n.IsTable {
			oids = append(oids, strconv.FormatUint(uint64(n.OID), 10))
		}
	}
	return "ANY ('{" + strings.Join(oids, ",") + "}'::pg_catalog.oid[])"
}

// anyOf writes the right side of a comparison of an oid with those that namesakes
// have when the statement runs: one that has been made anew since the catalog was
// read is among them. They are read from the catalog, which takes no right on
// their schemas.
func anyOf(name string, namesakes []Namesake) string {
	schemas := make([]string, len(namesakes))
	for i, n := range namesakes {
		schemas[i] = literal(n.Schema)
	}
	return "ANY (ARRAY(SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace" +
		" WHERE c.relname OPERATOR(pg_catalog.=) " + literal(name) + " AND n.nspname OPERATOR(pg_catalog.=) ANY (ARRAY[" + strings.Join(schemas, ", ") + "]::pg_catalog.name[])))"
}

// gateCase writes a condition that is true or an error. The error is a text that
// is no number; the oid in it keeps PostgreSQL from working it out before the
// statement runs.
func (t target) gateCase(oid, isNamesake string, besides bool) string {
	closed := fmt.Sprintf("pg_catalog.concat(%s, %s, ')')::pg_catalog.int8 IS NOT NULL", literal(gateMark+t.name+" (oid "), oid)
	if besides {
		return "(CASE WHEN " + isNamesake + " THEN true ELSE " + closed + " END)"
	}
	return "(CASE WHEN " + isNamesake + " THEN " + closed + " ELSE true END)"
}

// quoteName writes a name between quotes, whatever it is.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal writes a string constant, which standard_conforming_strings keeps from
// having escapes.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Gated reports whether the text was given a gate, which ends the statement with
// an error where a bare name means a protected table when it runs; see
// [ClosedGate]. [Plan.Text] is then what is to be sent.
func (p *Plan) Gated() bool { return p.gate != nil }

// GateColumn reports whether the rows of the text have one more column than
// those of the text that was given, the last, and whether they have no other.
func (p *Plan) GateColumn() (has, alone bool) {
	if p.gate == nil {
		return false, false
	}
	return p.gate.hasColumn, p.gate.hidesRows
}
