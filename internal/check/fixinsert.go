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
	table, cols := t.tables[0], f.columnsOf(n, t)
	position, why := tokenPosition(cols, table.TokenColumn)
	var ok bool
	switch {
	case n.Get("selectStmt") == nil:
		ok = f.insteadOfDefaults(n, table, c)
	case len(cols) == 0:
		return f.cannot(noColumns)
	case position < 0:
		ok = f.addColumn(n, table, cols, c)
	case why == "":
		ok = (len(n.List("cols")) > 0 || f.listColumns(n, cols, c)) && (!f.takeover || f.takeSource(n, table, cols, position, c))
	default:
		return f.cannot("its column list " + why)
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

// readsExcluded reports whether the action of an upsert takes what was to be inserted in
// the place of the token for something else than the token: the row would have the token
// there instead.
func (f *fixer) readsExcluded(conflict *sqltree.Node, t target, position int) bool {
	column := t.tables[0].TokenColumn
	if position < 0 {
		return namesExcluded(conflict, column)
	}
	return slices.ContainsFunc(conflict.List("targetList"), func(item *sqltree.Node) bool {
		value, ok := assigned(item.Get("val"))
		if !ok {
			value = item
		}
		return item.Str("name") != column && namesExcluded(value, column)
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

// namesExcluded reports whether EXCLUDED's column is named below n, or EXCLUDED as a whole.
func namesExcluded(n *sqltree.Node, column string) bool {
	return isExcluded(n, column) || isWholeExcluded(n) || slices.ContainsFunc(n.Kids, func(k *sqltree.Node) bool { return namesExcluded(k, column) })
}

// isWholeExcluded reports whether n is the row that was proposed, with all of its columns.
func isWholeExcluded(n *sqltree.Node) bool {
	if !n.Is("ColumnRef") {
		return false
	}
	fields := n.List("fields")
	return len(fields) > 0 && fields[0].Str("sval") == "excluded" && (len(fields) == 1 || fields[1].Is("A_Star"))
}
