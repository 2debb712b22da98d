package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// Probe is a query after the rows that a guarded write meant. Args lists which
// of the write's arguments it takes, from 1; a 0 stands for the token itself,
// an int64, and not for an argument of the write.
type Probe struct {
	SQL  string
	Args []int
}

// maxProbed is the longest text of a write that is asked after, in bytes. Some
// ORMs write their values into it.
const maxProbed = maxRewritten

// Question is a probe for the highest token among the rows that a write may have meant,
// or NULL if there are none.
type Question struct {
	Probe
	ByKey   bool // it finds the rows by a key, whatever else has become of them
	Several bool // it may find several, more than the write meant
}

// Look is how the outcome of a part of a text is asked for afterwards.
type Look struct {
	// Highest has the questions why a guarded write changed no row, in the order they
	// are to be asked: by its WHERE without the guard, then, in case the newer holder
	// has changed what the WHERE compares, by a key alone.
	Highest []Question
	// Newer has the queries that count the rows which the write meant and which carry a
	// newer token than its own.
	Newer []Probe
	// Anywhere asks whether any row of the table carries a newer token.
	Anywhere Probe

	meant string // counts the rows that the write meant, by its own placeholders; "" if that can't be
}

// Looks returns how the outcome of each part is asked for; see [Plan.Parts]. It has no
// questions where a second look can't tell: the part reads other tables and pins no
// key, has sub-selects, calls of functions that may be volatile, or nests too deep.
func (p *Plan) Looks() []Look {
	if p.later == nil {
		return nil
	}
	p.later.probeOnce.Do(func() { p.later.looks = p.proof().looks() })
	return p.later.looks
}

// Probes returns the questions of the write that the text itself is; see [Look].
func (p *Plan) Probes() (probes []Probe) {
	for _, q := range p.mainLook().Highest {
		probes = append(probes, q.Probe)
	}
	return probes
}

// StaleCounts returns the counts of the write that the text itself is; see [Look].
func (p *Plan) StaleCounts() []Probe { return p.mainLook().Newer }

func (p *Plan) mainLook() Look {
	for i, part := range p.Parts() {
		if part.IsMain && part.Writes[0].TopLevel {
			return p.Looks()[i]
		}
	}
	return Look{}
}

// looks makes the questions after each part of the text.
func (p *proof) looks() []Look {
	looks := make([]Look, len(p.Parts()))
	if len(p.stmts) != 1 {
		return looks
	}
	var message *parser.Node
	if len(p.text) <= maxProbed && !sqltext.IsTooDeep(p.text, sqltext.MaxDeparseNesting) {
		message = parser.ParseMessage(p.text)
	}
	for i, part := range p.Parts() {
		proven := p.provenOf(part)
		looks[i].Anywhere = anywhere(proven.node, part.Table())
		if message == nil {
			continue
		}
		a := &asked{
			tree: proven.node, stmt: parser.WriteIn(message, part.cte), guards: proven.guards, table: probed(part.Writes),
			with:    proven.node.HasField("withClause") && proven.node.Get("withClause") != nil,
			isInner: part.cte != "",
		}
		looks[i].ask(a.meant())
		looks[i].meant = a.countMeant()
	}
	return looks
}

// provenOf returns what the check has found of a part of the plan: the writes of both
// are in the same order.
func (p *proof) provenOf(part Part) provenPart {
	for _, proven := range p.parts {
		if statement := runs(p.stmts[0].Get("stmt")); part.cte == "" && proven.node == statement || part.cte != "" && cteOf(statement, proven.node) == part.cte {
			return proven
		}
	}
	return provenPart{}
}

// ask makes the questions that find what was meant.
func (l *Look) ask(all []meant) {
	for _, m := range all {
		if highest, err := m.highest(); err == nil {
			l.Highest = append(l.Highest, Question{highest, m.byKey, m.several})
		}
		if !m.exact {
			continue
		}
		if count, err := m.countNewer(); err == nil {
			l.Newer = append(l.Newer, count)
		}
	}
}

// anywhere asks whether a row of the table that is written, by the name that the write
// has for it, carries a newer token.
func anywhere(write *sqltree.Node, table *Table) Probe {
	rel := write.Get("relation")
	name := sqltext.QuoteIfNeeded(rel.Str("relname"))
	if schema := rel.Str("schemaname"); schema != "" {
		name = sqltext.QuoteIfNeeded(schema) + "." + name
	}
	return Probe{SQL: "SELECT EXISTS (SELECT FROM " + name + " WHERE " + sqltext.QuoteIfNeeded(table.TokenColumn) + " OPERATOR(pg_catalog.>) $1::pg_catalog.int8)", Args: []int{0}}
}

// asked is a part of a text that is asked after.
type asked struct {
	tree   *sqltree.Node
	stmt   *parser.Node // the same as the parser's message, nil if it isn't found
	guards []guard
	table  *Table // nil if too little is known of it
	with   bool   // it has a WITH of its own

	isInner bool // it stands in the WITH of another
}

// meant returns the conditions that find the rows which a guarded write meant.
func (a *asked) meant() []meant {
	switch {
	case a.table == nil || a.stmt == nil || len(a.guards) == 0:
	case a.tree.Is("UpdateStmt"):
		s := a.stmt.GetUpdateStmt()
		return a.meantByWhere(a.tree.List("fromClause"), s.FromClause, s.WithClause, s.Relation, s.WhereClause)
	case a.tree.Is("DeleteStmt"):
		s := a.stmt.GetDeleteStmt()
		return a.meantByWhere(a.tree.List("usingClause"), s.UsingClause, s.WithClause, s.Relation, s.WhereClause)
	case a.tree.Is("InsertStmt"):
		return a.meantByConflict(a.stmt.GetInsertStmt())
	case a.tree.Is("MergeStmt") && !a.with:
		return a.meantByMerge(a.stmt.GetMergeStmt())
	}
	return nil
}

// probed returns the table that is written. Where its name may stand for
// several, what they don't share isn't known of it; nil is returned if that is
// the token column.
func probed(writes []Write) *Table {
	table := *writes[0].Table
	for _, w := range writes[1:] {
		if w.Table.TokenColumn != table.TokenColumn {
			return nil
		}
		if !slices.Equal(w.Table.Key, table.Key) {
			table.Key = nil
		}
		if !slices.EqualFunc(w.Table.Keys, table.Keys, slices.Equal) {
			table.Keys = nil
		}
	}
	return &table
}

// keys returns the keys by which a row is known, whatever happens to it: the primary
// key where no other is known.
func (t *Table) keys() [][]string {
	if len(t.Keys) == 0 && len(t.Key) > 0 {
		return [][]string{t.Key}
	}
	return t.Keys
}

// meantByWhere finds the rows of an UPDATE or DELETE.
func (a *asked) meantByWhere(beside []*sqltree.Node, source []*parser.Node, with *parser.WithClause, rel *parser.RangeVar, condition *parser.Node) (out []meant) {
	where, rest := a.tree.Get("whereClause"), a.unguarded(condition)
	switch {
	case len(beside) > 0:
		out = a.meantByList(beside, source, with, rel, condition)
	case repeatable(where):
		out = append(out, meant{table: a.table, rel: rel, where: rest, exact: true})
	}
	columns := columnsOf{refName(rel), len(beside) == 0}
	for _, key := range a.table.keys() {
		indexes, several := columns.pinned(conjuncts(where), key)
		if indexes == nil {
			continue
		}
		if len(out) == 1 && len(beside) == 0 && len(indexes) == len(rest) {
			out[0].byKey = true // the WHERE has nothing but the key
			return out
		}
		return append(out, meant{table: a.table, rel: rel, where: pick(condition, indexes), byKey: true, several: several})
	}
	return out
}

// pick returns members of an AND list.
func pick(condition *parser.Node, indexes []int) (out []*parser.Node) {
	members := parser.SplitAnd(condition)
	for _, i := range indexes {
		out = append(out, members[i])
	}
	return out
}

// conflictRows bounds the rows of an upsert that are asked after one by one.
const conflictRows = 100

// meantByConflict finds the rows that an upsert met: they were there already,
// under the columns of the conflict.
func (a *asked) meantByConflict(insert *parser.InsertStmt) []meant {
	conflict := a.tree.Get("onConflictClause")
	if conflict == nil || conflict.Str("action") != "ONCONFLICT_UPDATE" {
		return nil
	}
	positions := conflictPositions(a.tree, conflict)
	if positions == nil {
		return nil
	}
	m := meant{table: a.table, rel: insert.Relation, byKey: true, several: true, exact: len(conjuncts(conflict.Get("whereClause"))) == len(a.guards)}
	source, query := a.tree.Get("selectStmt"), insert.GetSelectStmt().GetSelectStmt()
	lists, rows := source.List("valuesLists"), query.GetValuesLists()
	switch {
	case len(rows) > conflictRows || !source.Is("SelectStmt") || source.Str("op") != "SETOP_NONE":
		return nil
	case len(rows) > 0:
		var keys []*parser.Node
		for i, row := range rows {
			key := conflictKey(positions, lists[i].List("items"), row.GetList().GetItems())
			if key == nil {
				return nil
			}
			keys = append(keys, key)
		}
		m.several = len(keys) > 1
		if len(keys) > 1 {
			keys = []*parser.Node{parser.NewOr(keys)}
		}
		m.where = keys
		return []meant{m}
	case !constantQuery(source):
		return nil
	case len(source.List("fromClause")) == 0 && !expandsRows(source):
		m.several = false
		key := conflictKey(positions, values(source.List("targetList")), valueMessages(query.TargetList))
		if key == nil {
			return nil
		}
		m.where = []*parser.Node{key}
		return []meant{m}
	}
	if !m.joinSource(positions, query) {
		return nil
	}
	return []meant{m}
}

// conflictColumn is a column of a conflict target and its place among those that are
// inserted.
type conflictColumn struct {
	name string
	at   int
}

// conflictPositions returns the columns of a conflict target, nil if they aren't known
// or not all inserted. The index of a constraint that is named may be any, as may be a
// partial one, under whose columns there may be other rows, too.
func conflictPositions(insert, conflict *sqltree.Node) (out []conflictColumn) {
	infer := conflict.Get("infer")
	if infer == nil || infer.Get("whereClause") != nil {
		return nil
	}
	for _, elem := range infer.List("indexElems") {
		at := slices.IndexFunc(insert.List("cols"), func(col *sqltree.Node) bool { return col.Str("name") == elem.Str("name") })
		if elem.Str("name") == "" || at < 0 {
			return nil
		}
		out = append(out, conflictColumn{elem.Str("name"), at})
	}
	return out
}

// conflictKey returns the condition that finds the row which an inserted one met: the
// columns of the conflict target are equal to what is inserted.
func conflictKey(columns []conflictColumn, items []*sqltree.Node, messages []*parser.Node) *parser.Node {
	var equal []*parser.Node
	for _, column := range columns {
		if column.at >= len(items) || !isFixed(items[column.at]) || items[column.at].Is("SetToDefault") {
			return nil
		}
		equal = append(equal, parser.NewComparison(parser.NewNames("="), parser.NewColumn(column.name), messages[column.at]))
	}
	if len(equal) == 1 {
		return equal[0]
	}
	return parser.NewAnd(equal)
}

// sourceName is what the source of an INSERT is called in a question.
const sourceName = "fencerow_source"

// joinSource joins the rows with those that were to be inserted, by the columns of the
// conflict target. Of the source only these are asked for: outside an INSERT the
// others' placeholders might take other types.
func (m *meant) joinSource(columns []conflictColumn, query *parser.SelectStmt) bool {
	if refName(m.rel) == sourceName {
		return false
	}
	var items []*parser.Node
	for _, column := range columns {
		if column.at >= len(query.TargetList) {
			return false
		}
		items = append(items, parser.NewItem(column.name, query.TargetList[column.at].GetResTarget().GetVal()))
		m.where = append(m.where, parser.NewComparison(parser.NewNames("="), parser.NewColumn(refName(m.rel), column.name), parser.NewColumn(sourceName, column.name)))
	}
	m.source = parser.NewSubselect(sourceName, items, query.FromClause)
	return true
}

// values returns the expressions of a list of output items.
func values(items []*sqltree.Node) []*sqltree.Node {
	out := make([]*sqltree.Node, len(items))
	for i, item := range items {
		out[i] = item.Get("val")
	}
	return out
}

func valueMessages(items []*parser.Node) []*parser.Node {
	out := make([]*parser.Node, len(items))
	for i, item := range items {
		out[i] = item.GetResTarget().GetVal()
	}
	return out
}

// endsIn reports whether n is a column of that name; the only table in reach
// is the write's target.
func endsIn(n *sqltree.Node, column string) bool {
	if !n.Is("ColumnRef") {
		return false
	}
	parts, ok := sqltree.Strings(n.List("fields"))
	return ok && len(parts) > 0 && parts[len(parts)-1] == column
}

func isName(parts []*sqltree.Node, name string) bool {
	names, ok := sqltree.Strings(parts)
	return ok && len(names) == 1 && names[0] == name
}

// steadyFunctions give the same answer when the condition is asked again in
// the same transaction.
var steadyFunctions = setOf("lower", "upper", "length", "btrim", "ltrim", "rtrim", "substring", "substr", "concat", "abs", "date_trunc",
	"date_part", "extract", "now", "array_position", "cardinality", "md5", "replace", "position", "timezone", "starts_with")

// setFunctions give the same rows when they are asked again.
var setFunctions = setOf("unnest", "generate_series", "jsonb_to_recordset", "json_to_recordset", "jsonb_array_elements", "json_array_elements",
	"jsonb_array_elements_text", "json_array_elements_text", "jsonb_populate_recordset", "json_populate_recordset")

// repeatable reports whether a condition may be asked again: it has no
// sub-select and calls nothing that may be volatile.
func repeatable(n *sqltree.Node) bool {
	if n == nil {
		return true
	}
	switch n.Kind() {
	case "SubLink", "CurrentOfExpr":
		return false
	case "FuncCall":
		parts, ok := sqltree.Strings(n.List("funcname"))
		if !ok || !(len(parts) == 1 || parts[0] == "pg_catalog") || !steadyFunctions[parts[len(parts)-1]] && !setFunctions[parts[len(parts)-1]] {
			return false
		}
	}
	for _, k := range n.Kids {
		if !repeatable(k) {
			return false
		}
	}
	return true
}
