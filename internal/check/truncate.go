package check

import "github.com/fencerow/fencerow/internal/sqltree"

// checkTruncate refuses TRUNCATE of a protected table, and of one that takes a
// protected table along with CASCADE.
func checkTruncate(c *checker, n *sqltree.Node, _ bool) {
	if n.Flag("restart_seqs") && c.policy.closure.HasOwnedSequence {
		c.report(violation(ProtectedTruncate, n, "TRUNCATE ... RESTART IDENTITY may reset a sequence that tokens come from, since one belongs to a column: leave RESTART IDENTITY out, let tokens come from a sequence of their own, or use a plain connection"))
	}
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
