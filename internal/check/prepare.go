package check

import "github.com/fencerow/fencerow/internal/sqltree"

// discards are what DISCARD may throw away: nothing that a statement is run by under its name, and
// no setting.
var discards = setOf("DISCARD_PLANS", "DISCARD_SEQUENCES", "DISCARD_TEMP")

// checkPrepare checks SQL's own prepared statements. Server-side names can be
// swapped under a statement that was checked, so everything that runs or
// removes one is refused; PREPARE alone is refused for a protected write.
func checkPrepare(c *checker, n *sqltree.Node, _ bool) {
	if n.Is("DiscardStmt") && discards[n.Str("target")] {
		return
	}
	if n.Kind() != "PrepareStmt" {
		c.report(violation(SQLPrepare, n, "%s works on server-side statements by name, which cannot be checked: use Prepare of database/sql", statementName(n.Kind())))
		return
	}
	before, own := len(c.writes), c.own
	c.own = nil
	c.walk(n.Get("query"), n)
	if c.own != nil {
		c.report(violation(SQLPrepare, n, "PREPARE of a statement with a name that the schema fencing has, too: what it stands for may be another object when it is executed; write the schema of the one that is meant, or use Prepare of database/sql"))
	}
	c.own = own
	if len(c.writes) > before {
		t := c.writes[before].Table
		c.report(violation(SQLPrepare, n, "PREPARE of a write to protected table %s: use Prepare of database/sql", quoted(t)).on(t))
	}
}
