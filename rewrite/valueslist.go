package rewrite

import (
	"strconv"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// valuesList is a list of VALUES that a statement reads in FROM under a name.
type valuesList struct {
	tokens  map[int]*operand // what has been read of a column; nil: it holds no token
	ref     string
	columns []string // names that are given, the rest is column1, column2, ...
	rows    []*node
}

// valuesSources are the lists that a statement can refer to.
type valuesSources map[string]valuesList

// findValues finds the items of FROM or USING that are nothing but VALUES:
// derived tables, and names of such a WITH query of the statement itself. A
// name that two items share is left out.
//
// outer is the WITH of the statement around it, such as an INSERT's.
func findValues(stmt *node, fromField string, outer *node) valuesSources {
	from := stmt.get(fromField)
	if from == nil {
		return nil
	}
	items := []*node{from}
	if from.kind() == listKind {
		items = from.kids
	}
	named := make(map[string]int)
	for _, name := range rangeNames(items, nil) {
		named[name]++
	}
	queries := make(map[string]*node)
	for _, with := range []*node{outer, stmt.get("withClause")} {
		if with != nil {
			for _, cte := range with.list("ctes") {
				queries[cte.str("ctename")] = cte
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

func valuesItem(item *node, queries map[string]*node) (valuesList, bool) {
	var list valuesList
	var query *node
	switch {
	case item.is("RangeSubselect"):
		query = item.get("subquery")
	case item.is("RangeVar") && item.str("schemaname") == "":
		list.ref = item.str("relname")
		if cte := queries[list.ref]; cte != nil {
			query = cte.get("ctequery")
			list.columns, _ = stringList(cte.list("aliascolnames"))
		}
	}
	if alias := aliasOf(item); alias != nil {
		list.ref = alias.str("aliasname")
		names, _ := stringList(alias.list("colnames"))
		list.columns = append(names, list.columns[min(len(names), len(list.columns)):]...)
	}
	if !query.is("SelectStmt") || query.str("op") != "SETOP_NONE" {
		return valuesList{}, false
	}
	list.rows = query.list("valuesLists")
	return list, len(list.rows) > 0 && list.ref != ""
}

func aliasOf(item *node) *node {
	if item.is("RangeSubselect") || item.is("RangeVar") {
		return item.get("alias")
	}
	return nil
}

// token reads x.col as a token operand if every row of x has a token there.
func (lists valuesSources) token(n *node) (operand, bool) {
	if !n.is("ColumnRef") {
		return operand{}, false
	}
	parts, ok := stringList(n.list("fields"))
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
		token, ok := itemToken(row.list("items"), position, false, tokenOperand)
		if !ok {
			return nil
		}
		o.rows = append(o.rows, token)
	}
	return o
}

// position finds a column of the list by its name.
func (l valuesList) position(column string) (int, bool) {
	width := len(l.rows[0].list("items"))
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
