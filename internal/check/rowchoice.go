package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// choosesRows reports whether the rows of a SELECT may hang on the value at a
// position of its list, so that another value there could make others: it may be
// an aggregate or a set, or be what DISTINCT, GROUP BY or ORDER BY go by.
func choosesRows(source *sqltree.Node, position int) bool {
	item := source.List("targetList")[position]
	value := item.Get("val")
	if callsUnknown(value) {
		return true
	}
	fixed := constant(value)
	if distinct := source.List("distinctClause"); len(distinct) == 1 && distinct[0].Is("null") && !fixed {
		return true // DISTINCT, of the whole row
	}
	name := outputName(item)
	for _, clause := range []string{"distinctClause", "groupClause", "sortClause"} {
		for _, n := range source.List(clause) {
			if refersTo(n, name, position, fixed) {
				return true
			}
		}
	}
	return false
}

// callsUnknown reports whether a value may be an aggregate, or stand for several
// rows: it calls a function that isn't known to do neither.
func callsUnknown(n *sqltree.Node) bool {
	if n.Is("FuncCall") {
		parts, ok := sqltree.Strings(n.List("funcname"))
		if !ok || !(len(parts) == 1 || len(parts) == 2 && parts[0] == "pg_catalog") || !steadyFunctions[parts[len(parts)-1]] && !singleFunctions[parts[len(parts)-1]] {
			return true
		}
	}
	return n != nil && slices.ContainsFunc(n.Kids, callsUnknown)
}

// constant reports whether n is a constant or a placeholder, with casts or a
// minus.
func constant(n *sqltree.Node) bool {
	for {
		switch {
		case n.Is("TypeCast"):
			n = n.Get("arg")
		case n.Is("A_Expr") && n.Str("kind") == "AEXPR_OP" && n.Get("lexpr") == nil && isName(n.List("name"), "-"):
			n = n.Get("rexpr")
		default:
			return n.Is("ParamRef") || n.Is("A_Const")
		}
	}
}

// singleFunctions give one value for one row, another one each time.
var singleFunctions = setOf("nextval", "currval", "lastval", "random", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "txid_current", "pg_current_xact_id")

// outputName is the name by which ORDER BY and GROUP BY know an item of a list, if
// it isn't that of the column itself in reach of them.
func outputName(item *sqltree.Node) string {
	if name := item.Str("name"); name != "" {
		return name
	}
	if value := item.Get("val"); value.Is("ColumnRef") {
		if parts, ok := sqltree.Strings(value.List("fields")); ok && len(parts) > 1 {
			return parts[len(parts)-1]
		}
	}
	return ""
}

// refersTo reports whether a member of DISTINCT ON, GROUP BY or ORDER BY means an
// item of the list by its position or name. The place of a constant says nothing.
func refersTo(n *sqltree.Node, name string, position int, fixed bool) bool {
	if n.Is("SortBy") {
		n = n.Get("node")
	}
	switch {
	case n.Is("A_Const"):
		number, ok := integerLiteral(n)
		return !fixed && ok && number == int64(position)+1
	case n.Is("ColumnRef"):
		parts, ok := sqltree.Strings(n.List("fields"))
		return ok && len(parts) == 1 && name != "" && parts[0] == name
	case n.Is("GroupingSet"):
		return slices.ContainsFunc(n.List("content"), func(k *sqltree.Node) bool { return refersTo(k, name, position, fixed) })
	}
	return n.Is("List") && slices.ContainsFunc(n.List("items"), func(k *sqltree.Node) bool { return refersTo(k, name, position, fixed) }) ||
		n.Is("RowExpr") && slices.ContainsFunc(n.List("args"), func(k *sqltree.Node) bool { return refersTo(k, name, position, fixed) })
}
