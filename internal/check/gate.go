package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// A write that is given a token by its bare name could reach a namesake that isn't
// protected, if the driver didn't ask the server which of the tables is meant; and
// one whose schema was written by the server's answer could reach another table than
// the bare name means by then. A gate holds the statement to what it was made for: a
// condition that is added to it, which holds while the table is the one that is
// meant, and ends the statement with an error otherwise, in the same step as the
// write.

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

// gate is what a plan has besides whose text was given a gate.
type gate struct {
	hasColumn bool // the rows have one more column, the last
	hidesRows bool // the rows have nothing but the gate's column
}

// adviseSchema adds to a violation that a bare name in the text may also stand
// for a table which isn't protected.
func (p *Policy) adviseSchema(v *Violation, name string) {
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

// sharedName returns the first bare name of a relation below the nodes that a
// namesake shares, "" if there is none.
func (p *Policy) sharedName(nodes ...*sqltree.Node) string {
	for _, n := range nodes {
		if n.Is("RangeVar") && p.isShared(n) {
			return n.Str("relname")
		}
		if name := p.sharedName(n.Kids...); name != "" {
			return name
		}
	}
	return ""
}

// isShared reports whether a relation goes by a bare name that may stand for a
// protected one, or one by which a protected one is reached, and for a namesake.
func (p *Policy) isShared(rel *sqltree.Node) bool {
	name := rel.Str("relname")
	return rel.Str("schemaname") == "" && len(p.namesakes[name]) > 0 && len(p.lookup("", name)) > 0
}

// shortened keeps a list for a message short.
func shortened(names []string) []string {
	const most = 3
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), "...")
}

// gate adds a gate to a write of a protected table that is open for all tables but
// its namesakes. It reports whether there is a place for a gate.
func (f *fixer) gate(n *sqltree.Node) bool {
	t := f.target(n.Get("relation"), f.beside(n))
	c, ok := f.clausesOf(n)
	return ok && !t.shared && f.gateRows(n, c, gateCondition(t, false))
}

// gateRows has an INSERT return the gate for each of its rows.
func (f *fixer) gateRows(n *sqltree.Node, c sqledit.Clauses, condition string) bool {
	item := outputItem(condition + " AS " + gateColumn)
	isWhole, returns := slices.Contains(f.roots, n), len(n.List("returningList")) > 0
	switch {
	case item == nil || returns && (!isWhole || len(f.roots) > 1):
		return false // what is around the INSERT would see the column
	case slices.ContainsFunc(n.List("returningList"), func(r *sqltree.Node) bool { return sameTree(r, item) }):
		return true // the text was given it before
	}
	if returns {
		f.Insert(f.EndBefore(f.statementEnd(c.End)), ", "+condition+" AS "+gateColumn)
	} else {
		f.Insert(f.EndBefore(c.End), " RETURNING "+condition+" AS "+gateColumn)
	}
	if isWhole && n == f.roots[0] { // the rows that the caller of a script gets are its first statement's
		f.hasGateColumn = true
		f.hidesRows = !returns
	}
	f.growth.add(n, "returningList", item)
	return true
}

// statementEnd returns the token that ends the statement of which the given
// token is one.
func (f *fixer) statementEnd(i int) int {
	for depth := 0; i < len(f.Tokens); i++ {
		switch f.SQL[f.Tokens[i].Start:f.Tokens[i].End] {
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
func (f *fixer) beside(n *sqltree.Node) []*sqltree.Node {
	switch n.Kind() {
	case "UpdateStmt":
		return n.List("fromClause")
	case "DeleteStmt":
		return n.List("usingClause")
	}
	return []*sqltree.Node{nil}
}

// gateCondition writes the condition of a gate that is closed for namesakes, for
// each row: its own table, or the partitioned table that it is a part of, isn't one
// of them. A write that may meet no row at all is also asked once what its name
// stands for, so that it doesn't pass for one that found nothing.
func gateCondition(t target, onceToo bool) string {
	list := anyOf(t.name, t.namesakes)
	row := sqltext.QuoteIfNeeded(t.ref()) + ".tableoid"
	condition := gateCase(t.name, row, row+" OPERATOR(pg_catalog.=) "+list+" OR pg_catalog.pg_partition_root("+row+")::pg_catalog.oid OPERATOR(pg_catalog.=) "+list, false)
	if !onceToo {
		return condition
	}
	named := oidOf(sqltext.QuoteName(t.name))
	return "(" + gateCase(t.name, named, named+" OPERATOR(pg_catalog.=) "+list, false) + " AND " + condition + ")"
}

// oidOf writes the oid of what a name, in quotes, stands for when the statement runs,
// which is NULL for nothing.
func oidOf(quoted string) string {
	return "pg_catalog.to_regclass(" + sqltext.QuoteLiteral(quoted) + ")::pg_catalog.oid"
}

// anyOf writes the right side of a comparison of an oid with those that namesakes
// have when the statement runs: one that has been made anew since the catalog was
// read is among them. They are read from the catalog, which takes no right on
// their schemas.
func anyOf(name string, namesakes []Namesake) string {
	schemas := make([]string, len(namesakes))
	for i, n := range namesakes {
		schemas[i] = sqltext.QuoteLiteral(n.Schema)
	}
	return "ANY (ARRAY(SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace" +
		" WHERE c.relname OPERATOR(pg_catalog.=) " + sqltext.QuoteLiteral(name) + " AND n.nspname OPERATOR(pg_catalog.=) ANY (ARRAY[" + strings.Join(schemas, ", ") + "]::pg_catalog.name[])))"
}

// gateCase writes a condition that is true or an error: the one or the other by
// whether the given one holds. The error is a text that is no number; the oid in it
// keeps PostgreSQL from working it out before the statement runs.
func gateCase(name, oid, condition string, isOpen bool) string {
	closed := fmt.Sprintf("pg_catalog.concat(%s, %s, ')')::pg_catalog.int8 IS NOT NULL", sqltext.QuoteLiteral(gateMark+name+" (oid "), oid)
	if isOpen {
		return "(CASE WHEN " + condition + " THEN true ELSE " + closed + " END)"
	}
	return "(CASE WHEN " + condition + " THEN " + closed + " ELSE true END)"
}

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
