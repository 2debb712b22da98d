package rewrite

import "slices"

// choosesRows reports whether the rows of a SELECT may hang on the value at a
// position of its list, so that another value there could make others: it may be
// an aggregate or a set, or be what DISTINCT, GROUP BY or ORDER BY go by.
func choosesRows(source *node, position int) bool {
	item := source.list("targetList")[position]
	value := item.get("val")
	if callsUnknown(value) {
		return true
	}
	fixed := constant(value)
	if distinct := source.list("distinctClause"); len(distinct) == 1 && distinct[0].is("null") && !fixed {
		return true // DISTINCT, of the whole row
	}
	name := outputName(item)
	for _, clause := range []string{"distinctClause", "groupClause", "sortClause"} {
		for _, n := range source.list(clause) {
			if refersTo(n, name, position, fixed) {
				return true
			}
		}
	}
	return false
}

// callsUnknown reports whether a value may be an aggregate, or stand for several
// rows: it calls a function that isn't known to do neither.
func callsUnknown(n *node) bool {
	if n.is("FuncCall") {
		parts, ok := stringList(n.list("funcname"))
		if !ok || !(len(parts) == 1 || len(parts) == 2 && parts[0] == "pg_catalog") || !steadyFunctions[parts[len(parts)-1]] && !singleFunctions[parts[len(parts)-1]] {
			return true
		}
	}
	return n != nil && slices.ContainsFunc(n.kids, callsUnknown)
}

// singleFunctions give one value for one row, another one each time.
var singleFunctions = setOf("nextval", "currval", "lastval", "random", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "txid_current", "pg_current_xact_id")

// outputName is the name by which ORDER BY and GROUP BY know an item of a list, if
// it isn't that of the column itself in reach of them.
func outputName(item *node) string {
	if name := item.str("name"); name != "" {
		return name
	}
	if value := item.get("val"); value.is("ColumnRef") {
		if parts, ok := stringList(value.list("fields")); ok && len(parts) > 1 {
			return parts[len(parts)-1]
		}
	}
	return ""
}

// refersTo reports whether a member of DISTINCT ON, GROUP BY or ORDER BY means an
// item of the list by its position or name. The place of a constant says nothing.
func refersTo(n *node, name string, position int, fixed bool) bool {
	if n.is("SortBy") {
		n = n.get("node")
	}
	switch {
	case n.is("A_Const"):
		number, ok := integerLiteral(n)
		return !fixed && ok && number == int64(position)+1
	case n.is("ColumnRef"):
		parts, ok := stringList(n.list("fields"))
		return ok && len(parts) == 1 && name != "" && parts[0] == name
	case n.is("GroupingSet"):
		return slices.ContainsFunc(n.list("content"), func(k *node) bool { return refersTo(k, name, position, fixed) })
	}
	return n.is("List") && slices.ContainsFunc(n.list("items"), func(k *node) bool { return refersTo(k, name, position, fixed) }) ||
		n.is("RowExpr") && slices.ContainsFunc(n.list("args"), func(k *node) bool { return refersTo(k, name, position, fixed) })
}
