package reach

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
)

// closureBuilder finds out which relations and routines write which of the
// protected tables, by going on until nothing new is found.
type closureBuilder struct {
	facts       *catalog
	tables      []Table
	chosen      func(i int) bool
	chosenNames map[check.Name]bool
	guarded     []check.Name
	allowed     map[oid]bool // by the registry
	relations   map[oid]*reachedRelation
	byName      map[string][]*reachedRelation
	routines    map[oid]*reachedRoutine
	calls       map[string][]*reachedRoutine
	parents     map[oid][]oid
	rules       []*routineBody
	expressions []*expression
	changers    map[oid]*catalogRoutine
	changes     map[oid]rowChange // by what is read of their bodies
	changed     bool
	onRead      []*reachedRelation // those that write when they are read
	onChange    tableSet           // what event triggers write
	making      bool               // it isn't tables that are followed, but the one set of what changes the catalog
	escapes     bool               // some code runs with standard_conforming_strings off
}

// reachedRelation is a relation with what a write of it writes.
type reachedRelation struct {
	*catalogRelation
	family  tableSet            // it shares rows with these
	over    tableSet            // it is a view over these
	cascade map[string]tableSet // by event: foreign keys do; an UPDATE of a column is "UPDATE:column", of any one "UPDATE"
	code    map[string]tableSet // by event, also one of those below: triggers, rules and the like do
	unread  *reachedRoutine     // by whose body, which isn't read, they may write any table
}

// reachedRoutine is a routine with what it writes.
type reachedRoutine struct {
	*catalogRoutine
	body    *routineBody
	writes  tableSet
	unread  *reachedRoutine // by whose body, which isn't read, it may write any table: its own or that of one that it calls
	guarded bool            // it carries a guard of its own, or the registry allows it
}

// unguarded returns what a call of it writes without a guard.
func (r *reachedRoutine) unguarded() tableSet {
	if r.guarded {
		return nil
	}
	return r.writes
}

// closureOf returns what else can reach the chosen tables.
func (c *catalog) closureOf(tables []Table, guarded []check.Name) check.Closure {
	b := &closureBuilder{facts: c, tables: tables, guarded: guarded, chosen: func(i int) bool { return i < len(tables) && tables[i].IsChosen }}
	b.spread()
	b.findUnread()
	out := b.relationsFound()
	b.namesFound(&out)
	b.codeFound(&out)
	out.GuardedFunctions, out.FoldsNames, out.Types = guarded, c.folds, c.Types
	out.Makers = c.makers()
	return out
}

// spread finds out what writes what.
func (b *closureBuilder) spread() {
	b.prepare()
	b.spreadFamily()
	for b.changed = true; b.changed; {
		b.changed = false
		b.spreadRelations()
		b.spreadCode()
		b.spreadExpressions()
	}
}

// prepare makes the maps.
func (b *closureBuilder) prepare() {
	b.relations, b.byName = make(map[oid]*reachedRelation), make(map[string][]*reachedRelation)
	for i := range b.facts.Relations {
		r := &reachedRelation{catalogRelation: &b.facts.Relations[i], family: b.set(), over: b.set(), cascade: map[string]tableSet{}, code: map[string]tableSet{}}
		b.relations[r.OID] = r
		b.byName[lowerASCII(r.Name)] = append(b.byName[lowerASCII(r.Name)], r)
	}
	b.routines, b.calls, b.allowed = make(map[oid]*reachedRoutine), make(map[string][]*reachedRoutine), make(map[oid]bool)
	for _, f := range b.facts.Allowed {
		b.allowed[f] = !b.making
	}
	for i := range b.facts.Routines {
		r := &reachedRoutine{catalogRoutine: &b.facts.Routines[i], writes: b.set()}
		r.body, r.guarded = r.read(), b.isGuarded(r.OID, r.name())
		b.routines[r.OID] = r
		b.calls[lowerASCII(r.Name)] = append(b.calls[lowerASCII(r.Name)], r)
		b.escapes = b.escapes || r.body.has(stringsSetting) || b.setsBySystemView(r.body)
	}
	for i := range b.facts.Own {
		r := &reachedRoutine{catalogRoutine: &b.facts.Own[i], body: newRoutineBody(), writes: b.set()}
		r.writes.put(b.own())
		b.routines[r.OID] = r
	}
	for i := range b.facts.Expressions {
		b.expressions = append(b.expressions, b.facts.Expressions[i].read())
	}
	for i := range b.facts.Rules {
		b.rules = append(b.rules, b.facts.Rules[i].read())
	}
	b.changers, b.changes = make(map[oid]*catalogRoutine), make(map[oid]rowChange)
	for i := range b.facts.Changers {
		b.changers[b.facts.Changers[i].OID] = &b.facts.Changers[i]
	}
	b.chosenNames = make(map[check.Name]bool)
	for i := range b.tables {
		if b.chosen(i) {
			b.chosenNames[b.tableName(i)] = true
		}
	}
	b.parents = make(map[oid][]oid)
	for _, i := range b.facts.Inherits {
		b.parents[i[0]] = append(b.parents[i[0]], i[1])
	}
	for _, h := range b.facts.Held {
		if r := b.relations[h[1]]; r != nil && b.chosen(int(h[0])) {
			r.family.put(int(h[0]))
		}
	}
}

// isGuarded reports whether a function carries a guard of its own: it is named as
// such, or the registry allows it, but not its overloads.
func (b *closureBuilder) isGuarded(function oid, name check.Name) bool {
	return b.allowed[function] || slices.Contains(b.guarded, name)
}

// spreadFamily goes down from the protected tables to all that inherits from
// them, and then up from all of these; a sibling shares no rows.
func (b *closureBuilder) spreadFamily() {
	for _, down := range []bool{true, false} {
		for b.changed = true; b.changed; {
			b.changed = false
			for _, i := range b.facts.Inherits {
				if from, to := b.relations[i[1]], b.relations[i[0]]; from != nil && to != nil {
					if !down {
						from, to = to, from
					}
					b.add(to.family, from.family)
				}
			}
		}
	}
}

// set returns an empty set. It has room for one more than the tables: own.
func (b *closureBuilder) set() tableSet { return newTableSet(len(b.tables) + 1) }

// own stands for what the schema fencing has, in a set of tables.
func (b *closureBuilder) own() int { return len(b.tables) }

// add puts what is in more into a set.
func (b *closureBuilder) add(to, more tableSet) {
	if to.add(more) {
		b.changed = true
	}
}

// addFor puts what is in more into the set of an event.
func (b *closureBuilder) addFor(to map[string]tableSet, event string, more tableSet) {
	if more.isEmpty() {
		return
	}
	if to[event] == nil {
		to[event] = b.set()
	}
	b.add(to[event], more)
}

// spreadRelations carries what a write of a relation writes to its ancestors,
// its views and the tables that it references, until nothing new is found. It
// goes through the keys to and fro: a chain of tables, in whatever order they
// were made, is followed in a few rounds.
func (b *closureBuilder) spreadRelations() {
	before := b.changed
	for round := 0; ; round++ {
		b.changed = false
		b.spreadKeys(round%2 == 1)
		b.spreadNames()
		if !b.changed {
			b.changed = before
			return
		}
		before = true
	}
}

// spreadKeys follows the foreign keys, in their order or backwards.
func (b *closureBuilder) spreadKeys(backwards bool) {
	for i := range b.facts.Triggers {
		b.spreadChange(&b.facts.Triggers[i])
	}
	for _, g := range b.facts.Generated {
		if r := b.relations[g.Relation]; r != nil {
			b.addFor(r.cascade, "UPDATE:"+g.From, r.cascade["UPDATE:"+g.Column])
		}
	}
	for i := range b.facts.Keys {
		if backwards {
			i = len(b.facts.Keys) - 1 - i
		}
		b.spreadKey(&b.facts.Keys[i])
	}
}

// spreadNames carries what a write of a relation writes to what else it is
// written by.
func (b *closureBuilder) spreadNames() {
	for _, i := range b.facts.Inherits {
		if child, parent := b.relations[i[0]], b.relations[i[1]]; child != nil && parent != nil {
			b.carry(child, parent, nil)
			if parent.family.isEmpty() {
				b.add(parent.over, child.over) // a foreign table that leads to a protected one
			}
			b.spreadMoves(parent)
		}
	}
	for _, v := range slices.Concat(b.facts.Views, b.facts.Foreign) {
		if base, view := b.relations[v[0]], b.relations[v[1]]; base != nil && view != nil {
			b.add(view.over, base.family)
			b.add(view.over, base.over)
			b.carry(base, view, view.Columns)
		}
	}
	for _, v := range b.facts.Stored {
		if base, view := b.relations[v[0]], b.relations[v[1]]; base != nil && view != nil {
			b.addFor(view.code, eventRefresh, base.code[eventRead])
		}
	}
}

// spreadMoves has an UPDATE of a partitioned table do what a DELETE and an INSERT do:
// it is both for a row that it moves to another partition.
func (b *closureBuilder) spreadMoves(parent *reachedRelation) {
	if !parent.IsPartitioned {
		return
	}
	for _, event := range []string{"DELETE", "INSERT", eventMove} {
		b.addFor(parent.code, "UPDATE", parent.code[event])
	}
	b.addFor(parent.cascade, "UPDATE", parent.cascade[eventMove])
}

// carry copies what events on a relation do to one by which it is written as
// well. A view's columns may be any of the relation's.
func (b *closureBuilder) carry(from, to *reachedRelation, columns []string) {
	for event, tables := range from.code {
		b.addFor(to.code, event, tables)
	}
	for event, tables := range from.cascade {
		if columns == nil || !strings.HasPrefix(event, "UPDATE:") {
			b.addFor(to.cascade, event, tables)
			continue
		}
		for _, column := range columns {
			b.addFor(to.cascade, "UPDATE:"+column, tables)
		}
	}
}

// spreadKey follows a foreign key from the table it references to its own.
func (b *closureBuilder) spreadKey(k *catalogKey) {
	child, parent := b.relations[k.Child], b.relations[k.Parent]
	if child == nil || parent == nil {
		return
	}
	b.follow(parent, "TRUNCATE", child, "TRUNCATE", nil)
	deletions := []string{"DELETE"}
	if !k.IsInherited && !parent.IsPartitioned {
		deletions = append(deletions, eventMove) // of a key to the whole table PostgreSQL knows that the row isn't gone
	}
	for _, event := range deletions {
		switch k.Delete {
		case "c":
			b.follow(parent, event, child, "DELETE", nil)
		case "n", "d":
			b.follow(parent, event, child, "UPDATE", k.From)
		}
	}
	if k.Update == "c" || k.Update == "n" || k.Update == "d" {
		for _, column := range k.To {
			b.follow(parent, "UPDATE:"+column, child, "UPDATE", k.From)
		}
	}
}

// follow notes that an event on a relation is followed by another on a second.
func (b *closureBuilder) follow(parent *reachedRelation, event string, child *reachedRelation, then string, columns []string) {
	b.addFor(parent.cascade, event, child.family)
	plain, _, _ := strings.Cut(event, ":")
	for _, key := range child.keys(then, columns) {
		b.addFor(parent.cascade, event, child.cascade[key])
		b.addFor(parent.code, plain, child.code[key])
	}
}

// keys returns under what an event's effects stand: an UPDATE's under each of
// its columns, or under all where they aren't known.
func (r *reachedRelation) keys(event string, columns []string) []string {
	keys := []string{event}
	if event != "UPDATE" {
		return keys
	}
	for key := range r.cascade {
		// a body's columns are lower-cased
		if column, ok := strings.CutPrefix(key, "UPDATE:"); ok && (columns == nil || slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, column) })) {
			keys = append(keys, key)
		}
	}
	return keys
}
