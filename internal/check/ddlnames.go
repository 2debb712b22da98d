package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkGuardedNames refuses to give a function the name by which the application says that
// functions carry a guard of their own, or to change what goes by it: nobody would have seen
// that code.
func (c *checker) checkGuardedNames(n *sqltree.Node) {
	guarded := c.policy.closure.GuardedFunctions
	if len(guarded) == 0 {
		return
	}
	for _, name := range namedFunctions(n) {
		if !matches(guarded, "", name) {
			continue
		}
		c.report(violation(ProtectedDDL, n, "%s names function %q, which driver.WithGuardedFunctions says to carry a guard of its own: what goes by that name is changed over a plain connection, by somebody who sees to the guard", statementName(n.Kind()), name))
		return
	}
	if n.Is("RenameStmt") && n.Str("renameType") == "OBJECT_SCHEMA" && slices.ContainsFunc(guarded, func(g Name) bool { return g.Schema == n.Str("newname") }) {
		c.report(violation(ProtectedDDL, n, "ALTER SCHEMA ... RENAME TO %q brings other functions to the names of those which driver.WithGuardedFunctions says to carry a guard of their own: use a plain connection", n.Str("newname")))
	}
}

// namedFunctions returns the names of the functions that a statement makes, changes or drops,
// and those that it gives them. What it only calls or binds is not among them.
func namedFunctions(n *sqltree.Node) (names []string) {
	switch n.Kind() {
	case "CreateFunctionStmt":
		return lastNames(n.List("funcname"))
	case "DefineStmt":
		if n.Str("kind") == "OBJECT_AGGREGATE" {
			return lastNames(n.List("defnames"))
		}
	case "AlterFunctionStmt":
		return objectName(n.Get("func"))
	case "RenameStmt":
		if functionKinds[n.Str("renameType")] {
			return append(objectName(n.Get("object")), n.Str("newname"))
		}
	case "AlterObjectSchemaStmt", "AlterOwnerStmt":
		if functionKinds[n.Str("objectType")] {
			return objectName(n.Get("object"))
		}
	case "DropStmt":
		if functionKinds[n.Str("removeType")] {
			for _, object := range n.List("objects") {
				names = append(names, objectName(object)...)
			}
		}
	}
	return names
}

// objectName returns the name of a function that is given with its arguments' types.
func objectName(n *sqltree.Node) []string {
	if !n.Is("ObjectWithArgs") {
		return nil
	}
	return lastNames(n.List("objname"))
}

// lastNames returns the last of the parts of a name, as a list.
func lastNames(parts []*sqltree.Node) []string {
	names, ok := sqltree.Strings(parts)
	if !ok || len(names) == 0 {
		return nil
	}
	return names[len(names)-1:]
}

// checkTypes refuses a change of a type that changes the rows of the protected tables which have
// columns of it: another label of an enum, another or no attribute, another way to send values.
func (c *checker) checkTypes(n *sqltree.Node) {
	types := c.policy.closure.Types
	if len(types) == 0 {
		return
	}
	var parts []string
	switch n.Kind() {
	case "AlterEnumStmt":
		if n.Str("oldVal") == "" {
			return // a label more changes no row
		}
		parts, _ = sqltree.Strings(n.List("typeName"))
	case "AlterTypeStmt":
		parts, _ = sqltree.Strings(n.List("typeName"))
	case "AlterTableStmt":
		if !slices.ContainsFunc(n.List("cmds"), func(cmd *sqltree.Node) bool { return columnCommands[cmd.Str("subtype")] }) {
			return
		}
		parts = []string{n.Get("relation").Str("schemaname"), n.Get("relation").Str("relname")}
	case "RenameStmt":
		if n.Str("renameType") != "OBJECT_ATTRIBUTE" && n.Str("renameType") != "OBJECT_COLUMN" || n.Get("relation") == nil {
			return
		}
		parts = []string{n.Get("relation").Str("schemaname"), n.Get("relation").Str("relname")}
	}
	if len(parts) == 0 {
		return
	}
	schema, name := "", parts[len(parts)-1]
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	if matches(types, schema, name) {
		c.report(violation(ProtectedDDL, n, "%s changes type %q, of which a protected table has a column, and with it what that table's rows are: change it over a plain connection, as migrations do", statementName(n.Kind()), Name{schema, name}))
	}
}

// columnCommands are the parts of ALTER TYPE and ALTER TABLE that change what values of the row
// type are.
var columnCommands = setOf("AT_AddColumn", "AT_DropColumn", "AT_AlterColumnType")

// functionKinds are the kinds of object that are called as functions are.
var functionKinds = setOf("OBJECT_FUNCTION", "OBJECT_PROCEDURE", "OBJECT_ROUTINE", "OBJECT_AGGREGATE")
