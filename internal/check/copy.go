package check

import "github.com/fencerow/fencerow/internal/sqltree"

// checkCopy checks COPY. A query inside is checked as if it were executed.
func checkCopy(c *checker, n *sqltree.Node, _ bool) {
	switch {
	case n.Flag("is_program"):
		c.report(violation(HiddenCode, n, "COPY ... PROGRAM runs a command on the server, which cannot be checked: use a plain connection"))
	case !n.Flag("is_from") && n.Str("filename") != "":
		c.report(violation(HiddenCode, n, "COPY ... TO a file may write over any file of the server, its configuration and its tables among them: send the rows to the client with COPY ... TO STDOUT, or use a plain connection"))
	}
	before := len(c.found)
	c.walk(n.Get("query"), n)
	for _, v := range c.found[before:] {
		if v.Rule.Class() == UnprovenWrite && v.Fix != "" {
			v.Fix = "COPY takes no placeholder for the token: send the statement in it by itself, with RETURNING, and in that statement " + v.Fix
		}
	}
	c.walk(n.Get("whereClause"), n)
	rel := n.Get("relation")
	if !n.Flag("is_from") {
		c.checkUse(rel)
	}
	if rel == nil || !n.Flag("is_from") {
		return
	}
	t := c.target(rel, nil)
	c.checkIndirect(t, "INSERT", nil, nil, nil)
	for _, table := range t.tables {
		c.report(violation(ProtectedCopy, rel, "COPY into protected table %s cannot carry a guard: copy into a staging table, then INSERT ... SELECT with the token", quoted(table)).on(table))
	}
}
