package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// A query that locks its rows, inside of a write, gives others each time that it is run: it
// passes over those that the write has changed meanwhile. How often PostgreSQL runs it hangs
// on the plan, and the plan on the guard: "id IN (SELECT id ... LIMIT 2 FOR UPDATE SKIP
// LOCKED)" may change more than two rows under a nested loop. A write that is given a guard
// has such a query in a WITH that is materialized, which is run once.

// onceName is the name of such a query.
const onceName = "fencerow_once"

const (
	onceBegin = "WITH " + onceName + " AS MATERIALIZED ("
	onceEnd   = ") SELECT * FROM " + onceName
)

// runOnce has the queries in a write that lock rows run once. It reports whether it could.
func (f *fixer) runOnce(n *sqltree.Node) bool {
	for _, k := range n.Kids {
		if k.Field() == "withClause" { // one that locks rows is never taken out of a WITH
			continue
		}
		if !f.runOnceIn(k) {
			return false
		}
	}
	return true
}

func (f *fixer) runOnceIn(n *sqltree.Node) bool {
	var query *sqltree.Node
	first := -1
	switch {
	case n.Is("SubLink") && n.Str("subLinkType") == "ANY_SUBLINK":
		query, first = n.Get("subselect"), f.TokenAt(n.Offset())
		for first >= 0 && first < len(f.Tokens) && !f.beginsQuery(first) {
			first++
		}
	case n.Is("RangeSubselect"):
		query = n.Get("subquery")
		for first = f.TokenAt(sqltree.FirstOffset(query)) - 1; first >= 0 && !f.beginsQuery(first); {
			first--
		}
	}
	if locksRows(query) {
		return f.wrapOnce(query, first) || f.cannot("a query in it locks rows, and isn't found in the text to be run once: put it in a WITH ... AS MATERIALIZED")
	}
	return !slices.ContainsFunc(n.Kids, func(k *sqltree.Node) bool { return !f.runOnceIn(k) })
}

// beginsQuery reports whether a token is the bracket before a query.
func (f *fixer) beginsQuery(i int) bool {
	return f.IsAt(i, parser.LPAREN) && (f.IsAt(i+1, parser.SELECT) || f.IsAt(i+1, parser.WITH) || f.IsAt(i+1, parser.TABLE) || f.IsAt(i+1, parser.LPAREN))
}

// locksRows reports whether a query locks rows that it gives, and may be run again.
func locksRows(query *sqltree.Node) bool {
	if !query.Is("SelectStmt") || onceIn(query) != nil {
		return false
	}
	return len(query.List("lockingClause")) > 0
}

// wrapOnce puts a query in a WITH, whose bracket is given.
func (f *fixer) wrapOnce(query *sqltree.Node, open int) bool {
	end := f.FindClosing(max(open, 0))
	if open < 0 || end < 0 {
		return false
	}
	begin, until := f.Tokens[open].End, f.EndBefore(end)
	wrapped := parseOne(onceBegin + f.SQL[begin:until] + onceEnd)
	inner := onceIn(wrapped)
	if inner == nil {
		return false
	}
	like := *inner
	if like.In = query.In; !sameTree(query, &like) {
		return false
	}
	f.Insert(begin, onceBegin)
	f.Insert(until, onceEnd)
	f.growth.of(query).instead = wrapped
	return true
}

// onceIn returns the query that another one runs once, nil if it runs none so.
func onceIn(query *sqltree.Node) *sqltree.Node {
	if !query.Is("SelectStmt") {
		return nil
	}
	ctes, from := query.Get("withClause").List("ctes"), query.List("fromClause")
	if len(ctes) != 1 || len(from) != 1 || ctes[0].Str("ctename") != onceName || !from[0].Is("RangeVar") || from[0].Str("relname") != onceName {
		return nil
	}
	return ctes[0].Get("ctequery")
}
