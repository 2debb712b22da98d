package rewrite

import (
	"slices"
	"strings"
)

// What belongs to the server and to the schema fencing is recognised by what it
// is, not only by how a text spells it: a search path may lead a bare name
// there, and a view may lead to it under another name. The triggers of the schema
// fencing refuse rows that a session of the driver writes by a bare name; what no
// trigger sees is refused here.

// fencingRelations and fencingRoutines are the names in the schema fencing.
var (
	fencingRelations = setOf("registry", "generation", "incarnation", "lease", "epoch", "tombstone", "repairs", "write_epoch")
	fencingRoutines  = setOf("next_token", "take", "renew", "release", "doctor", "register", "unregister", "driver_level", "driver_rewrite", "wall", "tombstones",
		"prune_tombstones", "repair", "seal", "unseal")
)

// fencingObject returns the bare name of a relation or function in a statement
// that changes or replaces one of that name, if the schema fencing has one. A new
// relation takes nothing's place there.
func (c *checker) fencingObject(n *node) *node {
	if !slices.ContainsFunc(c.policy.closure.Sequences, func(s Name) bool { return s.Schema == "fencing" }) {
		return nil // the schema isn't installed
	}
	switch n.kind() {
	case "IndexStmt", "CommentStmt", "SecLabelStmt", "CreateStatsStmt":
		return nil // these take nothing away
	case "DropStmt":
		names := fencingRelations
		switch n.str("removeType") {
		case "OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE":
			names = fencingRoutines
		}
		for _, object := range n.list("objects") {
			if at := bareName(object, names); at != nil {
				return at
			}
		}
	case "CreateFunctionStmt":
		if n.flag("replace") {
			return bareOf(n.list("funcname"), fencingRoutines)
		}
	case "AlterFunctionStmt":
		return bareObject(n, "func", fencingRoutines)
	case "RenameStmt", "AlterObjectSchemaStmt", "AlterOwnerStmt":
		if at := bareObject(n, "object", fencingRoutines); at != nil {
			return at
		}
	}
	for _, k := range n.kids {
		if isCreated := k.is("RangeVar") && (n.is("CreateStmt") || n.is("ViewStmt")) && k.field() != "inhRelations"; !isCreated {
			if at := findFencingRelation(k); at != nil {
				return at
			}
		}
	}
	return nil
}

// findFencingRelation returns the first relation below n, or n itself, that is
// named without a schema as one of the schema fencing is. What a query reads and a
// foreign key references isn't changed.
func findFencingRelation(n *node) *node {
	switch n.kind() {
	case "SelectStmt", "Constraint":
		return nil
	case "RangeVar":
		if n.str("schemaname") == "" && fencingRelations[n.str("relname")] {
			return n.get("relname")
		}
		return nil
	}
	for _, k := range n.kids {
		if at := findFencingRelation(k); at != nil {
			return at
		}
	}
	return nil
}

func bareObject(n *node, field string, names map[string]bool) *node {
	if !n.may(field) {
		return nil
	}
	return bareName(n.get(field), names)
}

// bareName returns an object's name if it is among the names and has no schema.
func bareName(object *node, names map[string]bool) *node {
	switch {
	case object.is("ObjectWithArgs"):
		return bareOf(object.list("objname"), names)
	case object.is("List"):
		parts := object.list("items")
		if len(parts) == 2 { // a trigger or rule of a table
			parts = parts[:1]
		}
		return bareOf(parts, names)
	}
	return nil
}

func bareOf(parts []*node, names map[string]bool) *node {
	if len(parts) == 1 && parts[0].is("String") && names[parts[0].str("sval")] {
		return parts[0].get("sval")
	}
	return nil
}

// checkSystemView refuses a view of one system relation: PostgreSQL lets such a
// view be written, so that it is another name for a catalog or for the settings,
// and the transaction that makes it may write it at once.
func (c *checker) checkSystemView(n *node) {
	query := n.get("query")
	from := query.list("fromClause")
	if !query.is("SelectStmt") || len(from) != 1 || !from[0].is("RangeVar") || query.get("groupClause") != nil || query.get("distinctClause") != nil ||
		query.get("limitCount") != nil || query.get("limitOffset") != nil || query.get("havingClause") != nil || query.get("withClause") != nil {
		return
	}
	schema, name := from[0].str("schemaname"), from[0].str("relname")
	if schema == "" || schema == "pg_catalog" {
		// what the statistics system shows is no table, and can't be written
		if strings.HasPrefix(name, "pg_stat_") || strings.HasPrefix(name, "pg_statio_") || name == "pg_locks" {
			return
		}
	}
	isSystem := systemSchema(schema) || schema == "" && isSystemName(name)
	for _, r := range c.policy.lookup(schema, name) {
		isSystem = isSystem || r.system
	}
	if isSystem {
		c.report(violation(SystemSchema, from[0], "a view of %s alone could be written, and would change a system catalog or a setting: add a second relation, GROUP BY or LIMIT, or create the view over a plain connection", quotedName(schema, name)))
	}
}
