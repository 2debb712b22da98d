package rewrite

// The statements below are refused on a protected table: how they are proved
// is not written yet.

func checkInsert(c *checker, n *node, top bool) {
	c.refuseWrite(n, n.get("relation"), nil, "INSERT into", UnguardedInsert)
}

func checkDelete(c *checker, n *node, top bool) {
	c.refuseWrite(n, n.get("relation"), n.list("usingClause"), "DELETE from", UnguardedDelete)
}

func checkMerge(c *checker, n *node, top bool) {
	c.refuseWrite(n, n.get("relation"), []*node{n.get("sourceRelation")}, "MERGE into", UnguardedMerge)
}

func (c *checker) refuseWrite(n, rel *node, beside []*node, verb string, rule Rule) {
	t := c.target(rel, beside)
	for _, table := range t.tables {
		c.report(violation(rule, rel, "%s protected table %s cannot be proved: only a guarded UPDATE can", verb, quoted(table)).on(table))
	}
	for _, k := range n.kids {
		if k.field != "relation" {
			c.walkIn(k, n)
		}
	}
}
