package rewrite

import (
	"slices"
	"strings"
)

// utilityRules has the statements beside queries and DML that may be sent.
var utilityRules = map[string]statementRule{
	// nothing in them writes a row
	"TransactionStmt": allow, "VariableShowStmt": allow, "FetchStmt": allow, "ClosePortalStmt": allow, "ListenStmt": allow,
	"UnlistenStmt": allow, "NotifyStmt": allow, "CheckPointStmt": allow, "ConstraintsSetStmt": allow, "LockStmt": allow, "VacuumStmt": allow,

	"VariableSetStmt": checkVariableSet,

	// a query inside
	"ExplainStmt": inner, "DeclareCursorStmt": inner, "CreateTableAsStmt": inner, "CopyStmt": checkCopy, "CallStmt": inner,

	// names only
	"TruncateStmt": checkTruncate,
	"CreateStmt":   checkDDL, "IndexStmt": checkDDL, "ViewStmt": checkDDL, "AlterTableStmt": checkDDL, "RenameStmt": checkDDL,
	"DropStmt": checkDrop, "CommentStmt": checkDDL, "GrantStmt": checkDDL, "CreateSeqStmt": checkDDL, "AlterSeqStmt": checkDDL,
	"CreateSchemaStmt": checkDDL, "CreateEnumStmt": checkDDL, "AlterEnumStmt": checkDDL, "CreateStatsStmt": checkDDL,
	"ReindexStmt": checkDDL, "RefreshMatViewStmt": checkDDL, "CreateExtensionStmt": checkDDL,
}

func allow(*checker, *node, bool) {}

// inner checks the statement or query that a utility statement runs, as if it
// were executed.
func inner(c *checker, n *node, _ bool) {
	for _, k := range n.kids {
		switch k.field {
		case "query", "funccall", "into":
			c.walkIn(k, n)
		}
	}
}

// checkInto checks the table that a query creates.
func checkInto(c *checker, n *node) {
	rel := n.get("rel")
	for _, t := range c.policy.byName[rel.str("relname")] {
		c.report(violation(ProtectedDDL, rel, "a table called like protected table %s would take its place: choose another name", quoted(t)).on(t))
		return
	}
}

func checkCopy(c *checker, n *node, _ bool) {
	if n.flag("is_program") {
		c.report(violation(HiddenCode, n, "COPY ... PROGRAM runs a command on the server, which cannot be checked; use a plain connection"))
	}
	c.walkIn(n.get("query"), n)
	if rel := n.get("relation"); rel != nil && n.flag("is_from") {
		t := c.target(rel, nil)
		for _, table := range t.tables {
			c.report(violation(ProtectedCopy, rel, "COPY into protected table %s cannot carry a guard: copy into a staging table, then INSERT ... SELECT with the token", quoted(table)).on(table))
		}
	}
}

func checkTruncate(c *checker, n *node, _ bool) {
	for _, rel := range n.list("relations") {
		t := c.target(rel, nil)
		for _, table := range t.tables {
			c.report(violation(ProtectedTruncate, rel, "TRUNCATE of protected table %s cannot carry a guard: use DELETE with a guard, or a plain connection", quoted(table)).on(table))
		}
	}
}

// checkDDL refuses a change of structure that names a protected table.
func checkDDL(c *checker, n *node, _ bool) {
	names := c.policy.names()
	if at := findText(n, func(s string) bool { return s == "fencing" || slices.Contains(names, s) }); at != nil {
		v := violation(ProtectedDDL, n, "%s names protected table %q or schema fencing: change its structure over a plain connection, as migrations.Up does", statementName(n.kind), at.text)
		if tables := c.policy.byName[at.text]; tables != nil {
			v.on(tables[0])
		}
		c.report(v)
	}
}

// checkDrop also refuses to drop the schema of a protected table.
func checkDrop(c *checker, n *node, top bool) {
	checkDDL(c, n, top)
	switch n.str("removeType") {
	case "OBJECT_SCHEMA":
		for _, t := range c.policy.tables {
			if findText(n, func(s string) bool { return s == t.Schema }) != nil {
				c.report(violation(ProtectedDDL, n, "DROP SCHEMA of protected table %s: use a plain connection", quoted(t)).on(t))
			}
		}
	case "OBJECT_EXTENSION", "OBJECT_TYPE", "OBJECT_DOMAIN", "OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE", "OBJECT_SEQUENCE", "OBJECT_TRIGGER":
		c.report(violation(ProtectedDDL, n, "%s can take a protected table, its columns or its triggers along: use a plain connection", statementName(n.kind)))
	}
}

// findText returns the first string below n that matches.
func findText(n *node, match func(string) bool) *node {
	if n.kind == scalarKind && !n.isNum && match(n.text) {
		return n
	}
	for _, k := range n.kids {
		if at := findText(k, match); at != nil {
			return at
		}
	}
	return nil
}

// statementName turns a node's kind into words: "AlterTableStmt" is
// "ALTER TABLE".
func statementName(kind string) string {
	var b strings.Builder
	for i, r := range strings.TrimSuffix(kind, "Stmt") {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
