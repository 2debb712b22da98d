package rewrite

// checkPrepare checks SQL's own prepared statements. Server-side names can be
// swapped under a statement that was checked, so everything that runs or
// removes one is refused; PREPARE alone is refused for a protected write.
func checkPrepare(c *checker, n *node, _ bool) {
	if n.kind() != "PrepareStmt" {
		c.report(violation(SQLPrepare, n, "%s works on server-side statements by name, which cannot be checked: use Prepare of database/sql", statementName(n.kind())))
		return
	}
	before := len(c.writes)
	c.walk(n.get("query"), n)
	if len(c.writes) > before {
		t := c.writes[before].Table
		c.report(violation(SQLPrepare, n, "PREPARE of a write to protected table %s: use Prepare of database/sql", quoted(t)).on(t))
	}
}
