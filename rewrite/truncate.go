package rewrite

import "github.com/fencerow/fencerow/internal/sqltree"

// checkTruncate refuses TRUNCATE of a protected table, and of one that takes a
// protected table along with CASCADE.
func checkTruncate(c *checker, n *sqltree.Node, _ bool) {
	for _, rel := range n.List("relations") {
		t := c.target(rel, nil)
		for _, table := range t.tables {
			c.report(violation(ProtectedTruncate, rel, "TRUNCATE of protected table %s cannot carry a guard: use DELETE with a guard, or a plain connection", quoted(table)).on(table))
		}
		event := "TRUNCATE"
		if n.Str("behavior") == "DROP_CASCADE" {
			event = "TRUNCATE CASCADE"
		}
		c.checkIndirect(t, event, nil)
	}
}
