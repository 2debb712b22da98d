package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// guardInsert adds the token column to the column list and the token to every
// row, and guards ON CONFLICT DO UPDATE.
func (f *fixer) guardInsert(n *sqltree.Node, t target, c sqledit.Clauses) bool {
	table, cols := t.tables[0], n.List("cols")
	position, why := tokenPosition(cols, table.TokenColumn)
	ok := false
	switch {
	case c.Source < 0:
		return f.cannot(plainSourceOnly)
	case n.Get("selectStmt") == nil:
		ok = f.insteadOfDefaults(n, table, c)
	case len(cols) == 0:
		return f.cannot("an INSERT needs a column list to be given the token")
	case position < 0:
		ok = f.addColumn(n, table, c)
	case why == "":
		ok = !f.takeover || f.takeSource(n.Get("selectStmt"), table, position, len(cols), c)
	}
	conflict := n.Get("onConflictClause")
	if !ok || conflict == nil || conflict.Str("action") != "ONCONFLICT_UPDATE" {
		return ok
	}
	if f.takeover && f.readsExcluded(conflict, t, position) {
		return f.cannot("EXCLUDED." + table.TokenColumn + " is used as a value, and would be the token instead of what the row was given")
	}
	if f.policy.changesExcluded(table) != nil {
		return c.Action >= 0 && f.guardUpdate(conflict, t, c, tokenOperand, nil)
	}
	return c.Action >= 0 && f.guardUpdate(conflict, t, c, excludedReader(table), &operand{name: "EXCLUDED." + sqltext.QuoteIfNeeded(table.TokenColumn)})
}

const plainSourceOnly = "the source of an INSERT has to be VALUES or one SELECT, without brackets, WITH or a set operation, to be given the token"

// readsExcluded reports whether the action of an upsert takes what was to be inserted in
// the place of the token for something else than the token: the row would have the token
// there instead.
func (f *fixer) readsExcluded(conflict *sqltree.Node, t target, position int) bool {
	column := t.tables[0].TokenColumn
	if position < 0 {
		return namesExcluded(conflict, column)
	}
	return slices.ContainsFunc(conflict.List("targetList"), func(item *sqltree.Node) bool {
		return item.Str("name") != column && namesExcluded(item, column)
	}) || slices.ContainsFunc(conjuncts(conflict.Get("whereClause")), func(n *sqltree.Node) bool {
		return namesExcluded(n, column) && len(f.findGuards(t, t.tables[0], []*sqltree.Node{n}, excludedReader(t.tables[0]))) == 0
	})
}

// insteadOfDefaults writes a row of the token in the place of DEFAULT VALUES.
func (f *fixer) insteadOfDefaults(n *sqltree.Node, table *Table, c sqledit.Clauses) bool {
	row := parseOne("INSERT INTO t (" + sqltext.QuoteIfNeeded(table.TokenColumn) + ") VALUES (" + f.next(table) + ")")
	if row == nil || !f.IsAt(c.Source-1, parser.DEFAULT) || !f.IsAt(c.Source, parser.VALUES) {
		return false
	}
	f.Replace(c.Source-1, c.Source+1, "("+sqltext.QuoteIfNeeded(table.TokenColumn)+") VALUES ("+f.next(table)+")")
	f.growth.add(n, "cols", row.List("cols")...)
	grown := f.growth.of(n)
	grown.added = append(grown.added, row.Get("selectStmt"))
	return true
}

// addColumn adds the token column, and the token to each row of the source.
func (f *fixer) addColumn(n *sqltree.Node, table *Table, c sqledit.Clauses) bool {
	open := c.Target
	for open < c.Source && f.Tokens[open].Kind != parser.LPAREN {
		open++
	}
	end := f.FindClosing(open)
	column := parseOne("INSERT INTO t (" + sqltext.QuoteIfNeeded(table.TokenColumn) + ") VALUES (1)")
	if source := n.Get("selectStmt"); column != nil && end >= 0 && end < c.Source && hasStar(source) {
		f.Insert(f.Tokens[open].End, sqltext.QuoteIfNeeded(table.TokenColumn)+", ")
		f.growth.addFirst(n, "cols", column.List("cols")[0])
		return f.putFirst(source, c, table)
	}
	if end < 0 || end > c.Source || column == nil || !f.addToSource(n.Get("selectStmt"), c, table) {
		return false
	}
	f.Insert(f.EndBefore(end), ", "+sqltext.QuoteIfNeeded(table.TokenColumn))
	f.growth.add(n, "cols", column.List("cols")...)
	return true
}

// hasStar reports whether a list of a SELECT has an item that stands for several
// columns: what is behind it has no certain place.
func hasStar(source *sqltree.Node) bool {
	return isPlainSource(source) && slices.ContainsFunc(source.List("targetList"), func(item *sqltree.Node) bool { return expands(item.Get("val")) })
}

// putFirst puts the token before the list of a SELECT. That must not be one whose
// items are counted.
func (f *fixer) putFirst(source *sqltree.Node, c sqledit.Clauses, table *Table) bool {
	if source.Get("distinctClause") != nil {
		return false
	}
	for _, clause := range []string{"groupClause", "sortClause"} {
		if slices.ContainsFunc(source.List(clause), hasConstant) {
			return false
		}
	}
	at := c.Source + 1
	if f.IsAt(at, parser.ALL) {
		at++
	}
	if at >= len(f.Tokens) {
		return false
	}
	token := f.next(table) + "::bigint"
	f.Insert(f.Tokens[at].Start, token+", ")
	f.growth.addFirst(source, "targetList", outputItem(token))
	return true
}

// hasConstant reports whether a constant stands below n, or is n itself.
func hasConstant(n *sqltree.Node) bool {
	return n.Is("A_Const") || slices.ContainsFunc(n.Kids, hasConstant)
}

// addToSource adds the token to each row of an INSERT's source: VALUES, or one
// SELECT.
func (f *fixer) addToSource(source *sqltree.Node, c sqledit.Clauses, table *Table) bool {
	if !isPlainSource(source) {
		return f.cannot(plainSourceOnly)
	}
	rows, cast := source.List("valuesLists"), ""
	if rows == nil {
		token := f.next(table) + "::bigint"
		f.Insert(f.EndBefore(f.FindListEnd(c, fromOf(source))), ", "+token)
		f.growth.add(source, "targetList", outputItem(token))
		return true
	}
	if isCut(source) {
		cast = "::bigint"
	}
	token := f.next(table) + cast
	item, text := f.expression(token), ", "+token
	brackets, ok := f.rowBrackets(len(rows), c)
	if !ok || item == nil {
		return false
	}
	f.Edits = slices.Grow(f.Edits, len(rows)+2)
	for _, b := range brackets {
		f.Insert(f.EndBefore(b[1]), text)
	}
	f.growth.addToRows(source, item)
	return true
}

// isCut reports whether VALUES has clauses of its own. PostgreSQL then reads it as
// a query, in which a bare placeholder is text.
func isCut(values *sqltree.Node) bool {
	return slices.ContainsFunc([]string{"sortClause", "limitCount", "limitOffset", "lockingClause"}, func(field string) bool { return values.Get(field) != nil })
}

// takeSource puts the token where each row of an INSERT's source has something
// else in its column. It leaves sources of another form as they are.
func (f *fixer) takeSource(source *sqltree.Node, table *Table, position, width int, c sqledit.Clauses) bool {
	if !isPlainSource(source) {
		return true
	}
	rows := source.List("valuesLists")
	if rows == nil {
		items := source.List("targetList")
		places := f.SplitList(c.Source+1, f.FindListEnd(c, fromOf(source)))
		return len(places) == len(items) && isRow(items, width) && !choosesRows(source, position) && f.takeItem(items[position], items[position].Get("val"), places[position], table, "::bigint")
	}
	brackets, ok := f.rowBrackets(len(rows), c)
	if !ok || isCut(source) {
		return false
	}
	for i, b := range brackets {
		items, places := rows[i].List("items"), f.SplitList(b[0]+1, b[1])
		if len(places) != len(items) || !isRow(items, width) || callsUnknown(items[position]) || !f.takeItem(items[position], items[position], places[position], table, "") {
			return false
		}
	}
	return true
}

// isRow reports whether a list has one item for each of so many columns.
func isRow(items []*sqltree.Node, width int) bool {
	for _, item := range items {
		if item.Is("ResTarget") {
			item = item.Get("val")
		}
		if expands(item) {
			return false
		}
	}
	return len(items) == width
}

// namesExcluded reports whether EXCLUDED's column is named below n.
func namesExcluded(n *sqltree.Node, column string) bool {
	return isExcluded(n, column) || slices.ContainsFunc(n.Kids, func(k *sqltree.Node) bool { return namesExcluded(k, column) })
}

// isPlainSource reports whether the rows of a source are certain to be found in
// its text.
func isPlainSource(source *sqltree.Node) bool {
	return source.Is("SelectStmt") && source.Str("op") == "SETOP_NONE" && source.Get("withClause") == nil
}

// rowBrackets returns the brackets around each row of VALUES.
func (f *fixer) rowBrackets(rows int, c sqledit.Clauses) (out [][2]int, ok bool) {
	open := c.Source + 1
	out = make([][2]int, 0, rows)
	for range rows {
		end := f.FindClosing(open)
		if !f.IsAt(open, parser.LPAREN) || end < 0 {
			return nil, false
		}
		out = append(out, [2]int{open, end})
		open = end + 2 // past the comma
	}
	return out, true
}
