package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/internal/wordsearch"
)

// Makers are what makes, changes or drops objects of the database when a
// statement uses it. No text shows that, and what has been read of the catalog may
// be out of date afterwards.
type Makers struct {
	// Functions are functions, procedures and aggregates.
	Functions []Name
	// Relations are tables with triggers, defaults or the like that do, and views
	// that do when they are read.
	Relations []Maker
	// Unseen says that an object does which belongs to no relation, as in
	// [Closure.Unseen]: any statement may use it.
	Unseen bool
	// EventTriggers says that an event trigger does: any change of structure fires it.
	EventTriggers bool
}

// Maker is a relation whose use changes the catalog.
type Maker struct {
	Name
	Events []string // "READ", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFRESH"
}

// makerSet is what texts are searched for; nil if nothing makes anything.
type makerSet struct {
	Makers
	words *quickSet
}

func newMakerSet(m Makers) *makerSet {
	if len(m.Functions)+len(m.Relations) == 0 && !m.Unseen && !m.EventTriggers {
		return nil
	}
	q := &quickSet{listed: make(map[string]bool)}
	for _, n := range m.Functions {
		q.add(n.Name)
	}
	for _, r := range m.Relations {
		q.add(r.Name.Name)
	}
	if m.EventTriggers {
		q.listed["into"] = true // SELECT INTO makes a table
	}
	q.words = wordsearch.New(q.meanings(nil, nil))
	return &makerSet{m, q}
}

// maxMaking is the longest text that is looked through for what makes something,
// in bytes. A longer one that has such a word is taken for one that does.
const maxMaking = 16 << 10

// makes reports whether a text may use what changes the catalog.
func (p *Policy) makes(sql string) bool {
	if p.makers == nil {
		return false
	}
	m := p.makers
	if hit, _ := m.words.find(sql); hit == "" && !m.Unseen && !(m.EventTriggers && !beginsQuick(firstWord(sql))) {
		return false
	}
	if len(sql) > maxMaking {
		return true
	}
	a := workspaces.Get().(*workspace)
	defer a.release()
	lex := sqltext.Text{SQL: sql}
	if lex.Check(lex.IsTooDeep) != nil {
		return true
	}
	stmts, err := a.Parse(sql)
	return err != nil || slices.ContainsFunc(stmts, func(raw *sqltree.Node) bool { return m.usedBy(raw.Get("stmt")) })
}

// usedBy reports whether a statement may use what changes the catalog.
func (m *makerSet) usedBy(stmt *sqltree.Node) bool {
	switch {
	case stmt.Is("DoStmt"), m.Unseen && !unseeing[stmt.Kind()], m.EventTriggers && runsEvents(stmt):
		return true // of DO the body may have such a word
	}
	return m.isIn(stmt, eventsOf(stmt))
}

// eventsIn are the events that a kind of node brings for the tables of its
// statement.
var eventsIn = map[string][]string{
	"InsertStmt": {"INSERT"}, "UpdateStmt": {"UPDATE"}, "DeleteStmt": {"DELETE"}, "OnConflictClause": {"UPDATE"}, "MergeStmt": {"INSERT", "UPDATE", "DELETE"},
	"CopyStmt": {"INSERT"}, "TruncateStmt": {"TRUNCATE"}, "RefreshMatViewStmt": {"REFRESH"},
}

// eventsOf returns the events that may happen to any of the relations that a
// statement names.
func eventsOf(n *sqltree.Node) []string {
	events := []string{"READ"}
	var collect func(n *sqltree.Node)
	collect = func(n *sqltree.Node) {
		events = append(events, eventsIn[n.Kind()]...)
		for _, k := range n.Kids {
			collect(k)
		}
	}
	collect(n)
	return events
}

// isIn reports whether something that changes the catalog stands in a tree.
func (m *makerSet) isIn(n *sqltree.Node, events []string) bool {
	return m.isAt(n, events) || slices.ContainsFunc(n.Kids, func(k *sqltree.Node) bool { return m.isIn(k, events) })
}

// isAt reports whether a node itself names what changes the catalog.
func (m *makerSet) isAt(n *sqltree.Node, events []string) bool {
	switch n.Kind() {
	case "FuncCall":
		return namesOne(m.Functions, n.List("funcname"))
	case "ColumnRef": // row.f stands for f(row)
		fields := n.List("fields")
		return len(fields) > 1 && isField(m.Functions, fields[1:])
	case "A_Indirection":
		return isField(m.Functions, n.List("indirection"))
	case "RangeVar":
		return m.isRelation(n.Str("schemaname"), n.Str("relname"), events)
	}
	return constructors[n.Kind()] != "" && matches(m.Functions, "", constructors[n.Kind()])
}

func (m *makerSet) isRelation(schema, name string, events []string) bool {
	return slices.ContainsFunc(m.Relations, func(r Maker) bool {
		return r.Name.Name == name && r.IsIn(schema) &&
			slices.ContainsFunc(events, func(e string) bool { return slices.Contains(r.Events, e) })
	})
}

// namesOne reports whether a qualified name in a tree can stand for one of a list.
func namesOne(list []Name, names []*sqltree.Node) bool {
	parts, ok := sqltree.Strings(names)
	if !ok || len(parts) == 0 {
		return !ok
	}
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	return matches(list, schema, parts[len(parts)-1])
}

// isField reports whether one of the fields of a row may be one of a list.
func isField(list []Name, fields []*sqltree.Node) bool {
	return slices.ContainsFunc(fields, func(f *sqltree.Node) bool { return f.Is("String") && matches(list, "", f.Str("sval")) })
}
