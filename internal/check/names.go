package check

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// target is the relation that a DML statement writes, as the rest of the
// statement can refer to it.
type target struct {
	at     *sqltree.Node // the RangeVar
	schema string
	name   string
	alias  string // "" if it has none
	alone  bool   // no other range-table entry stands beside it
	shared bool   // another entry goes by the same name

	tables    []*Table // the protected tables it can be; those that take the same stand as one
	relations []*relation
	namesakes []Namesake // what a bare name may stand for besides, and isn't protected
}

// target resolves the written relation of a statement; beside lists what else
// stands in FROM or USING.
func (c *checker) target(rel *sqltree.Node, beside []*sqltree.Node) target {
	t := target{
		at:     rel,
		schema: rel.Str("schemaname"),
		name:   rel.Str("relname"),
		alone:  len(beside) == 0,
	}
	if alias := rel.Get("alias"); alias != nil {
		t.alias = alias.Str("aliasname")
	}
	t.relations = c.policy.lookup(t.schema, t.name)
	for _, r := range t.relations {
		if r.table != nil {
			t.tables = appendAlike(t.tables, r.table)
		}
	}
	if t.schema == "" {
		t.namesakes = c.policy.namesakes[t.name]
		c.checkUnlike(t)
	}
	t.shared = slices.Contains(rangeNames(beside, nil), t.ref())
	isSystemView := slices.ContainsFunc(t.relations, func(r *relation) bool { return r.system })
	if isSystemView {
		c.report(violation(SystemSchema, rel, "write into %s, a view that leads to a system catalog or to the schema fencing: these are not changed through fencerow; use a plain connection", quotedName(t.schema, t.name)))
	}
	if t.schema == "" && fencingRelations[t.name] {
		c.nameOwn(rel, t.name)
	}
	if systemSchema(t.schema) || t.schema == "" && isSystemName(t.name) {
		c.report(violation(SystemSchema, rel, "write into %s: system catalogs and the schema fencing are not changed through fencerow; use a plain connection", quotedName(t.schema, t.name)))
	}
	return t
}

// checkUnlike refuses a bare name that stands for tables in several schemas which
// take the tokens of different resources, or in different columns: no token fits
// all of them.
func (c *checker) checkUnlike(t target) {
	for _, table := range t.tables {
		first := t.tables[0]
		if table.Schema == first.Schema || table.Resource == first.Resource && table.TokenColumn == first.TokenColumn {
			continue
		}
		var names []string
		for _, r := range t.relations {
			names = append(names, r.Schema+"."+r.Name.Name)
		}
		c.report(violation(AmbiguousName, t.at, "the bare name %q stands for %s, whose tokens are of different resources or in different columns, so none fits all of them: write the schema of the table that is meant",
			t.name, strings.Join(shortened(names), ", ")).on(table))
		return
	}
}

// appendAlike adds a table to those that a name can stand for. Tables that take
// the same tokens in the same column, such as those of one name in the schemas
// of many tenants, are proved once, as a table without a schema.
func appendAlike(tables []*Table, t *Table) []*Table {
	for i, other := range tables {
		if !other.isAlike(t) {
			continue
		}
		same := *other
		same.Schema = ""
		if !slices.Equal(other.Key, t.Key) {
			same.Key = nil
		}
		if !slices.EqualFunc(other.Keys, t.Keys, slices.Equal) {
			same.Keys = nil
		}
		same.DropsRows = other.DropsRows || t.DropsRows
		tables[i] = &same
		return tables
	}
	return append(tables, t)
}

// isAlike reports whether a statement that is proved for one table is proved for
// the other by the same token.
func (t *Table) isAlike(other *Table) bool {
	return t.Name == other.Name && t.TokenColumn == other.TokenColumn && t.Mode == other.Mode && t.Resource == other.Resource &&
		t.Attested == other.Attested && t.Moves == other.Moves && t.Rewrite == other.Rewrite && t.Unfit == other.Unfit
}

// ref is the name by which the statement refers to the target.
func (t target) ref() string { return defaultTo(t.alias, t.name) }

// isColumn reports whether n names the given column of the target and can't
// name anything else. Unqualified it counts only where nothing stands beside
// the target.
func (t target) isColumn(n *sqltree.Node, column string) bool {
	if !n.Is("ColumnRef") {
		return false
	}
	var room [3]string
	parts, ok := sqltree.AppendStrings(room[:0], n.List("fields"))
	if !ok || len(parts) == 0 || parts[len(parts)-1] != column {
		return false
	}
	switch len(parts) {
	case 1:
		return t.alone
	case 2:
		return parts[0] == t.ref()
	case 3:
		return t.alias == "" && t.schema != "" && parts[0] == t.schema && parts[1] == t.name ||
			t.alias == "" && t.schema == "" && len(t.tables) == 1 && parts[0] == t.tables[0].Schema && parts[1] == t.name
	}
	return false
}

// mentions reports whether column is named anywhere below n, in whatever way.
func mentions(n *sqltree.Node, column string) bool {
	if n == nil {
		return false
	}
	if n.Kind() == "ColumnRef" {
		for _, f := range n.List("fields") {
			if f.Is("String") && f.Str("sval") == column {
				return true
			}
		}
	}
	for _, k := range n.Kids {
		if mentions(k, column) {
			return true
		}
	}
	return false
}

// rangeNames collects the names that the items of a FROM list go by.
func rangeNames(items []*sqltree.Node, into []string) []string {
	for _, n := range items {
		if n == nil {
			continue
		}
		for _, field := range []string{"alias", "join_using_alias"} {
			if n.HasField(field) {
				if a := n.Get(field); a != nil {
					into = append(into, a.Str("aliasname"))
				}
			}
		}
		switch n.Kind() {
		case "RangeVar":
			if n.Get("alias") == nil {
				into = append(into, n.Str("relname"))
			}
		case "JoinExpr":
			into = rangeNames([]*sqltree.Node{n.Get("larg"), n.Get("rarg")}, into)
		case "RangeTableSample":
			into = rangeNames([]*sqltree.Node{n.Get("relation")}, into)
		case "RangeFunction":
			if n.Get("alias") == nil {
				into = append(into, functionNames(n)...)
			}
		}
	}
	return into
}

// functionNames returns the names of the functions below n: one in FROM goes
// by its own name.
func functionNames(n *sqltree.Node) []string {
	var out []string
	if n.Is("FuncCall") {
		if parts, ok := sqltree.Strings(n.List("funcname")); ok {
			out = append(out, parts[len(parts)-1])
		}
	}
	for _, k := range n.Kids {
		out = append(out, functionNames(k)...)
	}
	return out
}

// systemSchema reports whether no statement may write into a schema.
func systemSchema(schema string) bool {
	return schema == "pg_catalog" || schema == "information_schema" || schema == "fencing" || schema == "pg_toast"
}

// isSystemName reports whether a bare name is found in pg_catalog first. All
// its relations begin with pg_.
func isSystemName(name string) bool { return len(name) > 3 && name[:3] == "pg_" }

func quoted(t *Table) string { return strconv.Quote(t.String()) }

func quotedName(schema, name string) string {
	if schema != "" {
		name = schema + "." + name
	}
	return strconv.Quote(name)
}
