package check

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// countMeant returns the query for the number of rows that an UPDATE or DELETE means,
// whatever token they carry, "" if there is none. It stands in the statement itself and
// has the same placeholders, snapshot and names in WITH, so it may read what a second
// look may not: other tables, and sub-selects.
func (a *asked) countMeant() string {
	if a.table == nil || a.stmt == nil || len(a.guards) == 0 {
		return ""
	}
	var rel *parser.RangeVar
	var source []*parser.Node
	var condition *parser.Node
	switch {
	case a.tree.Is("UpdateStmt"):
		s := a.stmt.GetUpdateStmt()
		rel, source, condition = s.Relation, s.FromClause, s.WhereClause
	case a.tree.Is("DeleteStmt"):
		s := a.stmt.GetDeleteStmt()
		rel, source, condition = s.Relation, s.UsingClause, s.WhereClause
	default:
		return ""
	}
	if !a.isSteady() || a.with && a.hidesTarget() {
		return ""
	}
	query := parser.NewSelect(parser.NewCall(parser.NewNames("pg_catalog", "count")), proto.CloneOf(rel))
	query.WhereClause = all(a.unguarded(condition))
	if len(source) > 0 {
		query.WhereClause = parser.NewExists(cloneAll(source), query.WhereClause)
	}
	text, err := parser.DeparseSelect(query)
	if err != nil {
		return ""
	}
	return text
}

// isSteady reports whether the conditions of an UPDATE or DELETE, and what stands beside
// its target, are the same whenever the statement evaluates them.
func (a *asked) isSteady() bool {
	return isSteady(a.tree.Get("whereClause")) && !slices.ContainsFunc(besideTarget(a.tree), func(item *sqltree.Node) bool { return !isSteady(item) })
}

// besideTarget returns what stands beside the target of an UPDATE or DELETE.
func besideTarget(write *sqltree.Node) []*sqltree.Node {
	if write.Is("DeleteStmt") {
		return write.List("usingClause")
	}
	return write.List("fromClause")
}

// hidesTarget reports whether a query in the statement may find an item of a WITH under
// the target's name. A part that has a WITH of its own is counted outside of that.
func (a *asked) hidesTarget() bool {
	if a.isInner {
		return true
	}
	rel := a.tree.Get("relation")
	return rel.Str("schemaname") == "" && slices.ContainsFunc(a.tree.Get("withClause").List("ctes"), func(cte *sqltree.Node) bool {
		return cte.Str("ctename") == rel.Str("relname")
	})
}

// aggregates give the same answer for the same rows.
var aggregates = setOf("count", "max", "min", "sum", "avg", "bool_and", "bool_or", "every", "array_agg", "string_agg")

// isSteady reports whether an expression or a query gives the same answer for the same
// rows: it calls nothing that may be volatile, locks nothing, and doesn't choose among
// its rows by chance.
func isSteady(n *sqltree.Node) bool {
	if n == nil {
		return true
	}
	switch n.Kind() {
	case "CurrentOfExpr", "RangeTableSample", "LockingClause":
		return false
	case "FuncCall":
		parts, ok := sqltree.Strings(n.List("funcname"))
		name := ""
		if ok {
			name = parts[len(parts)-1]
		}
		if !(len(parts) == 1 || len(parts) == 2 && parts[0] == "pg_catalog") || !steadyFunctions[name] && !setFunctions[name] && !aggregates[name] {
			return false
		}
	case "SelectStmt":
		if n.Get("limitCount") != nil || n.Get("limitOffset") != nil || len(n.List("lockingClause")) > 0 || len(n.List("distinctClause")) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(n.Kids, func(kid *sqltree.Node) bool { return !isSteady(kid) })
}
