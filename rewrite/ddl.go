package rewrite

import (
	"slices"
	"strings"
)

// checkDDL refuses a change of structure that names a protected table or
// anything its protection rests on, in whatever schema: a relation of the same
// name elsewhere could take its place.
func checkDDL(c *checker, n *node, _ bool) {
	if at := c.namesProtected(n); at != nil {
		c.reportDDL(n, at)
	}
	c.walkExpressions(n)
}

// checkSchemaDDL also refuses to rename, move or give away the schema of a
// protected table.
func checkSchemaDDL(c *checker, n *node, top bool) {
	checkDDL(c, n, top)
	kind := n.str(map[string]string{"RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType", "AlterOwnerStmt": "objectType"}[n.kind])
	if kind == "OBJECT_SCHEMA" {
		c.checkSchemas(n)
	}
}

// checkDrop refuses drops that name something protected, or that may take it
// along: of its schema, and with CASCADE of what columns or triggers use.
func checkDrop(c *checker, n *node, top bool) {
	checkDDL(c, n, top)
	cascade := n.str("behavior") == "DROP_CASCADE"
	switch n.str("removeType") {
	case "OBJECT_SCHEMA":
		c.checkSchemas(n)
	case "OBJECT_EXTENSION", "OBJECT_TYPE", "OBJECT_DOMAIN", "OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE", "OBJECT_AGGREGATE",
		"OBJECT_LANGUAGE", "OBJECT_OPERATOR", "OBJECT_OPCLASS", "OBJECT_OPFAMILY", "OBJECT_COLLATION", "OBJECT_ACCESS_METHOD":
	default:
		return
	}
	if cascade {
		c.report(violation(ProtectedDDL, n, "DROP ... CASCADE of this kind can take columns, triggers or functions of a protected table along: leave CASCADE out, or use a plain connection"))
	}
}

// refuseDDL refuses changes of structure whose reach a text doesn't show.
func refuseDDL(c *checker, n *node, _ bool) {
	c.report(violation(ProtectedDDL, n, "%s reaches objects that it does not name, protected tables among them: use a plain connection", statementName(n.kind)))
}

// checkSchemas refuses a statement that names a schema which the protection
// rests on.
func (c *checker) checkSchemas(n *node) {
	if at := findText(n, c.policy.holdsProtected); at != nil {
		c.report(violation(ProtectedDDL, n, "schema %q holds a protected table or what its protection rests on: change it over a plain connection", at.text))
	}
}

func (c *checker) reportDDL(n, at *node) {
	v := violation(ProtectedDDL, n, "%s names %q, which is a protected table or what its protection rests on: change its structure over a plain connection, as migrations do", statementName(n.kind), at.text)
	if v.offset < 0 {
		v.offset = firstOffset(n)
	}
	for _, r := range c.policy.byName[at.text] {
		if r.table != nil {
			v.on(r.table)
			break
		}
	}
	c.report(v)
}

// namesProtected returns the first name in a change of structure that the
// protection rests on. Columns, constants and parameters are no such names.
func (c *checker) namesProtected(n *node) *node {
	// RENAME and SET SCHEMA can bring a name from elsewhere to where it counts
	if n.kind == "RenameStmt" || n.kind == "AlterObjectSchemaStmt" {
		return findName(n, c.policy.isWord, nil)
	}
	return findName(n, c.policy.isWord, c.policy.elsewhere)
}

// columnFields hold names of columns, constraints and the like.
var columnFields = setOf("colname", "conname", "keys", "fk_attrs", "pk_attrs", "fk_del_set_cols", "including", "indexcolname", "colnames", "aliascolnames")

// findName returns the first name below n that matches and isn't qualified with
// a schema in which it stands for something else.
func findName(n *node, match func(string) bool, elsewhere func(schema, name string) bool) *node {
	switch {
	case n == nil || n.kind == "A_Const" || n.kind == "ColumnRef" || columnFields[n.field]:
		return nil
	case n.kind == "RangeVar" && elsewhere != nil && elsewhere(n.str("schemaname"), n.str("relname")) && n.str("relpersistence") != "t":
		return nil
	case n.kind == "DropStmt" && droppedByName[n.str("removeType")] && elsewhere != nil:
		for _, object := range n.list("objects") {
			parts, ok := stringList(object.list("items"))
			if at := findText(object, match); at != nil && !(ok && len(parts) < 3 && elsewhere(strings.Join(parts[:len(parts)-1], ""), parts[len(parts)-1])) {
				return at
			}
		}
		return nil
	case n.kind == scalarKind:
		if !n.isNum && match(n.text) {
			return n
		}
		return nil
	}
	for _, k := range n.kids {
		if n.kind == "ResTarget" && k.field == "name" || n.kind == "IndexElem" && k.field == "name" {
			continue
		}
		if at := findName(k, match, elsewhere); at != nil {
			return at
		}
	}
	return nil
}

// droppedByName are the kinds of DROP whose names are a schema and a relation;
// those of triggers, rules and policies begin with their table's.
var droppedByName = setOf("OBJECT_TABLE", "OBJECT_VIEW", "OBJECT_MATVIEW", "OBJECT_INDEX", "OBJECT_SEQUENCE", "OBJECT_FOREIGN_TABLE")

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

// walkExpressions checks the queries and calls inside a change of structure:
// defaults, checks, generated columns, views, the elements of CREATE SCHEMA.
func (c *checker) walkExpressions(n *node) {
	for _, k := range n.kids {
		switch {
		case k.kind == "SelectStmt" || k.kind == "FuncCall":
			c.walk(k, n)
		case statementRules[k.kind] != nil:
			c.statement(k)
		default:
			c.walkExpressions(k)
		}
	}
}

// firstOffset returns the first place in the text that n or a part of it has.
func firstOffset(n *node) int {
	if at := n.offset(); at >= 0 && n.kind != scalarKind {
		return at
	}
	best := -1
	for _, k := range n.kids {
		if at := firstOffset(k); at >= 0 && (best < 0 || at < best) {
			best = at
		}
	}
	return best
}

// isTokenSequence reports whether tokens may come from a sequence, whatever
// schema it is in.
func (c *checker) isTokenSequence(parts []string) bool {
	name := parts[len(parts)-1]
	if len(parts) > 1 && parts[len(parts)-2] == "fencing" {
		return true
	}
	return slices.ContainsFunc(c.policy.closure.Sequences, func(s Name) bool { return s.Name == name })
}
