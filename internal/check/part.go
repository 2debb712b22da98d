package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// Part is a protected write of a text, as its outcome is found out: the statement
// itself, a write in its WITH, or what an EXPLAIN ANALYZE, a COPY or a CREATE TABLE AS
// runs.
type Part struct {
	Writes   []Write // one for each protected table that its name may stand for
	IsMain   bool    // the statement's count of rows is its own
	IsFeed   bool    // the statement has a row for each of its rows, so none at all if it wrote none
	Compares bool    // it has a guard: a row that it left out may carry a newer token
	Replays  bool    // the guard rejects a row that carries the same token

	besideMain bool    // the statement that it is in the WITH of writes, too
	besideWith bool    // so does another item of that WITH, which is no part; or a table is made of the rows
	rows       int64   // see Expects
	arrays     []int64 // likewise: the placeholders of the arrays that it takes its rows from

	cte     string // its name in WITH, "" if it isn't there
	pinsOne bool   // it writes one row at most; only known where the table's writes are rewritten
	skips   bool   // its source may have rows that it does nothing for
}

// Table returns the table that is written, the first where the name may stand for
// several.
func (p *Part) Table() *Table { return p.Writes[0].Table }

// Expects returns how many rows the part writes unless its guard leaves some out, 0 if
// that isn't known. length gives the length of the array that is the argument of a
// placeholder.
func (p *Part) Expects(length func(placeholder int64) (int64, bool)) int64 {
	if p.skips {
		return 0
	}
	return p.sourced(length)
}

// AtMost returns how many rows the part writes if its source has none that it does
// nothing for, 0 if that isn't known.
func (p *Part) AtMost(length func(placeholder int64) (int64, bool)) int64 {
	if !p.skips {
		return 0
	}
	return p.sourced(length)
}

// sourced returns how many rows the source of the part has, 0 if that isn't known.
func (p *Part) sourced(length func(placeholder int64) (int64, bool)) int64 {
	rows := p.rows
	for _, array := range p.arrays {
		n, ok := length(array)
		if !ok {
			return 0
		}
		rows = max(rows, n)
	}
	return rows
}

// ManyRows reports whether the part may be one that expects several rows.
func (p *Part) ManyRows() bool { return p.rows > 1 || len(p.arrays) > 0 }

// IsBeside reports whether the statement may have written something else than its
// parts, if it counts n rows.
func (p *Part) IsBeside(n int64) bool { return p.besideWith || p.besideMain && n != 0 }

// MayLeaveOut reports whether the part is an UPDATE, a DELETE or an upsert that may mean
// several rows, and leave some of them out for its guard.
func (p *Part) MayLeaveOut() bool {
	return p.Compares && !p.pinsOne && p.Writes[0].Kind != "MERGE"
}

// Parts returns the protected writes that the text runs.
func (p *Plan) Parts() []Part {
	if p.later == nil {
		return nil
	}
	return p.later.parts
}

// hasParts reports whether the text has writes in its WITH.
func (p *Plan) hasParts() bool {
	return slices.ContainsFunc(p.Parts(), func(part Part) bool { return part.cte != "" || !part.Writes[0].TopLevel })
}

// provenPart is a write of a protected table as the check has found it.
type provenPart struct {
	node        *sqltree.Node
	first, end  int // its writes among the checker's
	guards      []guard
	guardsAlone bool // nothing but guards decides which rows an upsert's action changes
}

// notePart notes that the write which was noted last is one of the statement n.
func (c *checker) notePart(n *sqltree.Node) {
	if last := len(c.parts) - 1; last < 0 || c.parts[last].node != n {
		c.parts = append(c.parts, provenPart{node: n, first: len(c.writes) - 1})
	}
	c.parts[len(c.parts)-1].end = len(c.writes)
}

// runs returns the statement that a text runs: itself, or the one in an EXPLAIN
// ANALYZE, a COPY or a CREATE TABLE AS; nil if it runs none.
func runs(root *sqltree.Node) *sqltree.Node {
	switch {
	case root.Is("ExplainStmt") && !isAnalyzed(root):
		return nil
	case root.Is("CreateTableAsStmt") && root.Get("into").Flag("skipData"):
		return nil
	case root.Is("ExplainStmt"):
		return runs(root.Get("query"))
	case root.Is("CreateTableAsStmt"), root.Is("CopyStmt"):
		return root.Get("query")
	}
	return root
}

// isAnalyzed reports whether an EXPLAIN runs its statement.
func isAnalyzed(explain *sqltree.Node) bool {
	analyzed := false
	for _, option := range explain.List("options") {
		if option.Str("defname") != "analyze" {
			continue
		}
		switch arg := option.Get("arg"); {
		case arg.Is("String"):
			word := strings.ToLower(arg.Str("sval"))
			analyzed = word != "false" && word != "off"
		case arg.Is("Integer"):
			number, _ := arg.Number("ival")
			analyzed = number != 0
		case arg.Is("Boolean"):
			analyzed = arg.Flag("boolval")
		default:
			analyzed = true
		}
	}
	return analyzed
}

// cteOf returns the name under which a part stands in the WITH of a statement, "" if
// it doesn't.
func cteOf(statement, part *sqltree.Node) string {
	if statement == nil || !statement.HasField("withClause") {
		return ""
	}
	for _, cte := range statement.Get("withClause").List("ctes") {
		if cte.Get("ctequery") == part {
			return cte.Str("ctename")
		}
	}
	return ""
}

// hasCountable reports whether a text has writes in its WITH whose rows can be counted
// in the statement.
func (c *checker) hasCountable(root *sqltree.Node) bool {
	return slices.ContainsFunc(c.parts, func(part provenPart) bool { return len(part.guards) > 0 && cteOf(root, part.node) != "" })
}

// outcomes returns the parts of the text's plan.
func (c *checker) outcomes() []Part {
	if len(c.stmts) != 1 {
		return nil
	}
	root := c.stmts[0].Get("stmt")
	statement := runs(root)
	if statement == nil {
		return nil
	}
	parts := make([]Part, 0, len(c.parts))
	for _, proven := range c.parts {
		name := ""
		if proven.node != statement {
			if name = cteOf(statement, proven.node); name == "" {
				continue
			}
		}
		part := Part{
			Writes: c.writes[proven.first:proven.end:proven.end], Compares: len(proven.guards) > 0, cte: name,
			IsMain:  proven.node == statement && (root == statement || root.Is("CopyStmt")),
			IsFeed:  name != "" && (root == statement || root.Is("CopyStmt")) && feeds(statement, name),
			Replays: slices.ContainsFunc(proven.guards, func(g guard) bool { return !g.equal }),
		}
		makesTable := root.Is("CreateTableAsStmt") || statement.Is("SelectStmt") && statement.Get("intoClause") != nil
		part.besideMain = proven.node != statement && !statement.Is("SelectStmt")
		part.besideWith = makesTable || c.writesElse(statement)
		dropsRows := slices.ContainsFunc(part.Writes, func(w Write) bool { return w.Table.DropsRows })
		switch {
		case proven.node.Is("InsertStmt") && proven.guardsAlone && !dropsRows:
			part.rows, part.arrays = sourceRows(proven.node.Get("selectStmt"))
		case proven.node.Is("MergeStmt") && joinsByKey(proven.node, part.Table()):
			part.rows, part.arrays = rowsOfItem(proven.node.Get("sourceRelation"))
			part.skips = !proven.guardsAlone || dropsRows
		}
		part.pinsOne = proven.pinsOne(part.Table())
		parts = append(parts, part)
	}
	return parts
}

// pinsOne reports whether a part is an UPDATE or DELETE that holds a key to one value.
func (p provenPart) pinsOne(table *Table) bool {
	if !table.Rewrite || !p.node.Is("UpdateStmt") && !p.node.Is("DeleteStmt") {
		return false
	}
	members := conjuncts(p.node.Get("whereClause"))
	columns := columnsOf{targetName(p.node), len(besideTarget(p.node)) == 0}
	return slices.ContainsFunc(table.keys(), func(key []string) bool {
		pinned, several := columns.pinned(members, key)
		return pinned != nil && !several || len(key) == 1 && slices.ContainsFunc(members, func(n *sqltree.Node) bool { return columns.isOneOf(n, key[0]) })
	})
}

// targetName returns what the target of a write is called in its conditions.
func targetName(write *sqltree.Node) string {
	rel := write.Get("relation")
	if alias := rel.Get("alias"); alias != nil {
		return alias.Str("aliasname")
	}
	return rel.Str("relname")
}

// isOneOf reports whether a condition holds a column to the one value of a sub-select, as
// that of a queue's next row does.
func (c columnsOf) isOneOf(n *sqltree.Node, column string) bool {
	query := func(n *sqltree.Node, kind string) *sqltree.Node {
		if n.Is("SubLink") && n.Str("subLinkType") == kind {
			return n.Get("subselect")
		}
		return nil
	}
	if op, left, right, ok := comparison(n); ok && op == "=" {
		return c.is(left, column) && query(right, "EXPR_SUBLINK") != nil || c.is(right, column) && query(left, "EXPR_SUBLINK") != nil
	}
	one := query(n, "ANY_SUBLINK").Get("limitCount")
	if limit, ok := one.Get("ival").Number("ival"); !ok || limit != 1 {
		return false
	}
	return c.is(n.Get("testexpr"), column) && (len(n.List("operName")) == 0 || isName(n.List("operName"), "="))
}

// writesElse reports whether an item of a statement's WITH writes, and is no part.
func (c *checker) writesElse(statement *sqltree.Node) bool {
	return slices.ContainsFunc(statement.Get("withClause").List("ctes"), func(cte *sqltree.Node) bool {
		query := cte.Get("ctequery")
		return !query.Is("SelectStmt") && !slices.ContainsFunc(c.parts, func(part provenPart) bool { return part.node == query })
	})
}

// feeds reports whether a statement returns or inserts a row for each row of the named
// item of its WITH.
func feeds(statement *sqltree.Node, name string) bool {
	query := statement
	if statement.Is("InsertStmt") {
		if statement.Get("onConflictClause") != nil {
			return false
		}
		query = statement.Get("selectStmt")
	}
	if !query.Is("SelectStmt") || query.Str("op") != "SETOP_NONE" || len(query.List("fromClause")) != 1 {
		return false
	}
	for _, k := range query.Kids {
		switch k.Field() {
		case "targetList", "fromClause", "sortClause", "op", "limitOption":
		case "withClause":
			if query != statement {
				return false
			}
		default:
			return false
		}
	}
	from := query.List("fromClause")[0]
	return from.Is("RangeVar") && from.Str("schemaname") == "" && from.Str("relname") == name && !expandsRows(query)
}

// expandsRows reports whether an item of a SELECT may stand for several rows or none.
func expandsRows(query *sqltree.Node) bool {
	return slices.ContainsFunc(query.List("targetList"), func(item *sqltree.Node) bool { return hasKind(item, "FuncCall") })
}

// sourceRows returns how many rows the source of an INSERT has, or the placeholders of
// the arrays whose longest gives it; nothing where that can't be told.
func sourceRows(source *sqltree.Node) (rows int64, arrays []int64) {
	if !source.Is("SelectStmt") || source.Str("op") != "SETOP_NONE" {
		return 0, nil
	}
	for _, k := range source.Kids {
		switch k.Field() {
		case "valuesLists", "targetList", "fromClause", "op", "limitOption":
		default:
			return 0, nil
		}
	}
	if lists := source.List("valuesLists"); len(lists) > 0 {
		return int64(len(lists)), nil
	}
	from := source.List("fromClause")
	switch {
	case len(from) == 0:
		return rowsOfList(source.List("targetList"))
	case len(from) > 1 || expandsRows(source):
		return 0, nil
	}
	return rowsOfItem(from[0])
}

// rowsOfItem is sourceRows for an item of FROM.
func rowsOfItem(item *sqltree.Node) (rows int64, arrays []int64) {
	switch {
	case item.Is("RangeFunction"):
		return 0, unnested(item)
	case item.Is("RangeSubselect"):
		return sourceRows(item.Get("subquery"))
	}
	return 0, nil
}

// joinsByKey reports whether each row of a MERGE's source meets one row of the table at
// most, by a key.
func joinsByKey(merge *sqltree.Node, table *Table) bool {
	members := conjuncts(merge.Get("joinCondition"))
	joins := joinsKey(members, table, targetName(merge))
	return joins != nil && len(joins) == len(members)
}

// rowsOfList is sourceRows for a SELECT without FROM: one row, or those of the arrays
// that its items unnest side by side.
func rowsOfList(items []*sqltree.Node) (rows int64, arrays []int64) {
	for _, item := range items {
		value := item.Get("val")
		if array, ok := unnestedPlaceholder(value); ok {
			arrays = append(arrays, array)
		} else if !isFixed(value) {
			return 0, nil
		}
	}
	if len(arrays) > 0 {
		return 0, arrays
	}
	return 1, nil
}

// unnested returns the placeholders whose arrays an item of FROM unnests, nil if it is
// anything else.
func unnested(item *sqltree.Node) (arrays []int64) {
	functions := item.List("functions")
	if len(functions) != 1 || item.Flag("is_rowsfrom") || item.Flag("lateral") {
		return nil
	}
	if !functions[0].Is("List") || len(functions[0].List("items")) == 0 {
		return nil
	}
	call := functions[0].List("items")[0]
	if !isUnnest(call) {
		return nil
	}
	for _, arg := range call.List("args") {
		array, ok := placeholderOf(arg)
		if !ok {
			return nil
		}
		arrays = append(arrays, array)
	}
	return arrays
}

func unnestedPlaceholder(n *sqltree.Node) (int64, bool) {
	if !isUnnest(n) || len(n.List("args")) != 1 {
		return 0, false
	}
	return placeholderOf(n.List("args")[0])
}

// isUnnest reports whether n is a plain call of PostgreSQL's unnest.
func isUnnest(n *sqltree.Node) bool {
	if !n.Is("FuncCall") || n.Get("over") != nil || n.Get("agg_filter") != nil {
		return false
	}
	parts, ok := sqltree.Strings(n.List("funcname"))
	return ok && parts[len(parts)-1] == "unnest" && (len(parts) == 1 || len(parts) == 2 && parts[0] == "pg_catalog")
}

// placeholderOf returns the number of a placeholder, which may have a cast.
func placeholderOf(n *sqltree.Node) (int64, bool) {
	if n.Is("TypeCast") {
		n = n.Get("arg")
	}
	if !n.Is("ParamRef") {
		return 0, false
	}
	return n.Number("number")
}
