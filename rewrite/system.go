package rewrite

import (
	"slices"
	"strings"
)

// What belongs to the server and to the schema fencing is recognised by what it
// is, not only by how a text spells it: a search path may lead a bare name
// there, and a view may lead to it under another name. The triggers and functions
// of the schema fencing know a session of the driver by its setting fencing.session,
// which code in the database can take away. So a text that changes or calls
// something by a bare name which that schema has, too, is held back until the
// server has said that the search path doesn't lead there.

// fencingRelations, fencingChanges and fencingHelpers are the names in the schema
// fencing, beside fencingFunctions.
var (
	fencingRelations = setOf("registry", "generation", "incarnation", "lease", "epoch", "tombstone", "repairs", "write_epoch")
	fencingChanges   = setOf("register", "unregister", "claim_name", "carry_over", "take_over", "driver_level", "driver_rewrite", "wall", "wall_functions", "wall_sweep", "wall_apply",
		"tombstones", "tombstone_functions", "tombstone_sweep", "tombstone_apply", "tombstone_rekey", "tombstone_copy", "prune_tombstones", "repair",
		"seal", "unseal", "seal_function", "seal_sweep", "seal_apply") // that change something, and that no session of the driver may call
	fencingHelpers = setOf("refuse_driver", "refuse_driver_write", "refuse_unregistered", "incarnation_now", "check_name", "check_parents", "check_seal_column", "check_sequence", "check_table", "check_token_column", "registry_changed",
		"setting_name", "is_repair", "fail", "walls_above", "wall_changed", "tombstone_key", "tombstones_changed", "lease_ttl", "lease_wait", "raise_epoch",
		"seal_changed", "seal_fail", "wall_update_bodies", "wall_insert_bodies", "wall_delete_bodies", "wall_other_bodies", "seal_bodies", "tombstone_bodies",
		"doctor_apps", "doctor_around", "doctor_bounds", "doctor_columns", "doctor_family", "doctor_less", "doctor_owner", "doctor_roles", "doctor_schema",
		"doctor_seal", "doctor_sequences", "doctor_settings", "doctor_subscriptions", "doctor_tables", "doctor_tokens", "doctor_tombstones", "doctor_triggers", "doctor_wall")
)

// IsFencingRelation reports whether the schema fencing has a table or sequence of
// the name.
func IsFencingRelation(name string) bool { return fencingRelations[name] }

// IsFencingChange reports whether the schema fencing has a function of the name that
// no session of the driver may call, since it changes what the driver goes by.
func IsFencingChange(name string) bool { return fencingChanges[name] }

// isFencingRoutine reports whether the schema fencing has a function of the name.
func isFencingRoutine(name string) bool {
	return fencingFunctions[name] || fencingChanges[name] || fencingHelpers[name]
}

// hasFencing reports whether the schema fencing is installed.
func (p *Policy) hasFencing() bool {
	return slices.ContainsFunc(p.closure.Sequences, func(s Name) bool { return s.Schema == "fencing" })
}

// nameOwn notes that the text changes or calls something by a bare name which the
// schema fencing has, too.
func (c *checker) nameOwn(at *node, name string) {
	if c.own == nil && c.policy.hasFencing() {
		c.own, c.ownName = at, name
	}
}

// checkOwn refuses such a name in a text of several statements: one of them may
// change the search path for the next.
func (c *checker) checkOwn() {
	if c.own != nil && c.several {
		c.report(violation(SystemSchema, c.own, "%q stands beside other statements in one text, and the schema fencing has an object of that name: write the schema of the one that is meant, or send the statement by itself", c.ownName))
	}
}

// OwnName is the bare name for which [Plan.NamesOwn] is set, "" if it is set for an
// argument.
func (p *Plan) OwnName() string { return p.ownName }

// fencingObject returns the bare name of a relation or function in a statement
// that changes or replaces one of that name, if the schema fencing has one. A new
// relation takes nothing's place there.
func (c *checker) fencingObject(n *node) *node {
	if !c.policy.hasFencing() {
		return nil
	}
	switch n.kind() {
	case "IndexStmt", "CommentStmt", "SecLabelStmt", "CreateStatsStmt":
		return nil // these take nothing away
	case "DropStmt":
		isName := func(name string) bool { return fencingRelations[name] }
		switch n.str("removeType") {
		case "OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE":
			isName = isFencingRoutine
		}
		for _, object := range n.list("objects") {
			if at := bareName(object, isName); at != nil {
				return at
			}
		}
	case "CreateFunctionStmt":
		if n.flag("replace") {
			return bareOf(n.list("funcname"), isFencingRoutine)
		}
	case "AlterFunctionStmt":
		return bareObject(n, "func", isFencingRoutine)
	case "RenameStmt", "AlterObjectSchemaStmt", "AlterOwnerStmt":
		if at := bareObject(n, "object", isFencingRoutine); at != nil {
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

func bareObject(n *node, field string, isName func(string) bool) *node {
	if !n.may(field) {
		return nil
	}
	return bareName(n.get(field), isName)
}

// bareName returns an object's name if it is one of those and has no schema.
func bareName(object *node, isName func(string) bool) *node {
	switch {
	case object.is("ObjectWithArgs"):
		return bareOf(object.list("objname"), isName)
	case object.is("List"):
		parts := object.list("items")
		if len(parts) == 2 { // a trigger or rule of a table
			parts = parts[:1]
		}
		return bareOf(parts, isName)
	}
	return nil
}

func bareOf(parts []*node, isName func(string) bool) *node {
	if len(parts) == 1 && parts[0].is("String") && isName(parts[0].str("sval")) {
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
	if schema == "" && fencingRelations[name] {
		c.nameOwn(from[0], name)
	}
	isSystem := systemSchema(schema) || schema == "" && isSystemName(name)
	for _, r := range c.policy.lookup(schema, name) {
		isSystem = isSystem || r.system
	}
	if isSystem {
		c.report(violation(SystemSchema, from[0], "a view of %s alone could be written, and would change a system catalog or a setting: add a second relation, GROUP BY or LIMIT, or create the view over a plain connection", quotedName(schema, name)))
	}
}
