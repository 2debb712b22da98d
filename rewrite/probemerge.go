package rewrite

import pg_query "github.com/pganalyze/pg_query_go/v5"

// meantByMerge finds the rows that a MERGE matched, if its source is a list of
// constants and placeholders: that can be read again, as nothing else can.
func meantByMerge(table *Table, tree *node, merge *pg_query.MergeStmt) []meant {
	if !constantSource(tree.get("sourceRelation")) || !repeatable(tree.get("joinCondition")) {
		return nil
	}
	return []meant{{table: table, rel: merge.Relation, source: merge.SourceRelation, where: []*pg_query.Node{merge.JoinCondition}}}
}

// constantSource reports whether a source is a sub-select of VALUES, or of one
// row without FROM, with nothing but constants and placeholders.
func constantSource(n *node) bool {
	if !n.is("RangeSubselect") || n.flag("lateral") {
		return false
	}
	query := n.get("subquery")
	if !query.is("SelectStmt") || query.str("op") != "SETOP_NONE" {
		return false
	}
	for _, k := range query.kids {
		switch k.field {
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
