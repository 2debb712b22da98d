package check

import "github.com/fencerow/fencerow/internal/sqltree"

// checkDelete checks a DELETE. On a protected table it is provable with a
// guard in the AND list of its WHERE. USING, WITH and RETURNING are free.
func checkDelete(c *checker, n *sqltree.Node, top bool) {
	t := c.target(n.Get("relation"), n.List("usingClause"))
	c.checkIndirect(t, "DELETE", nil, n, n)
	for _, table := range t.tables {
		c.proveDelete(n, t, table, top)
	}
	c.walkFields(n, "relation")
}

func (c *checker) proveDelete(n *sqltree.Node, t target, table *Table, top bool) {
	where := n.Get("whereClause")
	c.write(n, table, "DELETE", top)
	if c.refuseForm(t, table, where, "DELETE from", "USING") {
		return
	}
	read := c.reader(n, "usingClause")
	guards := c.findGuards(t, table, conjuncts(where), read)
	if len(guards) == 0 {
		c.report(c.noGuard(n, t, table, "DELETE from", UnguardedDelete, read))
		return
	}
	c.keep(c.proveAll(table, guards), top)
	c.changes = append(c.changes, change{n, n, table, guards})
}
