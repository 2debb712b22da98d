package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkSelect checks a query; what it does, its parts do.
func checkSelect(c *checker, n *sqltree.Node, _ bool) {
	c.noteRead(n)
	c.walkFields(n, "")
}

// noteRead notes the placeholders that a query compares with the token column of the one
// protected table that it reads, as a queue's poll chooses its rows: they get the
// column's type, and tokenctx.Arg may stand there.
func (c *checker) noteRead(query *sqltree.Node) {
	from := query.List("fromClause")
	if c.stored || len(from) != 1 || !from[0].Is("RangeVar") || query.Get("whereClause") == nil {
		return
	}
	relations := c.policy.lookup(from[0].Str("schemaname"), from[0].Str("relname"))
	if len(relations) == 0 || slices.ContainsFunc(relations, func(r *relation) bool { return r.table == nil }) {
		return
	}
	t := target{at: from[0], schema: from[0].Str("schemaname"), name: from[0].Str("relname"), alone: true}
	if alias := from[0].Get("alias"); alias != nil {
		t.alias = alias.Str("aliasname")
		if len(alias.List("colnames")) > 0 {
			return
		}
	}
	first := relations[0].table
	if t.schema == "" && len(c.policy.namesakes[t.name]) > 0 ||
		slices.ContainsFunc(relations, func(r *relation) bool {
			return r.table.TokenColumn != first.TokenColumn || r.table.Resource != first.Resource
		}) ||
		t.schema == "" && slices.ContainsFunc(c.stmts, func(stmt *sqltree.Node) bool { return namesItem(stmt, t.name) }) {
		return
	}
	for _, n := range conjuncts(query.Get("whereClause")) {
		_, left, right, _, ok := boundOf(n)
		if !ok {
			continue
		}
		if t.isColumn(right, first.TokenColumn) {
			left, right = right, left
		}
		if t.isColumn(left, first.TokenColumn) && right.Is("ParamRef") {
			number, _ := right.Number("number")
			c.tokenPos.add(right.Offset())
			c.compared = append(c.compared, tokenUse{table: first, param: number, offset: right.Offset()})
		}
	}
}

// namesItem reports whether a statement has an item of that name in a WITH.
func namesItem(n *sqltree.Node, name string) bool {
	return n.Is("CommonTableExpr") && n.Str("ctename") == name || slices.ContainsFunc(n.Kids, func(k *sqltree.Node) bool { return namesItem(k, name) })
}

// checkInto checks the table that SELECT INTO or CREATE TABLE AS makes. Called
// like a protected table it would take its place.
func checkInto(c *checker, n *sqltree.Node) {
	rel := n.Get("rel")
	if c.policy.isWord(rel.Str("relname")) || rel.Str("schemaname") == "fencing" {
		c.report(violation(ProtectedDDL, rel, "a table called %q would take the place of what the protection rests on: choose another name", rel.Str("relname")))
	}
}

// checkInner checks the statement, query or call that a statement runs, as if
// it were executed: EXPLAIN whatever its options, DECLARE, CREATE TABLE AS,
// CALL.
func checkInner(c *checker, n *sqltree.Node, _ bool) {
	for _, k := range n.Kids {
		switch k.Field() {
		case "query", "funccall", "into":
			if rule := statementKinds[k.Kind()].check; rule != nil {
				rule(c, k, false)
			} else {
				c.walk(k, n)
			}
		}
	}
}
