package check

import (
	"slices"

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
	case "CreateExtensionStmt":
		if !plainExtensions[n.Str("extname")] {
			return leadsAll
		}
		return leadsNowhere
	case "AlterExtensionStmt":
		return leadsAll
	case "AlterTableStmt":
		if slices.ContainsFunc(n.List("cmds"), func(cmd *sqltree.Node) bool { return !plainCommands[cmd.Str("subtype")] }) {
			return c.leadOfOthers()
		}
		return leadsNowhere
	case "RenameStmt":
		if plainRenames[n.Str("renameType")] {
			return leadsNowhere
		}
		return c.leadOfOthers()
	}
	if plainChanges[n.Kind()] {
		return leadsNowhere
	}
	return c.leadOfOthers()
}

// leadOfOthers returns where a change leads of which nothing closer is known: to
// whatever code the database has that could write a protected table.
func (c *checker) leadOfOthers() lead {
	k := &c.policy.closure
	if len(k.Functions)+len(k.AllowedFunctions)+len(k.Writers)+len(k.Unseen)+len(k.EventTriggers) > 0 {
		return leadsOn
	}
	return leadsNowhere
}

// plainChanges are kinds of statement that lead nowhere: they make or do what is checked with
// them, by the names that things have before them, or take something away.
var plainChanges = setOf("DoStmt", "CreateStmt", "CreateFunctionStmt", "AlterFunctionStmt", "IndexStmt", "CreateSeqStmt", "AlterSeqStmt", "CreateSchemaStmt", "ViewStmt", "CreateEnumStmt", "AlterEnumStmt", "CompositeTypeStmt", "CreateDomainStmt",
	"CreateTrigStmt", "RuleStmt", "CreatePolicyStmt", "AlterPolicyStmt", "DropStmt", "AlterOwnerStmt", "CreatePublicationStmt", "AlterPublicationStmt", "SecLabelStmt",
	"AlterDefaultPrivilegesStmt", "CreateRoleStmt", "AlterRoleStmt", "DropRoleStmt", "AlterObjectDependsStmt", "AlterTSDictionaryStmt", "AlterTSConfigurationStmt")

// plainRenames are kinds of objects whose name no code goes by but the one that names them.
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
