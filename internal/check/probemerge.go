package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// meantByMerge finds the rows that a MERGE matched, if its source is a list of
// constants and placeholders, which can be read again as nothing else can, and
// ON pins the primary key: then the actions' conditions choose among rows that
// the source names.
func (a *asked) meantByMerge(merge *parser.MergeStmt) []meant {
	table, tree := a.table, a.tree
	if !constantSource(tree.Get("sourceRelation")) || !repeatable(tree.Get("joinCondition")) {
		return nil
	}
	joins := joinsKey(conjuncts(tree.Get("joinCondition")), table, refName(merge.Relation))
	if joins == nil {
		return nil
	}
	m := meant{table: table, rel: merge.Relation, source: merge.SourceRelation, where: []*parser.Node{merge.JoinCondition}}
	chosen, ok := a.chosenByMerge(merge)
	m.exact, m.where = ok, append(m.where, chosen...)
	if len(chosen) == 0 && len(joins) == len(parser.SplitAnd(merge.JoinCondition)) {
		m.byKey, m.several = true, true
		return []meant{m}
	}
	byKey := meant{table: table, rel: merge.Relation, source: merge.SourceRelation, where: pick(merge.JoinCondition, joins), byKey: true, several: true}
	return []meant{m, byKey}
}

// chosenByMerge returns the conditions beside the guard of the one action for rows that
// are there. It reports false where conditions choose among several actions, or none.
func (a *asked) chosenByMerge(merge *parser.MergeStmt) (chosen []*parser.Node, ok bool) {
	matched := 0
	for i, when := range a.tree.List("mergeWhenClauses") {
		if !when.Flag("matched") {
			continue
		}
		if matched++; when.Str("commandType") == "CMD_NOTHING" || !repeatable(when.Get("condition")) {
			return nil, false
		}
		chosen = a.unguarded(merge.MergeWhenClauses[i].GetMergeWhenClause().GetCondition())
	}
	if matched == 1 {
		return chosen, true
	}
	return nil, len(a.guards) == matched && !slices.ContainsFunc(a.tree.List("mergeWhenClauses"), func(when *sqltree.Node) bool {
		return when.Flag("matched") && len(conjuncts(when.Get("condition"))) > 1
	})
}

// joinsKey returns which members of an AND list compare each column of a key of the
// table, named by ref, with what stands beside it, nil if none do.
func joinsKey(members []*sqltree.Node, table *Table, ref string) []int {
	columns := columnsOf{ref: ref}
	for _, key := range table.keys() {
		var joins []int
		for _, column := range key {
			of := func(n *sqltree.Node) bool {
				parts, ok := columnParts(n)
				return ok && len(parts) > 1 && columns.is(n, column)
			}
			other := func(n *sqltree.Node) bool {
				parts, ok := columnParts(n)
				return isFixed(n) || ok && len(parts) == 2 && parts[0] != ref
			}
			found := slices.IndexFunc(members, func(n *sqltree.Node) bool {
				op, left, right, ok := comparison(n)
				return ok && op == "=" && (of(left) && other(right) || of(right) && other(left))
			})
			if found < 0 {
				joins = nil
				break
			}
			joins = append(joins, found)
		}
		if joins != nil {
			return joins
		}
	}
	return nil
}

func columnParts(n *sqltree.Node) ([]string, bool) {
	if !n.Is("ColumnRef") {
		return nil, false
	}
	return sqltree.Strings(n.List("fields"))
}

// constantSource reports whether a source reads the same again: it is a sub-select of
// VALUES or of a list, or a call like unnest, of nothing but constants and placeholders.
func constantSource(n *sqltree.Node) bool {
	switch {
	case n.Is("RangeSubselect") && !n.Flag("lateral"):
		return constantQuery(n.Get("subquery"))
	case n.Is("RangeFunction") && !n.Flag("lateral"):
		return !slices.ContainsFunc(n.List("functions"), func(function *sqltree.Node) bool {
			return !function.Is("List") || len(function.List("items")) == 0 || !isFixed(function.List("items")[0])
		})
	}
	return false
}

// constantQuery is constantSource for the query itself.
func constantQuery(query *sqltree.Node) bool {
	if !query.Is("SelectStmt") || query.Str("op") != "SETOP_NONE" {
		return false
	}
	for _, k := range query.Kids {
		switch k.Field() {
		case "op", "limitOption":
		case "valuesLists":
			if slices.ContainsFunc(k.Kids, func(row *sqltree.Node) bool { return !isFixed(row) }) {
				return false
			}
		case "targetList":
			if slices.ContainsFunc(k.Kids, func(item *sqltree.Node) bool { return !repeatable(item) }) {
				return false
			}
		case "fromClause":
			if slices.ContainsFunc(k.Kids, func(item *sqltree.Node) bool { return !constantSource(item) }) {
				return false
			}
		default:
			return false
		}
	}
	return true
}
