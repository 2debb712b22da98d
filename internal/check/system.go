package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
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
	fencingRelations = setOf("registry", "generation", "incarnation", "lease", "epoch", "tombstone", "repairs", "allowed_function", "write_epoch")
	fencingChanges   = setOf("register", "unregister", "claim_name", "carry_over", "take_over", "driver_level", "driver_rewrite", "lock_registry", "allow_function", "disallow_function", "wall", "wall_functions", "wall_sweep", "wall_apply",
		"tombstones", "tombstone_functions", "tombstone_sweep", "tombstone_apply", "tombstone_rekey", "tombstone_copy", "prune_tombstones", "repair",
		"seal", "unseal", "seal_function", "seal_sweep", "seal_apply") // that change something, and that no session of the driver may call
	fencingHelpers = setOf("refuse_driver", "refuse_driver_write", "refuse_deadlock", "function_rights", "lock_needed", "registration", "refuse_unregistered", "incarnation_now", "check_function", "check_name", "check_parents", "check_seal_column", "check_sequence", "check_table", "check_token_column", "check_triggers", "registry_changed",
		"setting_name", "allowed_functions", "function_digest", "is_repair", "fail", "walls_above", "wall_changed", "tombstone_key", "tombstones_changed", "lease_ttl", "lease_wait", "raise_epoch",
		"seal_changed", "seal_fail", "wall_update_bodies", "wall_insert_bodies", "wall_delete_bodies", "wall_other_bodies", "seal_bodies", "tombstone_bodies",
		"doctor_apps", "doctor_around", "doctor_bounds", "doctor_buried", "doctor_columns", "doctor_differences", "doctor_family", "doctor_functions", "doctor_nullable", "doctor_given", "doctor_key_columns", "doctor_key_text", "tombstone_key_bodies", "doctor_sealed_by", "doctor_less", "doctor_manifest", "doctor_objects", "doctor_owners", "doctor_register", "doctor_registered_less", "doctor_revoke", "doctor_without_wall", "partitions", "registered_above", "doctor_lost_tokens", "doctor_owner", "doctor_roles", "doctor_schema",
		"doctor_seal", "doctor_sequences", "doctor_sets", "doctor_settings", "doctor_subscriptions", "doctor_tables", "doctor_tokens", "doctor_tombstones", "doctor_triggers", "doctor_wall", "doctor_words")
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

// FencingNames returns the names of the functions of the schema fencing, of those
// that an application calls, and of the relations there.
func FencingNames() (functions, calls, relations []string) {
	functions = slices.Collect(maps.Keys(fencingHelpers))
	functions = slices.AppendSeq(functions, maps.Keys(fencingChanges))
	functions = slices.AppendSeq(functions, maps.Keys(fencingFunctions))
	return slices.Sorted(slices.Values(functions)), slices.Sorted(maps.Keys(fencingFunctions)), slices.Sorted(maps.Keys(fencingRelations))
}

// hasFencing reports whether the schema fencing is installed.
func (p *Policy) hasFencing() bool {
	return slices.ContainsFunc(p.closure.Sequences, func(s Name) bool { return s.Schema == "fencing" })
}

// nameOwn notes that the text changes or calls something by a bare name which the
// schema fencing has, too.
func (c *checker) nameOwn(at *sqltree.Node, name string) {
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
func (c *checker) fencingObject(n *sqltree.Node) *sqltree.Node {
	if !c.policy.hasFencing() {
		return nil
	}
	switch n.Kind() {
	case "IndexStmt", "CommentStmt", "SecLabelStmt", "CreateStatsStmt":
		return nil // these take nothing away
	case "DropStmt":
		isName := func(name string) bool { return fencingRelations[name] }
		switch n.Str("removeType") {
		case "OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE":
			isName = isFencingRoutine
		}
		for _, object := range n.List("objects") {
			if at := bareName(object, isName); at != nil {
				return at
			}
		}
	case "CreateFunctionStmt":
		if n.Flag("replace") {
			return bareOf(n.List("funcname"), isFencingRoutine)
		}
	case "AlterFunctionStmt":
		return bareObject(n, "func", isFencingRoutine)
	case "RenameStmt", "AlterObjectSchemaStmt", "AlterOwnerStmt":
		if at := bareObject(n, "object", isFencingRoutine); at != nil {
			return at
		}
	}
	for _, k := range n.Kids {
		if isCreated := k.Is("RangeVar") && (n.Is("CreateStmt") || n.Is("ViewStmt")) && k.Field() != "inhRelations"; !isCreated {
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
func findFencingRelation(n *sqltree.Node) *sqltree.Node {
	switch n.Kind() {
	case "SelectStmt", "Constraint":
		return nil
	case "RangeVar":
		if n.Str("schemaname") == "" && fencingRelations[n.Str("relname")] {
			return n.Get("relname")
		}
		return nil
	}
	for _, k := range n.Kids {
		if at := findFencingRelation(k); at != nil {
			return at
		}
	}
	return nil
}

func bareObject(n *sqltree.Node, field string, isName func(string) bool) *sqltree.Node {
	if !n.HasField(field) {
		return nil
	}
	return bareName(n.Get(field), isName)
}

// bareName returns an object's name if it is one of those and has no schema.
func bareName(object *sqltree.Node, isName func(string) bool) *sqltree.Node {
	switch {
	case object.Is("ObjectWithArgs"):
		return bareOf(object.List("objname"), isName)
	case object.Is("List"):
		parts := object.List("items")
		if len(parts) == 2 { // a trigger or rule of a table
			parts = parts[:1]
		}
		return bareOf(parts, isName)
	}
	return nil
}

func bareOf(parts []*sqltree.Node, isName func(string) bool) *sqltree.Node {
	if len(parts) == 1 && parts[0].Is("String") && isName(parts[0].Str("sval")) {
		return parts[0].Get("sval")
	}
	return nil
}

// checkSystemView refuses a view of one system relation: PostgreSQL lets such a
// view be written, so that it is another name for a catalog or for the settings,
// and the transaction that makes it may write it at once.
func (c *checker) checkSystemView(n *sqltree.Node) {
	query := n.Get("query")
	from := query.List("fromClause")
	if !query.Is("SelectStmt") || len(from) != 1 || !from[0].Is("RangeVar") || query.Get("groupClause") != nil || query.Get("distinctClause") != nil ||
		query.Get("limitCount") != nil || query.Get("limitOffset") != nil || query.Get("havingClause") != nil || query.Get("withClause") != nil {
		return
	}
	schema, name := from[0].Str("schemaname"), from[0].Str("relname")
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
