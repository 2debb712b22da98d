package rewrite

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// meantByMerge finds the rows that a MERGE matched, if its source is a list of
// constants and placeholders, which can be read again as nothing else can, and
// ON pins the primary key: then the actions' conditions choose among rows that
// the source names.
func meantByMerge(table *Table, tree *node, merge *pg_query.MergeStmt) []meant {
	if !constantSource(tree.get("sourceRelation")) || !repeatable(tree.get("joinCondition")) {
		return nil
	}
	if !joinsKey(conjuncts(tree.get("joinCondition")), table, refName(merge.Relation)) {
		return nil
	}
	exact := true
	for _, when := range tree.list("mergeWhenClauses") {
		if when.flag("matched") && len(conjuncts(when.get("condition"))) > 1 {
			exact = false
		}
	}
	return []meant{{table: table, rel: merge.Relation, source: merge.SourceRelation, where: []*pg_query.Node{merge.JoinCondition}, exact: exact}}
}

// joinsKey reports whether an AND list compares each column of the primary key
// of the table, named by ref, with something else.
func joinsKey(members []*node, table *Table, ref string) bool {
	for _, column := range table.Key {
		of := func(n *node) bool {
			parts, ok := columnParts(n)
			return ok && len(parts) == 2 && parts[0] == ref && parts[1] == column
		}
		other := func(n *node) bool {
			parts, ok := columnParts(n)
			return constant(n) || ok && len(parts) == 2 && parts[0] != ref
		}
		if !slices.ContainsFunc(members, func(n *node) bool {
			op, left, right, ok := comparison(n)
			return ok && op == "=" && (of(left) && other(right) || of(right) && other(left))
		}) {
			return false
		}
	}
	return len(table.Key) > 0
}

func columnParts(n *node) ([]string, bool) {
	if !n.is("ColumnRef") {
		return nil, false
	}
	return stringList(n.list("fields"))
}

// constantSource reports whether a source is a sub-select of VALUES, or of one
// row without FROM, with nothing but constants and placeholders.
func constantSource(n *node) bool {
	if !n.is("RangeSubselect") || n.flag("lateral") {
		return false
	}
	return constantQuery(n.get("subquery"))
}

// constantQuery is constantSource for the query itself.
func constantQuery(query *node) bool {
	if !query.is("SelectStmt") || query.str("op") != "SETOP_NONE" {
		return false
	}
	for _, k := range query.kids {
		switch k.field() {
		case "op", "limitOption":
		case "valuesLists":
			for _, row := range k.kids {
				if !constants(row) {
					return false
				}
			}
		case "targetList":
			for _, item := range k.kids {
				if !constant(item.get("val")) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}
