package check

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkDDL refuses a change of structure that names a protected table or
// anything its protection rests on, in whatever schema: a relation of the same
// name elsewhere could take its place.
func checkDDL(c *checker, n *sqltree.Node, _ bool) {
	if at := c.namesProtected(n); at != nil {
		c.reportDDL(n, at)
	}
	c.checkReach(n)
	c.walkExpressions(n)
}

// checkReach refuses changes of structure that reach further than their names:
// to typed tables by CASCADE, to a program, to every table of a schema.
func (c *checker) checkReach(n *sqltree.Node) {
	switch n.Kind() {
	case "CreateStmt":
		c.checkLike(n)
	case "ViewStmt":
		c.checkSystemView(n)
	case "AlterTableStmt":
		if n.Str("objtype") == "OBJECT_TYPE" && findText(n, func(s string) bool { return s == "DROP_CASCADE" }) != nil {
			c.report(violation(ProtectedDDL, n, "ALTER TYPE ... CASCADE changes the tables of that type, a protected one may be among them: leave CASCADE out, or use a plain connection"))
		}
	case "RenameStmt":
		if n.Str("renameType") == "OBJECT_ATTRIBUTE" && n.Str("behavior") == "DROP_CASCADE" {
			c.report(violation(ProtectedDDL, n, "ALTER TYPE ... CASCADE changes the tables of that type, a protected one may be among them: leave CASCADE out, or use a plain connection"))
		}
		if n.Str("renameType") == "OBJECT_LANGUAGE" {
			refuseDDL(c, n, false)
		}
		c.byPath = c.byPath || c.policy.known && n.Str("renameType") == "OBJECT_SCHEMA"
		if n.Str("renameType") == "OBJECT_SCHEMA" && (!c.policy.known || slices.Contains(c.policy.path, n.Str("newname"))) {
			c.report(violation(ProtectedDDL, n, "a schema called %q would come first in this session's search_path, and its tables in the place of protected ones: use a plain connection", n.Str("newname")))
		}
	case "GrantStmt":
		if n.Str("targtype") == "ACL_TARGET_ALL_IN_SCHEMA" {
			c.checkSchemas(n)
		}
	}
	if n.Kind() == "CreateForeignTableStmt" || n.Kind() == "AlterTableStmt" {
		c.checkForeignOptions(n)
	}
}

// checkForeignOptions refuses a foreign table that runs a program, or that
// reads a protected table over a connection of its own.
func (c *checker) checkForeignOptions(n *sqltree.Node) {
	if n.Kind() == "DefElem" {
		arg := n.Get("arg")
		switch {
		case n.Str("defname") == "program":
			c.report(violation(HiddenCode, n, "a foreign table that runs a program cannot be checked: use a plain connection"))
		case arg.Is("String") && c.policy.hit(arg.Str("sval")) != "":
			c.report(violation(ProtectedDDL, n, "option %s of a foreign table names what the protection rests on: use a plain connection", n.Str("defname")))
		}
	}
	for _, k := range n.Kids {
		c.checkForeignOptions(k)
	}
}

// checkSchemaDDL also refuses to rename, move or give away the schema of a
// protected table.
func checkSchemaDDL(c *checker, n *sqltree.Node, top bool) {
	checkDDL(c, n, top)
	kind := n.Str(map[string]string{"RenameStmt": "renameType", "AlterObjectSchemaStmt": "objectType", "AlterOwnerStmt": "objectType"}[n.Kind()])
	if kind == "OBJECT_SCHEMA" {
		c.checkSchemas(n)
	}
}

// checkDrop refuses drops that name something protected, or that may take it
// along: of its schema, and with CASCADE of what columns or triggers use.
func checkDrop(c *checker, n *sqltree.Node, top bool) {
	checkDDL(c, n, top)
	cascade := n.Str("behavior") == "DROP_CASCADE"
	switch n.Str("removeType") {
	case "OBJECT_SCHEMA":
		c.checkSchemas(n)
	case "OBJECT_EXTENSION", "OBJECT_TYPE", "OBJECT_DOMAIN", "OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE", "OBJECT_AGGREGATE",
		"OBJECT_LANGUAGE", "OBJECT_OPERATOR", "OBJECT_OPCLASS", "OBJECT_OPFAMILY", "OBJECT_COLLATION", "OBJECT_ACCESS_METHOD":
	default:
		return
	}
	if cascade && len(c.policy.tables) > 0 {
		c.report(violation(ProtectedDDL, n, "DROP ... CASCADE of this kind can take columns, triggers or functions of a protected table along: leave CASCADE out, or use a plain connection"))
	}
}

// refuseDDL refuses changes of structure whose reach a text doesn't show.
func refuseDDL(c *checker, n *sqltree.Node, _ bool) {
	c.report(violation(ProtectedDDL, n, "%s reaches objects that it does not name, protected tables among them: use a plain connection", statementName(n.Kind())))
}

// checkSchemas refuses a statement that names a schema which the protection
// rests on.
func (c *checker) checkSchemas(n *sqltree.Node) {
	if at := findText(n, c.policy.holdsProtected); at != nil {
		c.report(violation(ProtectedDDL, n, "schema %q holds a protected table or what its protection rests on: change it over a plain connection", at.Text))
	}
}

func (c *checker) reportDDL(n, at *sqltree.Node) {
	v := violation(ProtectedDDL, n, "%s names %q, which is a protected table or what its protection rests on: change its structure over a plain connection, as migrations do", statementName(n.Kind()), at.Text)
	if k := &c.policy.closure; len(c.policy.byName[at.Text]) == 0 && matches(k.Functions, "", at.Text) {
		v.Message = statementName(n.Kind()) + " names function " + strconv.Quote(at.Text) + ", which may write a protected table without a proof: what calls or fires it, and what it is, is changed over a plain connection, as migrations do"
	}
	if c.byPath && c.mayBeMoved {
		v.Message += "; if another is meant, write its schema, or send the statement by itself: one before it may change the search_path"
	}
	if v.offset < 0 {
		v.offset = sqltree.FirstOffset(n)
	}
	for _, r := range c.policy.byName[at.Text] {
		if r.table != nil {
			v.on(r.table)
			break
		}
	}
	c.report(v)
}

// namesProtected returns the first name in a change of structure that the
// protection rests on. Columns, constants and parameters are no such names.
func (c *checker) namesProtected(n *sqltree.Node) *sqltree.Node {
	if at := builtinObject(n); at != nil {
		return at
	}
	if at := c.fencingObject(n); at != nil {
		c.nameOwn(at, at.Text)
	}
	if statementKinds[n.Kind()].namesFunctions {
		if at := findCall(n); at != nil {
			return at
		}
	}
	if n.Kind() == "CreateForeignTableStmt" {
		// its rows are another table's, by default one of the same name
		return findName(n, c.policy.isWord, nil)
	}
	// RENAME and SET SCHEMA can bring a name from elsewhere to where it counts
	if n.Kind() == "RenameStmt" || n.Kind() == "AlterObjectSchemaStmt" {
		return findName(n, c.policy.isWord, nil)
	}
	return findName(n, c.policy.isWord, c.elsewhere)
}

// elsewhere is what the policy says of a name. It notes where that rests on the path that the
// session is said to have: code in the database may have led it to another one.
func (c *checker) elsewhere(schema, name string) bool {
	if !c.policy.elsewhere(schema, name) {
		return false
	}
	if schema == "" && c.policy.isWord(name) {
		c.byPath = true
		return !c.mayBeMoved
	}
	return true
}

// movesPath reports whether a statement may leave the session with another search path than
// before: by a SET, by the end of a transaction, or by code that it calls or fires.
func movesPath(n *sqltree.Node) bool {
	switch n.Kind() {
	case "TransactionStmt":
		return n.Str("kind") != "TRANS_STMT_BEGIN" && n.Str("kind") != "TRANS_STMT_START" && n.Str("kind") != "TRANS_STMT_SAVEPOINT"
	case "CreateStmt":
		return n.Get("partbound") != nil && callsFunction(n) // the rest is only stored
	case "AlterTableStmt", "IndexStmt":
		return callsFunction(n)
	}
	return !writesNothing(n) && !runsNothing[n.Kind()]
}

func callsFunction(n *sqltree.Node) bool {
	return n.Is("FuncCall") || slices.ContainsFunc(n.Kids, callsFunction)
}

// columnFields hold names of columns, constraints and the like.
var columnFields = setOf("colname", "keys", "fk_attrs", "pk_attrs", "fk_del_set_cols", "including", "indexcolname", "colnames", "aliascolnames")

// findCall returns the name of a function that runs SQL, among the names of a
// statement that are no table's.
func findCall(n *sqltree.Node) *sqltree.Node {
	switch {
	case n.Kind() == "RangeVar" || n.Kind() == "A_Const" || n.Kind() == "ColumnRef":
		return nil
	case n.Kind() == sqltree.ScalarKind:
		if !n.IsNumber && runsSQL(n.Text) {
			return n
		}
		return nil
	}
	for _, k := range n.Kids {
		if at := findCall(k); at != nil {
			return at
		}
	}
	return nil
}

// builtinObject returns the name of a built-in object that a statement changes:
// anything in pg_catalog, and what the guard itself is made of.
func builtinObject(n *sqltree.Node) *sqltree.Node {
	for _, field := range []string{"object", "objects", "funcname", "defnames", "opername", "func"} {
		if !n.HasField(field) {
			continue
		}
		if at := n.Get(field); at != nil {
			creates := n.Kind() == "CreateFunctionStmt" || n.Kind() == "DefineStmt"
			if found := findName(objectNames(at), func(s string) bool { return s == "pg_catalog" || !creates && guardParts[s] }, nil); found != nil {
				return found
			}
		}
	}
	return nil
}

// objectNames drops the arguments' types of an operator or function, which are
// built in most of the time.
func objectNames(n *sqltree.Node) *sqltree.Node {
	if n.Kind() == "ObjectWithArgs" {
		return n.Get("objname")
	}
	if n.Kind() == sqltree.ListKind || n.Kind() == "List" {
		out := &sqltree.Node{Type: n.Type}
		for _, k := range n.Kids {
			if at := objectNames(k); at != nil {
				out.Kids = append(out.Kids, at)
			}
		}
		return out
	}
	if n.Kind() == "TypeName" {
		return nil
	}
	return n
}

// guardParts are the operators of a guard and the functions behind them.
var guardParts = setOf("<", ">", "<=", ">=", "int8lt", "int8gt", "int8le", "int8ge", "int84lt", "int84gt", "int84le", "int84ge",
	"int48lt", "int48gt", "int48le", "int48ge", "int82lt", "int82gt", "int82le", "int82ge", "int28lt", "int28gt", "int28le", "int28ge")

// ownName reports whether a field of n names a part of the object at hand: a column, a
// constraint, a trigger.
func ownName(n, k *sqltree.Node) bool {
	switch n.Kind() {
	case "ResTarget", "IndexElem", "AlterTableCmd":
		return k.Field() == "name"
	case "RenameStmt":
		// not of a constraint: its index takes the name
		part := setOf("OBJECT_COLUMN", "OBJECT_ATTRIBUTE", "OBJECT_DOMCONSTRAINT", "OBJECT_TRIGGER", "OBJECT_RULE", "OBJECT_POLICY")
		return k.Field() == "subname" || k.Field() == "newname" && part[n.Str("renameType")]
	}
	return false
}

// findName returns the first name below n that matches and isn't qualified with
// a schema in which it stands for something else.
func findName(n *sqltree.Node, match func(string) bool, elsewhere func(schema, name string) bool) *sqltree.Node {
	switch {
	case n == nil || n.Kind() == "A_Const" || n.Kind() == "ColumnRef" || n.Kind() == "TableLikeClause" || columnFields[n.Field()]:
		return nil
	case n.Kind() == "RangeVar" && systemSchema(n.Str("schemaname")) && n.Str("schemaname") != "information_schema":
		return n.Get("schemaname")
	case n.Kind() == "RangeVar" && elsewhere != nil && elsewhere(n.Str("schemaname"), n.Str("relname")) && n.Str("relpersistence") != "t":
		return nil
	case n.Kind() == "DropStmt" && droppedByName[n.Str("removeType")] && elsewhere != nil:
		for _, object := range n.List("objects") {
			parts, ok := sqltree.Strings(object.List("items"))
			if at := findText(object, match); at != nil && !(ok && len(parts) < 3 && elsewhere(strings.Join(parts[:len(parts)-1], ""), parts[len(parts)-1])) {
				return at
			}
		}
		return nil
	case n.Kind() == "CommentStmt" && n.Str("objtype") == "OBJECT_COLUMN":
		parts := n.Get("object").List("items")
		return findName(&sqltree.Node{Type: sqltree.ListType, Kids: parts[:max(0, len(parts)-1)]}, match, elsewhere)
	case n.Kind() == sqltree.ScalarKind:
		if !n.IsNumber && match(n.Text) {
			return n
		}
		return nil
	}
	for _, k := range n.Kids {
		if ownName(n, k) {
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
func findText(n *sqltree.Node, match func(string) bool) *sqltree.Node {
	if n.Kind() == sqltree.ScalarKind && !n.IsNumber && match(n.Text) {
		return n
	}
	for _, k := range n.Kids {
		if at := findText(k, match); at != nil {
			return at
		}
	}
	return nil
}

// walkExpressions checks the queries and calls inside a change of structure:
// defaults, checks, generated columns, views, the elements of CREATE SCHEMA.
//
// They run later, in other sessions: what they change there is not seen.
func (c *checker) walkExpressions(n *sqltree.Node) {
	defer func(before bool) { c.stored = before }(c.stored)
	c.stored = true
	for _, k := range n.Kids {
		switch {
		case expressionKinds[k.Kind()]:
			c.walk(k, n)
		case statementKinds[k.Kind()].check != nil:
			c.statement(k)
		default:
			c.walkExpressions(k)
		}
	}
}

// expressionKinds are where an expression or a query begins.
var expressionKinds = setOf("SelectStmt", "FuncCall", "A_Expr", "ColumnRef", "A_Indirection", "A_ArrayExpr", "TypeCast", "CollateClause", "BoolExpr", "NullTest",
	"BooleanTest", "SubLink", "CaseExpr", "CoalesceExpr", "MinMaxExpr", "RowExpr", "XmlExpr")

// isTokenSequence reports whether tokens may come from a sequence, whatever
// schema it is in.
func (c *checker) isTokenSequence(parts []string) bool {
	name := parts[len(parts)-1]
	if len(parts) > 1 && parts[len(parts)-2] == "fencing" {
		return true
	}
	return slices.ContainsFunc(c.policy.closure.Sequences, func(s Name) bool { return s.Name == name })
}
