package rewrite

import (
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// statementRule checks one kind of statement, with everything in it. top says
// that it is a statement of the text itself and not a part of another.
type statementRule func(c *checker, n *sqltree.Node, top bool)

// statementRules has one entry for each kind of statement that may be sent at
// all. A kind that isn't here is refused.
var statementRules map[string]statementRule

// It is filled here because the rules refer back to it.
func init() {
	statementRules = map[string]statementRule{
		"SelectStmt": checkSelect,
		"InsertStmt": checkInsert,
		"UpdateStmt": checkUpdate,
		"DeleteStmt": checkDelete,
		"MergeStmt":  checkMerge,

		// a statement or query inside, or a call
		"ExplainStmt":       checkInner,
		"DeclareCursorStmt": checkInner,
		"CreateTableAsStmt": checkInner,
		"CallStmt":          checkInner,
		"CopyStmt":          checkCopy,
		"TruncateStmt":      checkTruncate,

		"PrepareStmt":    checkPrepare,
		"ExecuteStmt":    checkPrepare,
		"DeallocateStmt": checkPrepare,
		"DiscardStmt":    checkPrepare,

		"VariableSetStmt":      checkVariableSet,
		"AlterRoleSetStmt":     checkStoredSetting,
		"AlterDatabaseSetStmt": checkStoredSetting,
		"AlterSystemStmt":      checkStoredSetting,

		// code that runs later, or now without being seen
		"DoStmt":                  checkDo,
		"CreateFunctionStmt":      checkCreateFunction,
		"RuleStmt":                checkCreateRule,
		"CreateTrigStmt":          checkCode,
		"CreateEventTrigStmt":     checkCode,
		"CreateCastStmt":          checkCode,
		"CreateTransformStmt":     checkCode,
		"DefineStmt":              checkCode, // CREATE AGGREGATE, OPERATOR, TYPE, ...
		"CreateOpClassStmt":       checkCode,
		"CreateConversionStmt":    checkCode,
		"AlterFunctionStmt":       checkCode,
		"AlterOperatorStmt":       checkCode,
		"CreateRangeStmt":         checkCode,
		"CreateDomainStmt":        checkCode, // its CHECK may call
		"LoadStmt":                refuseCode,
		"ImportForeignSchemaStmt": refuseCode,
		"CreateSubscriptionStmt":  refuseCode,
		"AlterSubscriptionStmt":   refuseCode,
		"CreateAmStmt":            refuseCode,
		"CreatePLangStmt":         refuseCode,

		// changes of structure: refused if they name what the protection rests on
		"CreateStmt": checkDDL, "CreateForeignTableStmt": checkDDL, "ViewStmt": checkDDL, "IndexStmt": checkDDL,
		"CreateSeqStmt": checkDDL, "AlterSeqStmt": checkDDL, "CreateSchemaStmt": checkDDL, "CompositeTypeStmt": checkDDL,
		"CreateEnumStmt": checkDDL, "AlterEnumStmt": checkDDL, "AlterTypeStmt": checkDDL, "AlterDomainStmt": checkDDL,
		"AlterTableStmt": checkDDL, "AlterCollationStmt": checkDDL, "CreateStatsStmt": checkDDL, "AlterStatsStmt": checkDDL,
		"CreatePolicyStmt": checkDDL, "AlterPolicyStmt": checkDDL, "CommentStmt": checkDDL, "SecLabelStmt": checkDDL,
		"GrantStmt": checkDDL, "CreatePublicationStmt": checkDDL, "AlterPublicationStmt": checkDDL,
		"AlterExtensionContentsStmt": checkDDL, "AlterObjectDependsStmt": checkDDL, "AlterEventTrigStmt": checkDDL,
		"CreateOpFamilyStmt": checkDDL, "AlterOpFamilyStmt": checkDDL, "CreateExtensionStmt": checkDDL, "AlterExtensionStmt": checkDDL,
		"RenameStmt": checkSchemaDDL, "AlterObjectSchemaStmt": checkSchemaDDL, "AlterOwnerStmt": checkSchemaDDL,
		"DropStmt":      checkDrop,
		"DropOwnedStmt": refuseDDL, "ReassignOwnedStmt": refuseDDL, "AlterTableMoveAllStmt": refuseDDL,

		// nothing in them writes a row or changes what the check rests on
		"TransactionStmt": allow, "ConstraintsSetStmt": allow, "VariableShowStmt": allow, "FetchStmt": allow, "ClosePortalStmt": allow,
		"ListenStmt": allow, "UnlistenStmt": allow, "NotifyStmt": allow, "LockStmt": allow, "CheckPointStmt": allow,
		"VacuumStmt": checkMaintenance, "ClusterStmt": checkMaintenance, "ReindexStmt": checkMaintenance, "RefreshMatViewStmt": checkRefresh,

		// roles, databases, storage, text search, foreign servers: none is a table
		"GrantRoleStmt": allow, "CreateRoleStmt": allow, "AlterRoleStmt": allow, "DropRoleStmt": allow, "AlterDefaultPrivilegesStmt": allow,
		"CreatedbStmt": allow, "AlterDatabaseStmt": allow, "AlterDatabaseRefreshCollStmt": allow, "DropdbStmt": allow,
		"CreateTableSpaceStmt": allow, "DropTableSpaceStmt": allow, "AlterTableSpaceOptionsStmt": allow,
		"AlterTSDictionaryStmt": allow, "AlterTSConfigurationStmt": allow,
		"CreateFdwStmt": allow, "AlterFdwStmt": allow, "CreateForeignServerStmt": allow, "AlterForeignServerStmt": allow,
		"CreateUserMappingStmt": allow, "AlterUserMappingStmt": allow, "DropUserMappingStmt": allow,
		"DropSubscriptionStmt": allow,
	}
}

func allow(*checker, *sqltree.Node, bool) {}

// eventless are the kinds of statement that change the catalog and run no event
// trigger: what they change is shared by all databases, or no object.
var eventless = setOf("DoStmt", "GrantRoleStmt", "CreateRoleStmt", "AlterRoleStmt", "DropRoleStmt", "CreatedbStmt", "AlterDatabaseStmt", "AlterDatabaseRefreshCollStmt",
	"DropdbStmt", "CreateTableSpaceStmt", "DropTableSpaceStmt", "AlterTableSpaceOptionsStmt", "AlterRoleSetStmt", "AlterDatabaseSetStmt", "AlterSystemStmt",
	"CreateEventTrigStmt", "AlterEventTrigStmt", "LoadStmt")

// eventful are those that run one and keep the catalog.
var eventful = setOf("RefreshMatViewStmt", "CreateTableAsStmt", "CommentStmt", "GrantStmt", "CreateStatsStmt", "AlterStatsStmt", "ReindexStmt")

// checkEvents refuses a change of structure that runs an event trigger which
// writes a protected table.
func (c *checker) checkEvents(n *sqltree.Node) {
	if events := c.policy.closure.EventTriggers; len(events) > 0 && (eventful[n.Kind()] || n.Is("SelectStmt") && n.Get("intoClause") != nil || !keepsCatalog[n.Kind()] && !eventless[n.Kind()]) {
		c.report(violation(IndirectWrite, n, "%s runs an event trigger whose function %q writes a protected table without a proof: use a plain connection", statementName(n.Kind()), events[0]))
	}
}

// keepsCatalog are the kinds of statement after which a closure is what it was
// before. What a function that they call does is not seen.
var keepsCatalog = setOf("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "ExplainStmt", "DeclareCursorStmt", "CallStmt", "CopyStmt", "TruncateStmt",
	"PrepareStmt", "ExecuteStmt", "DeallocateStmt", "DiscardStmt", "VariableSetStmt", "VariableShowStmt", "TransactionStmt", "ConstraintsSetStmt",
	"FetchStmt", "ClosePortalStmt", "ListenStmt", "UnlistenStmt", "NotifyStmt", "LockStmt", "CheckPointStmt", "VacuumStmt", "ClusterStmt", "ReindexStmt", "RefreshMatViewStmt",
	"CreateTableAsStmt", "CommentStmt", "GrantStmt", "GrantRoleStmt", "CreateStatsStmt", "AlterStatsStmt")

// statementNames are the kinds whose names aren't SQL's words.
var statementNames = map[string]string{
	"CreateStmt": "CREATE TABLE", "ViewStmt": "CREATE VIEW", "IndexStmt": "CREATE INDEX", "RenameStmt": "ALTER ... RENAME",
	"CreateTrigStmt": "CREATE TRIGGER", "CreateEventTrigStmt": "CREATE EVENT TRIGGER", "CreateSeqStmt": "CREATE SEQUENCE", "AlterSeqStmt": "ALTER SEQUENCE",
	"AlterObjectSchemaStmt": "ALTER ... SET SCHEMA", "AlterOwnerStmt": "ALTER ... OWNER TO", "CompositeTypeStmt": "CREATE TYPE", "CreateEnumStmt": "CREATE TYPE",
	"CreateRangeStmt": "CREATE TYPE", "AlterEnumStmt": "ALTER TYPE", "DefineStmt": "CREATE OPERATOR, AGGREGATE or TYPE", "DoStmt": "DO",
	"CreateAmStmt": "CREATE ACCESS METHOD", "CreatePLangStmt": "CREATE LANGUAGE", "SecLabelStmt": "SECURITY LABEL", "DropStmt": "DROP",
	"RuleStmt": "CREATE RULE", "AlterRoleSetStmt": "ALTER ROLE ... SET", "AlterDatabaseSetStmt": "ALTER DATABASE ... SET", "AlterSystemStmt": "ALTER SYSTEM",
	"AlterTableMoveAllStmt": "ALTER TABLE ALL", "CommentStmt": "COMMENT", "GrantStmt": "GRANT or REVOKE",
}

// statementName turns a node's kind into words: "AlterTableStmt" is
// "ALTER TABLE".
func statementName(kind string) string {
	if name := statementNames[kind]; name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range strings.TrimSuffix(kind, "Stmt") {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
