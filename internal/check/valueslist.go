package check

import (
	"slices"
	"strconv"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// valuesList is a list of VALUES that a statement reads in FROM under a name, or a
// SELECT of nothing but constants and placeholders, which is such a list of one row.
type valuesList struct {
	tokens  map[int]*operand // what has been read of a column; nil: it holds no token
	ref     string
	columns []string // names that are given, the rest is column1, column2, ...
	rows    []*sqltree.Node
	isQuery bool // its row is the list of a SELECT, in which a bare placeholder is text
}

// valuesSources are the lists that a statement can refer to.
type valuesSources map[string]valuesList

// findValues finds the items of FROM or USING that are nothing but VALUES:
// derived tables, and names of such a WITH query of the statement itself. A
// name that two items share is left out.
//
// outer is the WITH of the statement around it, such as an INSERT's.
func findValues(stmt *sqltree.Node, fromField string, outer *sqltree.Node) valuesSources {
	from := stmt.Get(fromField)
	if from == nil {
		return nil
	}
	items := []*sqltree.Node{from}
	if from.Kind() == sqltree.ListKind {
		items = from.Kids
	}
	named := make(map[string]int)
	for _, name := range rangeNames(items, nil) {
		named[name]++
	}
	queries := make(map[string]*sqltree.Node)
	for _, with := range []*sqltree.Node{outer, stmt.Get("withClause")} {
		if with != nil {
			for _, cte := range with.List("ctes") {
				queries[cte.Str("ctename")] = cte
			}
		}
	}
	lists := make(valuesSources)
	for _, item := range items {
		if list, ok := valuesItem(item, queries); ok && named[list.ref] == 1 {
			list.tokens = make(map[int]*operand)
			lists[list.ref] = list
		}
	}
	return lists
}

func valuesItem(item *sqltree.Node, queries map[string]*sqltree.Node) (valuesList, bool) {
	var list valuesList
	var query *sqltree.Node
	switch {
	case item.Is("RangeSubselect"):
		query = item.Get("subquery")
	case item.Is("RangeVar") && item.Str("schemaname") == "":
		list.ref = item.Str("relname")
		if cte := queries[list.ref]; cte != nil {
			query = cte.Get("ctequery")
			list.columns, _ = sqltree.Strings(cte.List("aliascolnames"))
		}
	}
	if alias := aliasOf(item); alias != nil {
		list.ref = alias.Str("aliasname")
		names, _ := sqltree.Strings(alias.List("colnames"))
		list.columns = append(names, list.columns[min(len(names), len(list.columns)):]...)
	}
	if !query.Is("SelectStmt") || query.Str("op") != "SETOP_NONE" {
		return valuesList{}, false
	}
	list.rows = query.List("valuesLists")
	if list.isQuery = isConstantRow(query); list.isQuery {
		list.rows = []*sqltree.Node{query}
		for i, item := range query.List("targetList") {
			if i >= len(list.columns) {
				list.columns = append(list.columns, item.Str("name"))
			}
		}
	}
	return list, len(list.rows) > 0 && list.ref != ""
}

// isConstantRow reports whether a query is a SELECT of constants and placeholders, and
// nothing else: it has one row.
func isConstantRow(query *sqltree.Node) bool {
	for _, k := range query.Kids {
		switch k.Field() {
		case "op", "limitOption":
		case "targetList":
			if slices.ContainsFunc(k.Kids, func(item *sqltree.Node) bool { return !constant(item.Get("val")) }) {
				return false
			}
		default:
			return false
		}
	}
	return len(query.List("targetList")) > 0
}

func aliasOf(item *sqltree.Node) *sqltree.Node {
	if item.Is("RangeSubselect") || item.Is("RangeVar") {
		return item.Get("alias")
	}
	return nil
}

// token reads x.col as a token operand if every row of x has a token there.
func (lists valuesSources) token(n *sqltree.Node) (operand, bool) {
	if !n.Is("ColumnRef") {
		return operand{}, false
	}
	parts, ok := sqltree.Strings(n.List("fields"))
	if !ok || len(parts) != 2 {
		return operand{}, false
	}
	list, ok := lists[parts[0]]
	if !ok {
		return operand{}, false
	}
	position, ok := list.position(parts[1])
	if !ok {
		return operand{}, false
	}
	read, ok := list.tokens[position]
	if !ok {
		read = list.column(position)
		list.tokens[position] = read
	}
	if read == nil {
		return operand{}, false
	}
	return operand{name: sqltext.QuoteIfNeeded(parts[0]) + "." + sqltext.QuoteIfNeeded(parts[1]), rows: read.rows, at: n}, true
}

// column reads a column as tokens, nil if one of its rows has none there.
func (l valuesList) column(position int) *operand {
	o := &operand{rows: make([]operand, 0, len(l.rows))}
	for _, row := range l.rows {
		token, ok := itemToken(l.items(row), position, l.isQuery, tokenOperand)
		if !ok {
			return nil
		}
		o.rows = append(o.rows, token)
	}
	return o
}

// items returns what a row has in its columns.
func (l valuesList) items(row *sqltree.Node) []*sqltree.Node {
	if l.isQuery {
		return row.List("targetList")
	}
	return row.List("items")
}

// position finds a column of the list by its name.
func (l valuesList) position(column string) (int, bool) {
	width := len(l.items(l.rows[0]))
	found := -1
	for i := range width {
		name := "column" + strconv.Itoa(i+1)
		if i < len(l.columns) {
			name = l.columns[i]
		}
		if name == column {
			if found >= 0 {
				return 0, false
			}
			found = i
		}
	}
	return found, found >= 0
}
