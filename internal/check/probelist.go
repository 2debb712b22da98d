package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// meantByList finds the rows of an UPDATE or DELETE that takes its values from a
// list of constants and placeholders, which reads the same again: in FROM or
// USING itself, or under a name in WITH, as ORMs write many rows at once.
//
// It finds them once more by the key alone, as meantByWhere does.
func (a *asked) meantByList(beside []*sqltree.Node, source []*parser.Node, with *parser.WithClause, rel *parser.RangeVar, condition *parser.Node) []meant {
	where := a.tree.Get("whereClause")
	if len(beside) != 1 || !repeatable(where) || !a.constantList(beside[0]) {
		return nil
	}
	m := meant{table: a.table, rel: rel, source: source[0], with: with, where: a.unguarded(condition)}
	joins := joinsKey(conjuncts(where), a.table, refName(rel))
	if m.exact = joins != nil; !m.exact {
		return []meant{m}
	}
	if len(joins) == len(m.where) {
		m.byKey, m.several = true, true
		return []meant{m}
	}
	byKey := meant{table: a.table, rel: rel, source: source[0], with: with, where: pick(condition, joins), byKey: true, several: true}
	return []meant{m, byKey}
}

// constantList reports whether an item beside the target is a list of constants,
// and WITH has nothing but that. Its name must not be the target's, which means
// the table in a write, and the list in a query.
func (a *asked) constantList(item *sqltree.Node) bool {
	with := a.tree.Get("withClause")
	if with == nil {
		return constantSource(item)
	}
	ctes := with.List("ctes")
	if len(ctes) != 1 || with.Flag("recursive") || !constantQuery(ctes[0].Get("ctequery")) {
		return false
	}
	name := ctes[0].Str("ctename")
	return item.Is("RangeVar") && item.Str("schemaname") == "" && item.Str("relname") == name && a.tree.Get("relation").Str("relname") != name
}

// unguarded returns the members of a condition that are no guards.
func (a *asked) unguarded(condition *parser.Node) (rest []*parser.Node) {
	for i, m := range parser.SplitAnd(condition) {
		if !slices.ContainsFunc(a.guards, func(g guard) bool { return g.index == i }) {
			rest = append(rest, m)
		}
	}
	return rest
}
