package check

import (
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// statementRule checks one kind of statement, with everything in it. top says
// that it is a statement of the text itself and not a part of another.
type statementRule func(c *checker, n *sqltree.Node, top bool)

// statementKind is all that the check knows of one kind of statement.
type statementKind struct {
	check statementRule
	name  string // how SQL says it, where the words of the kind's own name don't

	// A closure is after the statement what it was before. What a function that it
	// calls does is not seen.
	keepsCatalog bool

	// A statement that changes the catalog runs event triggers, and others don't, but
	// for these: what eventless ones change is shared by all databases, or no object.
	runsEvents, eventless bool

	namesFunctions bool // it makes an object that calls functions, or gives one another name
}

// statementKinds has one entry for each kind of statement that may be sent at
// all. A kind that isn't here is refused.
var statementKinds map[string]statementKind

// It is filled here because the rules refer back to it.
func init() {
	statementKinds = map[string]statementKind{
		"SelectStmt": {check: checkSelect, keepsCatalog: true},
		"InsertStmt": {check: checkInsert, keepsCatalog: true},
		"UpdateStmt": {check: checkUpdate, keepsCatalog: true},
		"DeleteStmt": {check: checkDelete, keepsCatalog: true},
		"MergeStmt":  {check: checkMerge, keepsCatalog: true},

		// a statement or query inside, or a call
		"ExplainStmt":       {check: checkInner, keepsCatalog: true},
		"DeclareCursorStmt": {check: checkInner, keepsCatalog: true},
		"CreateTableAsStmt": {check: checkInner, keepsCatalog: true, runsEvents: true},
		"CallStmt":          {check: checkInner, keepsCatalog: true},
		"CopyStmt":          {check: checkCopy, keepsCatalog: true},
		"TruncateStmt":      {check: checkTruncate, keepsCatalog: true},

		"PrepareStmt":    {check: checkPrepare, keepsCatalog: true},
		"ExecuteStmt":    {check: checkPrepare, keepsCatalog: true},
		"DeallocateStmt": {check: checkPrepare, keepsCatalog: true},
		"DiscardStmt":    {check: checkPrepare, keepsCatalog: true},

		"VariableSetStmt":      {check: checkVariableSet, keepsCatalog: true},
		"AlterRoleSetStmt":     {check: checkStoredSetting, name: "ALTER ROLE ... SET", eventless: true},
		"AlterDatabaseSetStmt": {check: checkStoredSetting, name: "ALTER DATABASE ... SET", eventless: true},
		"AlterSystemStmt":      {check: checkStoredSetting, name: "ALTER SYSTEM", eventless: true},

		// code that runs later, or now without being seen
		"DoStmt":                  {check: checkDo, name: "DO", eventless: true},
		"CreateFunctionStmt":      {check: checkCreateFunction},
		"RuleStmt":                {check: checkCreateRule, name: "CREATE RULE"},
		"CreateTrigStmt":          {check: checkCode, name: "CREATE TRIGGER", namesFunctions: true},
		"CreateEventTrigStmt":     {check: checkCode, name: "CREATE EVENT TRIGGER", eventless: true, namesFunctions: true},
		"CreateCastStmt":          {check: checkCode, namesFunctions: true},
		"CreateTransformStmt":     {check: checkCode, namesFunctions: true},
		"DefineStmt":              {check: checkCode, name: "CREATE OPERATOR, AGGREGATE or TYPE", namesFunctions: true}, // CREATE AGGREGATE, OPERATOR, TYPE, ...
		"CreateOpClassStmt":       {check: checkCode, namesFunctions: true},
		"CreateConversionStmt":    {check: checkCode, namesFunctions: true},
		"AlterFunctionStmt":       {check: checkCode, namesFunctions: true},
		"AlterOperatorStmt":       {check: checkCode, namesFunctions: true},
		"CreateRangeStmt":         {check: checkCode, name: "CREATE TYPE", namesFunctions: true},
		"CreateDomainStmt":        {check: checkCode}, // its CHECK may call
		"LoadStmt":                {check: refuseCode, eventless: true},
		"ImportForeignSchemaStmt": {check: refuseCode},
		"CreateSubscriptionStmt":  {check: refuseCode},
		"AlterSubscriptionStmt":   {check: refuseCode},
		"CreateAmStmt":            {check: refuseCode, name: "CREATE ACCESS METHOD"},
		"CreatePLangStmt":         {check: refuseCode, name: "CREATE LANGUAGE"},

		// changes of structure: refused if they name what the protection rests on
		"CreateStmt":                 {check: checkDDL, name: "CREATE TABLE"},
		"CreateForeignTableStmt":     {check: checkDDL},
		"ViewStmt":                   {check: checkDDL, name: "CREATE VIEW"},
		"IndexStmt":                  {check: checkDDL, name: "CREATE INDEX"},
		"CreateSeqStmt":              {check: checkDDL, name: "CREATE SEQUENCE"},
		"AlterSeqStmt":               {check: checkDDL, name: "ALTER SEQUENCE"},
		"CreateSchemaStmt":           {check: checkDDL},
		"CompositeTypeStmt":          {check: checkDDL, name: "CREATE TYPE"},
		"CreateEnumStmt":             {check: checkDDL, name: "CREATE TYPE"},
		"AlterEnumStmt":              {check: checkDDL, name: "ALTER TYPE"},
		"AlterTypeStmt":              {check: checkDDL, namesFunctions: true},
		"AlterDomainStmt":            {check: checkDDL},
		"AlterTableStmt":             {check: checkDDL},
		"AlterCollationStmt":         {check: checkDDL},
		"CreateStatsStmt":            {check: checkDDL, keepsCatalog: true, runsEvents: true},
		"AlterStatsStmt":             {check: checkDDL, keepsCatalog: true, runsEvents: true},
		"CreatePolicyStmt":           {check: checkDDL},
		"AlterPolicyStmt":            {check: checkDDL},
		"CommentStmt":                {check: checkDDL, name: "COMMENT", keepsCatalog: true, runsEvents: true},
		"SecLabelStmt":               {check: checkDDL, name: "SECURITY LABEL"},
		"GrantStmt":                  {check: checkDDL, name: "GRANT or REVOKE", keepsCatalog: true, runsEvents: true},
		"CreatePublicationStmt":      {check: checkDDL},
		"AlterPublicationStmt":       {check: checkDDL},
		"AlterExtensionContentsStmt": {check: checkMember, name: "ALTER EXTENSION ... ADD or DROP"},
		"AlterObjectDependsStmt":     {check: checkDDL},
		"AlterEventTrigStmt":         {check: checkDDL, eventless: true},
		"CreateOpFamilyStmt":         {check: checkDDL},
		"AlterOpFamilyStmt":          {check: checkDDL, namesFunctions: true},
		"CreateExtensionStmt":        {check: checkDDL},
		"AlterExtensionStmt":         {check: checkDDL},
		"RenameStmt":                 {check: checkSchemaDDL, name: "ALTER ... RENAME", namesFunctions: true},
		"AlterObjectSchemaStmt":      {check: checkSchemaDDL, name: "ALTER ... SET SCHEMA", namesFunctions: true},
		"AlterOwnerStmt":             {check: checkSchemaDDL, name: "ALTER ... OWNER TO", namesFunctions: true},
		"DropStmt":                   {check: checkDrop, name: "DROP"},
		"DropOwnedStmt":              {check: refuseDDL},
		"ReassignOwnedStmt":          {check: refuseDDL},
		"AlterTableMoveAllStmt":      {check: refuseDDL, name: "ALTER TABLE ALL"},

		// nothing in them writes a row or changes what the check rests on
		"TransactionStmt":    {check: allow, keepsCatalog: true},
		"ConstraintsSetStmt": {check: allow, keepsCatalog: true},
		"VariableShowStmt":   {check: allow, keepsCatalog: true},
		"FetchStmt":          {check: allow, keepsCatalog: true},
		"ClosePortalStmt":    {check: allow, keepsCatalog: true},
		"ListenStmt":         {check: allow, keepsCatalog: true},
		"UnlistenStmt":       {check: allow, keepsCatalog: true},
		"NotifyStmt":         {check: allow, keepsCatalog: true},
		"LockStmt":           {check: allow, keepsCatalog: true},
		"CheckPointStmt":     {check: allow, keepsCatalog: true},
		"VacuumStmt":         {check: checkMaintenance, keepsCatalog: true},
		"ClusterStmt":        {check: checkMaintenance, keepsCatalog: true},
		"ReindexStmt":        {check: checkMaintenance, keepsCatalog: true, runsEvents: true},
		"RefreshMatViewStmt": {check: checkRefresh, keepsCatalog: true, runsEvents: true},

		// roles, databases, storage, text search, foreign servers: none is a table
		"GrantRoleStmt":                {check: allow, keepsCatalog: true, eventless: true},
		"CreateRoleStmt":               {check: allow, eventless: true},
		"AlterRoleStmt":                {check: allow, eventless: true},
		"DropRoleStmt":                 {check: allow, eventless: true},
		"AlterDefaultPrivilegesStmt":   {check: allow},
		"CreatedbStmt":                 {check: allow, eventless: true},
		"AlterDatabaseStmt":            {check: allow, eventless: true},
		"AlterDatabaseRefreshCollStmt": {check: allow, eventless: true},
		"DropdbStmt":                   {check: allow, eventless: true},
		"CreateTableSpaceStmt":         {check: allow, eventless: true},
		"DropTableSpaceStmt":           {check: allow, eventless: true},
		"AlterTableSpaceOptionsStmt":   {check: allow, eventless: true},
		"AlterTSDictionaryStmt":        {check: allow},
		"AlterTSConfigurationStmt":     {check: allow},
		"CreateFdwStmt":                {check: checkWrapper, name: "CREATE FOREIGN DATA WRAPPER"},
		"AlterFdwStmt":                 {check: checkWrapper, name: "ALTER FOREIGN DATA WRAPPER"},
		"CreateForeignServerStmt":      {check: allow},
		"AlterForeignServerStmt":       {check: allow},
		"CreateUserMappingStmt":        {check: allow},
		"AlterUserMappingStmt":         {check: allow},
		"DropUserMappingStmt":          {check: allow},
		"DropSubscriptionStmt":         {check: allow},
	}
}

func allow(*checker, *sqltree.Node, bool) {}

// checkEvents refuses a change of structure that runs an event trigger which
// writes a protected table.
func (c *checker) checkEvents(n *sqltree.Node) {
	if events := c.policy.closure.EventTriggers; len(events) > 0 && runsEvents(n) {
		c.report(violation(IndirectWrite, n, "%s runs an event trigger whose function %q writes a protected table without a proof: use a plain connection", statementName(n.Kind()), events[0]))
	}
}

// changesCatalog reports whether a closure may be another one after a statement. What
// a prepared transaction has changed is there once that is committed.
func changesCatalog(n *sqltree.Node) bool {
	return !statementKinds[n.Kind()].keepsCatalog || n.Is("TransactionStmt") && n.Str("kind") == "TRANS_STMT_COMMIT_PREPARED"
}

// runsEvents reports whether a statement changes a structure, and so fires event
// triggers.
func runsEvents(n *sqltree.Node) bool {
	kind := statementKinds[n.Kind()]
	return kind.runsEvents || n.Is("SelectStmt") && n.Get("intoClause") != nil || !kind.keepsCatalog && !kind.eventless
}

// statementName turns a node's kind into words: "AlterTableStmt" is
// "ALTER TABLE".
func statementName(kind string) string {
	if name := statementKinds[kind].name; name != "" {
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
