package rewrite

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

// Probes returns the queries that tell why a guarded write changed no row, in
// the order they are to be asked: by its WHERE without the guard, then, in case
// the newer holder has changed what the WHERE compares, by the primary key
// alone. Each returns the highest token among the rows, or NULL if there are
// none. Probes returns none where a second look can't tell: the statement reads
// other tables, has WITH (but for a list of constants), sub-selects, calls of
// functions that may be volatile, nests too deep, or isn't the text's only one.
func (p *Plan) Probes() []Probe {
	if p.later == nil {
		return nil
	}
	p.later.probeOnce.Do(p.makeProbes)
	return p.later.probes
}

// StaleCounts returns the queries that count the rows that a guarded write
// meant and that carry a newer token than its own, for a write that changed
// some of its rows. There is none where a condition finds other rows, too.
func (p *Plan) StaleCounts() []Probe {
	if p.later == nil {
		return nil
	}
	p.later.probeOnce.Do(p.makeProbes)
	return p.later.staleCounts
}

func (p *Plan) makeProbes() {
	for _, m := range p.proof().meant() {
		if highest, err := m.highest(); err == nil {
			p.later.probes = append(p.later.probes, highest)
		}
		if !m.exact {
			continue
		}
		if count, err := m.countNewer(); err == nil {
			p.later.staleCounts = append(p.later.staleCounts, count)
		}
	}
}

// meant returns the conditions that find the rows which a guarded write meant.
func (p *proof) meant() []meant {
	if p.tree == nil || len(p.text) > maxProbed || sqltext.IsTooDeep(p.text, sqltext.MaxDeparseNesting) {
		return nil
	}
	if p.tree.Get("withClause") != nil && !p.tree.Is("UpdateStmt") && !p.tree.Is("DeleteStmt") {
		return nil
	}
	stmt := parser.ParseMessage(p.text)
	if stmt == nil {
		return nil
	}
	table := p.probed()
	switch {
	case table == nil:
	case p.tree.Is("UpdateStmt"):
		s := stmt.GetUpdateStmt()
		return p.meantByWhere(table, p.tree.List("fromClause"), s.FromClause, s.WithClause, s.Relation, s.WhereClause)
	case p.tree.Is("DeleteStmt"):
		s := stmt.GetDeleteStmt()
		return p.meantByWhere(table, p.tree.List("usingClause"), s.UsingClause, s.WithClause, s.Relation, s.WhereClause)
	case p.tree.Is("InsertStmt"):
		return meantByConflict(table, p, stmt.GetInsertStmt())
	case p.tree.Is("MergeStmt") && len(p.guards) > 0:
		return meantByMerge(table, p.tree, stmt.GetMergeStmt())
	}
	return nil
}

// probed returns the table that is written. Where its name may stand for
// several, what they don't share isn't known of it; nil is returned if that is
// the token column.
func (p *proof) probed() *Table {
	table := *p.writes[0].Table
	for _, w := range p.writes[1:] {
		if w.Table.TokenColumn != table.TokenColumn {
			return nil
		}
		if !slices.Equal(w.Table.Key, table.Key) {
			table.Key = nil
		}
	}
	return &table
}

// meantByWhere finds the rows of an UPDATE or DELETE.
func (p *proof) meantByWhere(table *Table, beside []*sqltree.Node, source []*parser.Node, with *parser.WithClause, rel *parser.RangeVar, condition *parser.Node) (out []meant) {
	switch {
	case len(beside) > 0:
		return p.meantByList(table, beside, source, with, rel, condition)
	case with != nil:
		return nil
	}
	members, rest := parser.SplitAnd(condition), p.unguarded(condition)
	where := p.tree.Get("whereClause")
	if repeatable(where) {
		out = append(out, meant{table: table, rel: rel, where: rest, exact: true})
	}
	if key := keyMembers(conjuncts(where), table); key != nil {
		var pinned []*parser.Node
		for _, i := range key {
			pinned = append(pinned, members[i])
		}
		if len(pinned) != len(rest) || len(out) == 0 {
			out = append(out, meant{table: table, rel: rel, where: pinned})
		}
	}
	return out
}

// conflictRows bounds the rows of an upsert that are asked after.
const conflictRows = 100

// meantByConflict finds the rows that an upsert met: they were there already,
// under the columns of the conflict.
func meantByConflict(table *Table, p *proof, insert *parser.InsertStmt) []meant {
	tree := p.tree
	conflict := tree.Get("onConflictClause")
	rows := insert.GetSelectStmt().GetSelectStmt().GetValuesLists()
	if conflict == nil || conflict.Str("action") != "ONCONFLICT_UPDATE" || len(rows) == 0 || len(rows) > conflictRows {
		return nil
	}
	var keys []*parser.Node
	for _, row := range rows {
		key := conflictKey(tree, conflict, row.GetList().GetItems())
		if key == nil {
			return nil
		}
		keys = append(keys, key)
	}
	if len(keys) > 1 {
		keys = []*parser.Node{parser.NewOr(keys)}
	}
	exact := len(conjuncts(conflict.Get("whereClause"))) == len(p.guards)
	return []meant{{table: table, rel: insert.Relation, where: keys, exact: exact}}
}

// conflictKey returns the condition that finds the row which an inserted one
// met: the columns of the conflict target are equal to what is inserted.
func conflictKey(tree, conflict *sqltree.Node, items []*parser.Node) *parser.Node {
	infer := conflict.Get("infer")
	if infer == nil || infer.Get("whereClause") != nil {
		return nil // a partial index: other rows may have the same columns
	}
	var equal []*parser.Node
	for _, elem := range infer.List("indexElems") {
		at := slices.IndexFunc(tree.List("cols"), func(col *sqltree.Node) bool { return col.Str("name") == elem.Str("name") })
		if elem.Str("name") == "" || at < 0 || at >= len(items) || !constantProto(items[at]) {
			return nil
		}
		equal = append(equal, parser.NewComparison(parser.NewNames("="), parser.NewColumn(elem.Str("name")), items[at]))
	}
	switch len(equal) {
	case 0:
		return nil
	case 1:
		return equal[0]
	}
	return parser.NewAnd(equal)
}

func constantProto(n *parser.Node) bool {
	if cast := n.GetTypeCast(); cast != nil {
		n = cast.Arg
	}
	return n.GetParamRef() != nil || n.GetAConst() != nil
}

// keyMembers returns which members of an AND list pin the whole primary key of
// a table: each of its columns is equal to, or in a list of, constants and
// placeholders. It returns nil if they don't.
func keyMembers(members []*sqltree.Node, table *Table) []int {
	if len(table.Key) == 0 {
		return nil
	}
	var pinned []int
	for _, column := range table.Key {
		found := slices.IndexFunc(members, func(n *sqltree.Node) bool {
			if n.Is("A_Expr") && n.Str("kind") == "AEXPR_IN" {
				return endsIn(n.Get("lexpr"), column) && constants(n.Get("rexpr"))
			}
			op, left, right, ok := comparison(n)
			return ok && op == "=" && (endsIn(left, column) && constant(right) || endsIn(right, column) && constant(left))
		})
		if found < 0 {
			return nil
		}
		pinned = append(pinned, found)
	}
	return pinned
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

// constant reports whether n is a constant or a placeholder, with casts or a
// minus.
func constant(n *sqltree.Node) bool {
	for {
		switch {
		case n.Is("TypeCast"):
			n = n.Get("arg")
		case n.Is("A_Expr") && n.Str("kind") == "AEXPR_OP" && n.Get("lexpr") == nil && isName(n.List("name"), "-"):
			n = n.Get("rexpr")
		default:
			return n.Is("ParamRef") || n.Is("A_Const")
		}
	}
}

func isName(parts []*sqltree.Node, name string) bool {
	names, ok := sqltree.Strings(parts)
	return ok && len(names) == 1 && names[0] == name
}

// constants reports whether a list of IN holds constants and placeholders only.
func constants(n *sqltree.Node) bool {
	if !n.Is("List") {
		return false
	}
	return !slices.ContainsFunc(n.List("items"), func(item *sqltree.Node) bool { return !constant(item) })
}

// steadyFunctions give the same answer when the condition is asked again in
// the same transaction.
var steadyFunctions = setOf("lower", "upper", "length", "btrim", "ltrim", "rtrim", "substring", "substr", "concat", "abs", "date_trunc",
	"date_part", "extract", "now", "array_position", "cardinality", "md5", "replace", "position", "timezone", "starts_with")

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
		if !ok || !(len(parts) == 1 || parts[0] == "pg_catalog") || !steadyFunctions[parts[len(parts)-1]] {
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
