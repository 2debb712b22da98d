package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// sourceArm is a SELECT or VALUES of an INSERT's source, and where it stands.
type sourceArm struct {
	*sqltree.Node
	at     sqledit.Clauses // its Source and SourceEnd
	isText bool            // a bare placeholder in it would be of type text
}

// armsOf returns the arms of an INSERT's source, and what its column list begins and ends
// with; nil if they aren't found. Where there is no list, list is twice the token that it
// would stand behind.
func (f *fixer) armsOf(n *sqltree.Node, c sqledit.Clauses) (arms []sourceArm, list [2]int) {
	end := f.endOfTarget(c)
	list = [2]int{end, end}
	if len(n.List("cols")) > 0 {
		open := end + 1
		if end = f.FindClosing(open); !f.IsAt(open, parser.LPAREN) {
			return nil, list
		}
		list = [2]int{open, end}
	}
	if end < 0 || end >= c.SourceEnd {
		return nil, list
	}
	source := n.Get("selectStmt")
	if isPlainSource(source) && c.Source > end {
		return []sourceArm{{source, c, isCut(source)}}, list
	}
	first := end + 1
	if n.Str("override") != "OVERRIDING_NOT_SET" && n.Str("override") != "" {
		first += 3 // OVERRIDING SYSTEM VALUE
	}
	places, ok := f.FindArms(first, c.SourceEnd)
	nodes := leavesOf(source)
	if !ok || len(places) != len(nodes) {
		return nil, list
	}
	for i, node := range nodes {
		at := c
		at.Source, at.SourceEnd = places[i].First, places[i].End
		arms = append(arms, sourceArm{node, at, len(nodes) > 1 || isCut(node)})
	}
	return arms, list
}

// leavesOf returns the queries that the set operations of a source join, in their order.
func leavesOf(source *sqltree.Node) []*sqltree.Node {
	if !source.Is("SelectStmt") || source.Str("op") == "SETOP_NONE" {
		return []*sqltree.Node{source}
	}
	return append(leavesOf(source.Get("larg")), leavesOf(source.Get("rarg"))...)
}

// unknownSource says why nothing is added to a source.
const unknownSource = "the source of an INSERT has to be of VALUES and SELECT, by themselves or joined by UNION, INTERSECT or EXCEPT, to be given the token"

// addColumn adds the token column, and the token to each row of the source. cols are the
// columns that the rows have values for.
func (f *fixer) addColumn(n *sqltree.Node, table *Table, cols []*sqltree.Node, c sqledit.Clauses) bool {
	arms, list := f.armsOf(n, c)
	isListed := len(n.List("cols")) > 0
	column := parseOne("INSERT INTO t (" + sqltext.QuoteIfNeeded(table.TokenColumn) + ") VALUES (1)")
	source := n.Get("selectStmt")
	switch {
	case arms == nil || column == nil || slices.ContainsFunc(arms, func(arm sourceArm) bool {
		return !f.IsAt(arm.at.Source, parser.SELECT) && !f.IsAt(arm.at.Source, parser.VALUES)
	}):
		return f.cannot(unknownSource)
	case goesByAdded(source):
		return f.cannot("its source is ordered by int8, which would be the token then")
	case slices.ContainsFunc(arms, hasStar):
		f.Insert(f.Tokens[list[0]].End, sqltext.QuoteIfNeeded(table.TokenColumn)+", ")
		f.growth.addFirst(n, "cols", column.List("cols")[0])
		return f.putFirst(source, arms, table) || f.cannot("its source has a star and counts the columns of its list, or chooses rows by all of them: list the columns by their names")
	}
	for _, arm := range arms {
		if widthOf(arm.Node) != len(cols) {
			return f.cannot(otherWidth)
		}
		if !f.addToArm(arm, table) {
			return f.cannot(unknownSource)
		}
	}
	if !isListed {
		return f.listColumns(n, append(slices.Clone(cols), column.List("cols")...), c)
	}
	f.Insert(f.EndBefore(list[1]), ", "+sqltext.QuoteIfNeeded(table.TokenColumn))
	f.growth.add(n, "cols", column.List("cols")...)
	return true
}

// hasStar reports whether a list of a SELECT has an item that stands for several
// columns: what is behind it has no certain place.
func hasStar(arm sourceArm) bool {
	return slices.ContainsFunc(arm.List("targetList"), func(item *sqltree.Node) bool { return expands(item.Get("val")) })
}

// goesByAdded reports whether a source orders its rows by a bare name that its list's new
// column has: PostgreSQL calls a value by the type that it is cast to.
func goesByAdded(source *sqltree.Node) bool {
	if !source.Is("SelectStmt") {
		return false
	}
	for _, clause := range []string{"distinctClause", "sortClause"} {
		for _, n := range source.List(clause) {
			if refersTo(n, "int8", -1, true) {
				return true
			}
		}
	}
	return source.Str("op") != "SETOP_NONE" && (goesByAdded(source.Get("larg")) || goesByAdded(source.Get("rarg")))
}

// putFirst puts the token before the list of each SELECT. None may be one whose items are
// counted.
func (f *fixer) putFirst(source *sqltree.Node, arms []sourceArm, table *Table) bool {
	if countsItems(source) {
		return false
	}
	token := f.next(table) + "::bigint"
	for _, arm := range arms {
		at := arm.at.Source + 1
		if f.IsAt(at, parser.ALL) {
			at++
		}
		if at >= len(f.Tokens) || len(arm.List("valuesLists")) > 0 {
			return false
		}
		f.Insert(f.Tokens[at].Start, token+", ")
		f.growth.addFirst(arm.Node, "targetList", outputItem(token))
	}
	return true
}

// countsItems reports whether a query, or what a set operation joins in it, means items of
// its list by their place, or all of them by DISTINCT.
func countsItems(query *sqltree.Node) bool {
	if query.Get("distinctClause") != nil {
		return true
	}
	for _, clause := range []string{"groupClause", "sortClause"} {
		if slices.ContainsFunc(query.List(clause), hasConstant) {
			return true
		}
	}
	return query.Str("op") != "SETOP_NONE" && (countsItems(query.Get("larg")) || countsItems(query.Get("rarg")))
}

// hasConstant reports whether a constant stands below n, or is n itself.
func hasConstant(n *sqltree.Node) bool {
	return n.Is("A_Const") || slices.ContainsFunc(n.Kids, hasConstant)
}

// addToArm adds the token to each row of an arm. All arms of a set operation get the same,
// so that it joins, drops and meets the same rows as without.
func (f *fixer) addToArm(arm sourceArm, table *Table) bool {
	rows, cast := arm.List("valuesLists"), ""
	if rows == nil {
		token := f.next(table) + "::bigint"
		f.Insert(f.EndBefore(f.FindListEnd(arm.at, fromOf(arm.Node))), ", "+token)
		f.growth.add(arm.Node, "targetList", outputItem(token))
		return true
	}
	if arm.isText {
		cast = "::bigint"
	}
	token := f.next(table) + cast
	item, text := f.expression(token), ", "+token
	brackets, ok := f.rowBrackets(len(rows), arm.at)
	if !ok || item == nil {
		return false
	}
	f.Edits = slices.Grow(f.Edits, len(rows)+2)
	for _, b := range brackets {
		f.Insert(f.EndBefore(b[1]), text)
	}
	f.growth.addToRows(arm.Node, item)
	return true
}

// isCut reports whether VALUES has clauses of its own. PostgreSQL then reads it as
// a query, in which a bare placeholder is text.
func isCut(values *sqltree.Node) bool {
	return choosesOf(values) || values.Get("withClause") != nil
}

// choosesOf reports whether VALUES has a clause that chooses among its rows.
func choosesOf(values *sqltree.Node) bool {
	return slices.ContainsFunc([]string{"sortClause", "limitCount", "limitOffset", "lockingClause"}, func(field string) bool { return values.Get(field) != nil })
}

// takeSource puts the token where each row of an INSERT's source has something
// else in its column. It leaves set operations as they are: another value could join
// other rows.
func (f *fixer) takeSource(n *sqltree.Node, table *Table, cols []*sqltree.Node, position int, c sqledit.Clauses) bool {
	source, width := n.Get("selectStmt"), len(cols)
	if !isOneQuery(source) {
		return true
	}
	arms, _ := f.armsOf(n, c)
	if arms == nil {
		return f.cannot(unknownSource)
	}
	arm := arms[0]
	rows := arm.List("valuesLists")
	if rows == nil {
		items := arm.List("targetList")
		places := f.SplitList(arm.at.Source+1, f.FindListEnd(arm.at, fromOf(arm.Node)))
		switch {
		case len(places) != len(items) || !isRow(items, width):
			return f.cannot("the list of its source hasn't one item for each column that is named")
		case choosesRows(arm.Node, position):
			return f.cannot("the rows of its source hang on what is selected as " + table.TokenColumn)
		}
		return f.takeItem(items[position], items[position].Get("val"), places[position], table, "::bigint")
	}
	brackets, ok := f.rowBrackets(len(rows), arm.at)
	if !ok {
		return f.cannot(unknownSource)
	}
	if choosesOf(source) {
		return f.cannot("the rows of its source hang on what is selected as " + table.TokenColumn)
	}
	cast := ""
	if arm.isText {
		cast = "::bigint"
	}
	for i, b := range brackets {
		items, places := rows[i].List("items"), f.SplitList(b[0]+1, b[1])
		switch {
		case len(places) != len(items) || !isRow(items, width):
			return f.cannot(otherWidth)
		case callsUnknown(items[position]):
			return f.cannot("the rows of its source hang on what is selected as " + table.TokenColumn)
		case !f.takeItem(items[position], items[position], places[position], table, cast):
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

// isOneQuery reports whether a source is one SELECT or VALUES, which may have a WITH.
func isOneQuery(source *sqltree.Node) bool {
	return source.Is("SelectStmt") && source.Str("op") == "SETOP_NONE"
}

// isPlainSource reports whether a source is one SELECT or VALUES that begins with its key
// word, but for brackets.
func isPlainSource(source *sqltree.Node) bool {
	return isOneQuery(source) && source.Get("withClause") == nil
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
