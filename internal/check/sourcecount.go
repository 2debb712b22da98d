package check

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// countSource returns the query for the number of rows that the source of an upsert has,
// "" if there is none. PostgreSQL runs it when the statement returns its first row, under
// the statement's snapshot, so that the rows which the statement writes aren't seen.
func (a *asked) countSource() string {
	source := a.tree.Get("selectStmt")
	if a.isInner || !source.Is("SelectStmt") {
		return ""
	}
	query := proto.CloneOf(a.stmt.GetInsertStmt().GetSelectStmt().GetSelectStmt())
	query.SortClause = nil
	switch {
	case !hasSteadyRows(source):
		return ""
	case isOneForOne(source):
		query.TargetList = nil
	case slices.ContainsFunc(source.List("targetList"), func(item *sqltree.Node) bool { return !isSteady(item) }):
		return ""
	}
	text, err := parser.DeparseSelect(parser.NewQueryOf(parser.NewCall(parser.NewNames("pg_catalog", "count")), sourceName, query))
	if err != nil {
		return ""
	}
	return text
}

// hasSteadyRows reports whether a query has as many rows whenever the statement runs it,
// as far as what it lists doesn't matter.
func hasSteadyRows(query *sqltree.Node) bool {
	if query.Str("op") != "SETOP_NONE" {
		return isSteady(query)
	}
	for _, field := range []string{"limitCount", "limitOffset", "whereClause", "havingClause", "withClause"} {
		if !isSteady(query.Get(field)) {
			return false
		}
	}
	for _, field := range []string{"fromClause", "groupClause", "valuesLists", "distinctClause"} {
		if slices.ContainsFunc(query.List(field), func(n *sqltree.Node) bool { return !isSteady(n) }) {
			return false
		}
	}
	return query.Str("limitOption") != "LIMIT_OPTION_WITH_TIES" && len(query.List("lockingClause")) == 0
}

// isOneForOne reports whether a query has one row for each that it finds, whatever it
// lists.
func isOneForOne(query *sqltree.Node) bool {
	for _, field := range []string{"groupClause", "distinctClause", "valuesLists"} {
		if len(query.List(field)) > 0 {
			return false
		}
	}
	return query.Str("op") == "SETOP_NONE" && query.Get("havingClause") == nil && !slices.ContainsFunc(query.List("targetList"), callsManyRows)
}

// callsManyRows reports whether an expression calls what isn't known to give one value
// for one row: an aggregate, a function of rows, or one of the application's own.
func callsManyRows(n *sqltree.Node) bool {
	if n.Is("FuncCall") {
		parts, ok := sqltree.Strings(n.List("funcname"))
		if !ok || !(len(parts) == 1 || len(parts) == 2 && parts[0] == "pg_catalog") {
			return true
		}
		if name := parts[len(parts)-1]; !steadyFunctions[name] && !singleFunctions[name] && !plainFunctions[name] {
			return true
		}
	}
	return n != nil && slices.ContainsFunc(n.Kids, callsManyRows)
}

// plainFunctions give one value for one row, too.
var plainFunctions = setOf("gen_random_uuid", "chr", "ascii", "lpad", "rpad", "round", "floor", "ceil", "ceiling", "trunc", "mod", "format", "concat_ws",
	"left", "right", "split_part", "regexp_replace", "to_char", "to_timestamp", "to_date", "to_number", "make_interval", "encode", "decode", "initcap", "reverse",
	"to_jsonb", "to_json", "row_to_json", "jsonb_build_object", "json_build_object", "jsonb_set", "timeofday")
