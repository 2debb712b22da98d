package rewrite

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// meantByMerge finds the rows that a MERGE matched, if its source is a list of
// constants and placeholders, which can be read again as nothing else can, and
// ON pins the primary key: then the actions' conditions choose among rows that
// the source names.
func meantByMerge(table *Table, tree *sqltree.Node, merge *parser.MergeStmt) []meant {
	if !constantSource(tree.Get("sourceRelation")) || !repeatable(tree.Get("joinCondition")) {
		return nil
	}
	if !joinsKey(conjuncts(tree.Get("joinCondition")), table, refName(merge.Relation)) {
		return nil
	}
	exact := true
	for _, when := range tree.List("mergeWhenClauses") {
		if when.Flag("matched") && len(conjuncts(when.Get("condition"))) > 1 {
			exact = false
		}
	}
	return []meant{{table: table, rel: merge.Relation, source: merge.SourceRelation, where: []*parser.Node{merge.JoinCondition}, exact: exact}}
}

// joinsKey reports whether an AND list compares each column of the primary key
// of the table, named by ref, with something else.
func joinsKey(members []*sqltree.Node, table *Table, ref string) bool {
	for _, column := range table.Key {
		of := func(n *sqltree.Node) bool {
			parts, ok := columnParts(n)
			return ok && len(parts) == 2 && parts[0] == ref && parts[1] == column
		}
		other := func(n *sqltree.Node) bool {
			parts, ok := columnParts(n)
			return constant(n) || ok && len(parts) == 2 && parts[0] != ref
		}
		if !slices.ContainsFunc(members, func(n *sqltree.Node) bool {
			op, left, right, ok := comparison(n)
			return ok && op == "=" && (of(left) && other(right) || of(right) && other(left))
		}) {
			return false
		}
	}
	return len(table.Key) > 0
}

func columnParts(n *sqltree.Node) ([]string, bool) {
	if !n.Is("ColumnRef") {
		return nil, false
	}
	return sqltree.Strings(n.List("fields"))
}

// constantSource reports whether a source is a sub-select of VALUES, or of one
// row without FROM, with nothing but constants and placeholders.
func constantSource(n *sqltree.Node) bool {
	if !n.Is("RangeSubselect") || n.Flag("lateral") {
		return false
	}
	return constantQuery(n.Get("subquery"))
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
			for _, row := range k.Kids {
				if !constants(row) {
					return false
				}
			}
		case "targetList":
			for _, item := range k.Kids {
				if !constant(item.Get("val")) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}
