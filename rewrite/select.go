package rewrite

import "github.com/fencerow/fencerow/internal/sqltree"

// checkSelect checks a query; what it does, its parts do.
func checkSelect(c *checker, n *sqltree.Node, _ bool) { c.walkFields(n, "") }

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
