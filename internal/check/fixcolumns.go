package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

const (
	// noColumns is why an INSERT without a column list is given none.
	noColumns = "an INSERT needs a column list to be given the token, unless its rows are counted in the text and the name stands for one table whose columns the catalog gives"
	// otherWidth is why the rows of an INSERT are given nothing.
	otherWidth = "a row of its source hasn't one value for each column that is named"
)

// columnsOf returns the columns that an INSERT has values for: those of its list or, if it
// has none, as many of the table's first ones as its rows have values; nil if that isn't
// known.
func (f *fixer) columnsOf(n *sqltree.Node, t target) []*sqltree.Node {
	if cols := n.List("cols"); len(cols) > 0 || n.Get("selectStmt") == nil {
		return cols
	}
	columns := f.columnsBehind(t)
	width := -1
	for _, leaf := range leavesOf(n.Get("selectStmt")) {
		own := widthOf(leaf)
		if own < 0 || width >= 0 && own != width {
			return nil
		}
		width = own
	}
	if width < 1 || width > len(columns) {
		return nil
	}
	list := parseOne("INSERT INTO t (" + listNames(columns[:width]) + ") VALUES (1)")
	return list.List("cols")
}

// columnsBehind returns the columns of the one table that a name stands for, nil where it
// may stand for several, or for a relative of a protected table: that has the same columns
// in an order of its own.
func (f *fixer) columnsBehind(t target) []string {
	if len(t.relations) != 1 || len(t.namesakes) > 0 || t.relations[0].table == nil {
		return nil
	}
	return t.relations[0].table.Columns
}

// widthOf returns how many values each row of a SELECT or VALUES has, -1 if that can't be
// told by its text.
func widthOf(source *sqltree.Node) int {
	if !source.Is("SelectStmt") {
		return -1
	}
	rows := source.List("valuesLists")
	if rows == nil {
		items := source.List("targetList")
		if !isRow(items, len(items)) {
			return -1
		}
		return len(items)
	}
	width := len(rows[0].List("items"))
	for _, row := range rows {
		if !isRow(row.List("items"), width) {
			return -1
		}
	}
	return width
}

// listColumns gives an INSERT a column list.
func (f *fixer) listColumns(n *sqltree.Node, cols []*sqltree.Node, c sqledit.Clauses) bool {
	_, list := f.armsOf(n, c)
	if list[0] != list[1] || list[0] < 0 {
		return false
	}
	names := make([]string, len(cols))
	for i, col := range cols {
		names[i] = col.Str("name")
	}
	f.Insert(f.Tokens[list[0]].End, " ("+listNames(names)+")")
	f.growth.add(n, "cols", cols...)
	return true
}

// endOfTarget returns the last token of an INSERT's target and its alias.
func (f *fixer) endOfTarget(c sqledit.Clauses) int {
	end := c.Target
	for f.IsAt(end+1, parser.PERIOD) {
		end += 2
	}
	if f.IsAt(end+1, parser.AS) {
		end += 2
	}
	return end
}

func listNames(names []string) string {
	quoted := slices.Clone(names)
	for i, name := range quoted {
		quoted[i] = sqltext.QuoteIfNeeded(name)
	}
	return strings.Join(quoted, ", ")
}
