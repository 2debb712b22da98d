package rewrite

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// A text of several statements is checked against the catalog as it is before the first of
// them. A change of the catalog in it may give code another name, or have it run somewhere else,
// than the check of the next statement knows.

// lead is how far a change of the catalog makes what stands behind it in a text unknown.
type lead int

const (
	leadsNowhere lead = iota
	leadsOn           // what stands behind may run code that isn't known of
	leadsAll          // even a change of structure may
)

// leadOf returns where a statement leads.
func (c *checker) leadOf(n *sqltree.Node) lead {
	if !changesCatalog(n) {
		return leadsNowhere
	}
	switch n.Kind() {
	case "AlterEventTrigStmt", "CreateEventTrigStmt":
		return leadsAll
	case "AlterFunctionStmt":
		return leadOfOptions(n)
	case "CreateExtensionStmt":
		if !plainExtensions[n.Str("extname")] {
			return leadsAll
		}
		return leadsNowhere
	case "AlterExtensionStmt":
		return leadsAll
	case "CreateFunctionStmt":
		return max(c.leadOfName(n.List("funcname")), leadOfOptions(n))
	case "DefineStmt":
		return max(c.leadOfName(n.List("defnames")), c.leadOfOthers())
	case "AlterTableStmt":
		if c.hasTextTrigger(n.Get("relation")) {
			return leadsOn // a partition that is attached gets its triggers
		}
		if slices.ContainsFunc(n.List("cmds"), func(cmd *sqltree.Node) bool { return !plainCommands[cmd.Str("subtype")] }) {
			return c.leadOfOthers()
		}
		return leadsNowhere
	case "CreateStmt":
		if n.Get("partbound") != nil && slices.ContainsFunc(n.List("inhRelations"), c.hasTextTrigger) {
			return leadsOn // a partition gets the triggers of its parent
		}
		return leadsNowhere
	case "RenameStmt":
		if plainRenames[n.Str("renameType")] {
			return leadsNowhere
		}
		return max(c.leadOfOthers(), leadOfWord(n.Str("newname")))
	}
	if plainChanges[n.Kind()] {
		return leadsNowhere
	}
	return c.leadOfOthers()
}

// hasTextTrigger reports whether a relation has a trigger whose function makes SQL of that
// relation's name or of the trigger's arguments.
func (c *checker) hasTextTrigger(rel *sqltree.Node) bool {
	return rel != nil && matches(c.policy.closure.TextTriggers, rel.Str("schemaname"), rel.Str("relname"))
}

// leadOfOthers returns where a change leads of which nothing closer is known: to
// whatever code the database has that could write a protected table.
func (c *checker) leadOfOthers() lead {
	k := &c.policy.closure
	if len(k.Functions)+len(k.AllowedFunctions)+len(k.TextFunctions)+len(k.TriggerTexts)+len(k.Writers)+len(k.Unseen)+len(k.EventTriggers) > 0 {
		return leadsOn
	}
	return leadsNowhere
}

// leadOfName returns where a new function or operator leads by its name: code that was
// read before may call it from now on in the place of a built-in one.
func (c *checker) leadOfName(names []*sqltree.Node) lead {
	parts, ok := sqltree.Strings(names)
	if !ok || len(parts) == 0 {
		return leadsAll
	}
	return leadOfWord(parts[len(parts)-1])
}

func leadOfWord(name string) lead {
	if namedLikeBuiltin[name] {
		return leadsAll
	}
	return leadsNowhere
}

// leadOfOptions returns where a function's options lead: its settings may have PostgreSQL
// read its body otherwise.
func leadOfOptions(n *sqltree.Node) lead {
	for _, field := range []string{"options", "actions"} {
		if !n.HasField(field) {
			continue
		}
		for _, o := range n.List(field) {
			set := o.Get("arg")
			if set.Is("VariableSetStmt") && (set.Str("kind") == "VAR_RESET_ALL" || strings.HasPrefix(sqltext.Lower(set.Str("name")), "plpgsql.")) {
				return leadsAll
			}
		}
	}
	return leadsNowhere
}

// plainChanges are kinds of statement that lead nowhere: they make or do what is checked with
// them, by the names that things have before them, or take something away.
var plainChanges = setOf("DoStmt", "IndexStmt", "CreateSeqStmt", "AlterSeqStmt", "CreateSchemaStmt", "ViewStmt", "CreateEnumStmt", "AlterEnumStmt", "CompositeTypeStmt", "CreateDomainStmt",
	"CreateTrigStmt", "RuleStmt", "CreatePolicyStmt", "AlterPolicyStmt", "DropStmt", "AlterOwnerStmt", "CreatePublicationStmt", "AlterPublicationStmt", "SecLabelStmt",
	"AlterDefaultPrivilegesStmt", "CreateRoleStmt", "AlterRoleStmt", "DropRoleStmt", "AlterObjectDependsStmt", "AlterTSDictionaryStmt", "AlterTSConfigurationStmt")

// plainRenames are kinds of objects whose name no code goes by. A relation whose name
// a trigger's function goes by isn't renamed at all.
var plainRenames = setOf("OBJECT_TABLE", "OBJECT_VIEW", "OBJECT_MATVIEW", "OBJECT_INDEX", "OBJECT_SEQUENCE", "OBJECT_COLUMN", "OBJECT_TABCONSTRAINT", "OBJECT_TRIGGER",
	"OBJECT_RULE", "OBJECT_POLICY", "OBJECT_ATTRIBUTE", "OBJECT_DOMCONSTRAINT", "OBJECT_ROLE")

// plainCommands are the parts of ALTER TABLE that have nothing run but what stands in
// them.
var plainCommands = setOf("AT_AddColumn", "AT_DropColumn", "AT_ColumnDefault", "AT_SetNotNull", "AT_DropNotNull", "AT_SetStatistics", "AT_SetOptions", "AT_ResetOptions", "AT_SetStorage",
	"AT_SetCompression", "AT_AddConstraint", "AT_ValidateConstraint", "AT_DropConstraint", "AT_AddIndex", "AT_AddIndexConstraint", "AT_AlterColumnType", "AT_ChangeOwner", "AT_ClusterOn",
	"AT_DropCluster", "AT_SetLogged", "AT_SetUnLogged", "AT_SetRelOptions", "AT_ResetRelOptions", "AT_SetTableSpace", "AT_AddIdentity", "AT_SetIdentity", "AT_DropIdentity",
	"AT_DropExpression", "AT_ReplicaIdentity", "AT_DropInherit", "AT_AttachPartition", "AT_DetachPartition", "AT_DisableTrig", "AT_DisableTrigUser", "AT_DropOf")

// plainExtensions run no SQL that they are given, and write no tables.
var plainExtensions = setOf("plpgsql", "uuid-ossp", "pgcrypto", "citext", "hstore", "pg_trgm", "btree_gin", "btree_gist", "ltree", "intarray", "unaccent", "fuzzystrmatch", "cube",
	"earthdistance", "isn", "seg", "bloom", "lo", "tablefunc", "dict_int", "dict_xsyn", "tcn", "moddatetime", "insert_username", "autoinc", "pg_stat_statements", "pgstattuple",
	"pg_buffercache", "pg_freespacemap", "pg_prewarm", "pgrowlocks", "pageinspect", "sslinfo", "tsm_system_rows", "tsm_system_time", "postgis", "vector")

// namedLikeBuiltin are the functions and operators of PostgreSQL from which is told what SQL a
// body makes. One of that name elsewhere could be taken for it.
var namedLikeBuiltin = setOf("||", "format", "concat", "concat_ws", "quote_ident", "quote_literal", "quote_nullable", "lower", "upper", "trim", "btrim", "ltrim", "rtrim", "nullif", "coalesce",
	"replace", "substr", "substring", "left", "right", "split_part", "regexp_replace", "translate", "overlay", "reverse", "lpad", "rpad", "repeat",
	"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "date_part", "extract", "length", "char_length", "md5", "hashtext", "nextval", "currval",
	"random", "gen_random_uuid", "pg_backend_pid", "txid_current", "current_schema", "abs", "floor", "mod", "array_length", "cardinality", "count", "date_trunc", "to_char")

// runsNothing are kinds of statement that work out no values and fire no triggers but those on
// changes of structure.
var runsNothing = setOf("CommentStmt", "GrantStmt", "AlterOwnerStmt", "AlterDefaultPrivilegesStmt", "CreateFunctionStmt", "AlterFunctionStmt", "CreateTrigStmt", "RuleStmt", "CreatePolicyStmt",
	"CreateSeqStmt", "CreateSchemaStmt", "ViewStmt", "CreateEnumStmt", "CompositeTypeStmt", "DropStmt", "RenameStmt", "AlterObjectSchemaStmt", "CreateCastStmt", "DefineStmt")

// checkOrder refuses a text that goes on behind a statement which may use what
// changes the catalog, or which changes it so that code gets another name or runs
// somewhere else: what follows could write through that.
func (c *checker) checkOrder() {
	if !c.several {
		return
	}
	m, made, led, leader := c.policy.makers, false, leadsNowhere, ""
	for _, raw := range c.stmts {
		stmt := raw.Get("stmt")
		switch {
		case writesNothing(stmt):
		case made:
			c.report(violation(SeveralStatements, stmt, "%s stands behind a statement that calls or fires what may change views, functions or the like, so what it writes cannot be known before: send it by itself", statementName(stmt.Kind())))
			return
		case led == leadsAll || led == leadsOn && !runsNothing[stmt.Kind()]:
			c.report(violation(SeveralStatements, stmt, "%s stands behind %s, which may give code another name or have it run somewhere else, so what it writes cannot be known before: send it by itself", statementName(stmt.Kind()), leader))
			return
		}
		made = made || m != nil && m.usedBy(stmt)
		if l := c.leadOf(stmt); l > led {
			led, leader = l, statementName(stmt.Kind())
		}
	}
}

// writesNothing reports whether a statement writes nothing, whatever its names
// have come to mean.
func writesNothing(stmt *sqltree.Node) bool {
	switch stmt.Kind() {
	case "TransactionStmt", "VariableSetStmt", "VariableShowStmt", "ListenStmt", "UnlistenStmt", "NotifyStmt", "DeallocateStmt", "ClosePortalStmt":
		return true
	}
	return stmt.Is("SelectStmt") && isConstant(stmt)
}

// isConstant reports whether a query only repeats constants. An operator, a cast or a
// relation may have come to be somebody's own.
func isConstant(n *sqltree.Node) bool {
	switch n.Kind() {
	case "SelectStmt", "ResTarget", "A_Const", "String", "Integer", "Float", "Boolean", "BitString", "List", sqltree.ListKind, sqltree.ScalarKind, sqltree.NullKind:
	default:
		return false
	}
	return !slices.ContainsFunc(n.Kids, func(k *sqltree.Node) bool { return !isConstant(k) })
}

// isBound reports whether a name is that of a function that runs SQL which it makes of what it
// is given, of its trigger's table or of its trigger's arguments: under another name, or
// bound to something, it may write a protected table.
func (p *Policy) isBound(name string) bool {
	return p.takesText(name) || matches(p.closure.TriggerTexts, "", name)
}

// namesBound returns the name of such a function in a change of structure that binds
// functions, or gives one another name or place.
func (c *checker) namesBound(n *sqltree.Node) *sqltree.Node {
	if len(c.policy.closure.TextFunctions)+len(c.policy.closure.TriggerTexts) == 0 {
		return nil
	}
	switch n.Kind() {
	case "RenameStmt", "AlterObjectSchemaStmt", "AlterOwnerStmt":
		if n.Get("relation") != nil {
			return nil
		}
	case "DropStmt":
		if !functionKinds[n.Str("removeType")] {
			return nil
		}
	default:
		if !statementKinds[n.Kind()].namesFunctions && !n.Is("CreateFunctionStmt") {
			return nil
		}
	}
	return findBound(n, c.policy.isBound)
}

var functionKinds = setOf("OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE", "OBJECT_AGGREGATE")

// findBound returns the first of such names below n that is no relation's, no
// constant and not within a body.
func findBound(n *sqltree.Node, match func(string) bool) *sqltree.Node {
	switch {
	case n == nil || n.Is("RangeVar") || n.Is("A_Const") || n.Is("ColumnRef") || columnFields[n.Field()] || n.Field() == "parameters" || n.Field() == "sql_body" || n.Field() == "trigname":
		return nil
	case n.Is("CreateFunctionStmt"):
		return findBound(n.Get("funcname"), match)
	case n.Kind() == sqltree.ScalarKind:
		if !n.IsNumber && match(n.Text) {
			return n
		}
		return nil
	}
	for _, k := range n.Kids {
		if at := findBound(k, match); at != nil {
			return at
		}
	}
	return nil
}

// checkRenamed refuses to give another name or schema to a relation with a trigger whose
// function makes SQL of that name: a trigger that is deferred would go by the new name
// when the transaction ends.
func (c *checker) checkRenamed(n *sqltree.Node) {
	rel := n.Get("relation")
	isOther := n.Is("RenameStmt") && (n.Str("renameType") == "OBJECT_COLUMN" || n.Str("renameType") == "OBJECT_TABCONSTRAINT")
	if isOther || !c.hasTextTrigger(rel) {
		return
	}
	c.report(violation(ProtectedDDL, n, "%s: relation %q has a trigger whose function runs SQL that it makes of the relation's name, so that it could write a protected table under another name: use a plain connection", statementName(n.Kind()), rel.Str("relname")))
}

// checkMember refuses to make code a member of an extension: what extensions bring
// along isn't read.
func checkMember(c *checker, n *sqltree.Node, top bool) {
	checkDDL(c, n, top)
	switch n.Str("objtype") {
	case "OBJECT_TABLE", "OBJECT_INDEX", "OBJECT_SEQUENCE", "OBJECT_SCHEMA":
	default:
		refuseDDL(c, n, top)
	}
}
