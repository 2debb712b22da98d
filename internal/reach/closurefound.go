package reach

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
)

// relationsFound returns the closure's relations.
func (b *closureBuilder) relationsFound() check.Closure {
	var out check.Closure
	foreign := make(map[oid]bool)
	for _, f := range b.facts.Foreign {
		foreign[f[1]] = true
	}
	for i := range b.facts.Relations {
		r := b.relations[b.facts.Relations[i].OID]
		if of := r.family.next(0); of >= 0 && !b.isChosen(r.name()) {
			out.Relatives = append(out.Relatives, check.Relative{Name: r.name(), Of: b.tableName(of)})
		}
		if !r.over.isEmpty() {
			out.Views = append(out.Views, r.name())
			if foreign[r.OID] {
				out.ForeignTables = append(out.ForeignTables, r.name())
			}
		}
		out.Cascades = append(out.Cascades, b.cascadesOf(r)...)
		out.Writers = append(out.Writers, b.writersOf(r)...)
	}
	out.Replacements = b.replacements()
	return out
}

// replacements returns the rules that take the place of a write to a protected
// table, or to what shares rows with one. A view's write is refused in any case.
func (b *closureBuilder) replacements() (out []check.Replacement) {
	for _, rule := range b.facts.Rules {
		r := b.relations[rule.Relation]
		if r != nil && !r.family.isEmpty() && rule.Instead && rule.Fires {
			out = append(out, check.Replacement{Name: r.name(), Rule: rule.Name, Event: ruleEvents[rule.Event]})
		}
	}
	return out
}

// namesFound adds what a bare name, an operator or a view could stand for that
// isn't protected.
func (b *closureBuilder) namesFound(out *check.Closure) {
	matters := make(map[string]bool)
	for i, t := range b.tables {
		matters[t.Name] = matters[t.Name] || b.chosen(i)
	}
	for _, r := range b.relations {
		matters[r.Name] = matters[r.Name] || r.reaches()
	}
	for _, n := range b.facts.Namesakes {
		name := check.Name{Schema: n.Schema, Name: n.Name}
		if r := b.relations[n.OID]; matters[n.Name] && (r == nil || !r.reaches()) && !b.isChosen(name) {
			out.Namesakes = append(out.Namesakes, check.Namesake{Name: name, OID: uint32(n.OID), IsTable: n.IsTable})
		}
	}
	for _, v := range b.facts.SystemViews {
		out.SystemViews = append(out.SystemViews, check.Name{Schema: v.Schema, Name: v.Name})
	}
	out.SystemViews = unique(out.SystemViews)
	out.HasComparisons = b.facts.Comparisons || b.facts.isPathUnseen
}

// cascadesOf returns what foreign keys do to protected tables when the
// relation's rows change. One table is named for each event if there is one without
// a wall, since that is what an event is refused for. Otherwise it is one for each
// resource, whose token a wall judges by.
func (b *closureBuilder) cascadesOf(r *reachedRelation) (out []check.Cascade) {
	into := make(map[int]*check.Cascade)
	for _, event := range slices.Sorted(maps.Keys(r.cascade)) {
		if event == eventMove {
			continue
		}
		for _, i := range b.judged(r.cascade[event]) {
			c := into[i]
			if c == nil {
				c = &check.Cascade{Name: r.name(), Into: b.tableName(i), ChildWall: b.tables[i].HasWall}
				into[i] = c
			}
			switch column, isColumn := strings.CutPrefix(event, "UPDATE:"); {
			case isColumn:
				c.UpdateOf = append(c.UpdateOf, column)
			case event == "UPDATE":
				c.Update = true
			case event == "DELETE":
				c.Delete = true
			case event == "TRUNCATE":
				c.Truncate = true
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(into)) {
		out = append(out, *into[i])
	}
	return out
}

// judged returns a table without a wall from a set or, if there is none, a table for
// each resource. The schema's own isn't among them: its triggers refuse any change.
func (b *closureBuilder) judged(tables tableSet) (found []int) {
	if i := b.withoutWall(tables); i != b.own() && !b.tables[i].HasWall {
		return []int{i}
	}
	seen := make(map[string]bool)
	for i := range tables.all {
		if resource := b.tables[i].Resource; i != b.own() && !seen[resource] {
			seen[resource] = true
			found = append(found, i)
		}
	}
	return found
}

// withoutWall returns a table of a set, one without a wall if there is any.
func (b *closureBuilder) withoutWall(tables tableSet) int {
	for i := range tables.all {
		if i != b.own() && !b.tables[i].HasWall {
			return i
		}
	}
	return tables.next(0)
}

// writersOf returns what triggers and rules write when the relation's rows
// change.
func (b *closureBuilder) writersOf(r *reachedRelation) (out []check.Writer) {
	events := make(map[int][]string)
	for _, event := range slices.Sorted(maps.Keys(r.code)) {
		if event == eventMove {
			continue
		}
		for i := range r.code[event].all {
			events[i] = append(events[i], event)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(events)) {
		tables := b.set()
		tables.put(i)
		out = append(out, check.Writer{Name: r.name(), Into: b.tableName(i), Events: events[i], Unread: b.unreadBy(r.unread, tables)})
	}
	return out
}

// codeFound adds the closure's routines, and what calls them or guards tables.
func (b *closureBuilder) codeFound(out *check.Closure) {
	writes := func(function oid) bool {
		return b.routines[function] != nil && !b.routines[function].unguarded().isEmpty()
	}
	out.FunctionTables = make(map[check.Name]check.Name)
	for i := range b.facts.Routines {
		if r := b.routines[b.facts.Routines[i].OID]; b.allowed[r.OID] && !r.writes.isEmpty() {
			out.AllowedFunctions = append(out.AllowedFunctions, r.name())
		} else if !r.writes.isEmpty() {
			out.Functions = append(out.Functions, r.name())
			if _, isNoted := out.FunctionTables[r.name()]; !isNoted {
				out.FunctionTables[r.name()] = b.tableName(r.writes.next(0))
			}
		}
	}
	out.Unread = b.unreadFound()
	for _, f := range b.facts.EventTriggers {
		if writes(f) {
			out.EventTriggers = append(out.EventTriggers, b.routines[f].name())
		}
	}
	out.Unseen = b.unseenFound()
	out.OwnCallers = b.ownCallers()
	b.triggersFound(out)
	if b.facts.Epoch {
		out.Sequences = append(out.Sequences, check.Name{Schema: "fencing", Name: "write_epoch"})
	}
	for i, t := range b.tables {
		if b.chosen(i) && t.IssuedBy != (check.Name{}) {
			out.Sequences = append(out.Sequences, t.IssuedBy)
		}
	}
	for _, o := range b.facts.Owners {
		if slices.Contains(out.Sequences, o.Sequence) {
			out.SequenceOwners = append(out.SequenceOwners, check.SequenceOwner{Name: check.Name{Schema: o.Schema, Name: o.Name}, Column: o.Column, Sequence: o.Sequence})
		}
	}
	for _, list := range []*[]check.Name{&out.Functions, &out.AllowedFunctions, &out.TriggerFunctions, &out.Sequences} {
		*list = unique(*list)
	}
}

// wallMark is the first of the wall's triggers: PostgreSQL fires them in the order
// of their names.
const wallMark = "!fencing_mark"

// triggersFound adds the functions of triggers on protected tables, and the
// triggers that may change a token on its way.
func (b *closureBuilder) triggersFound(out *check.Closure) {
	for i := range b.facts.Triggers {
		t := &b.facts.Triggers[i]
		r := b.relations[t.Relation]
		if r == nil || r.family.isEmpty() {
			continue
		}
		out.TriggerFunctions = append(out.TriggerFunctions, check.Name{Schema: t.Schema, Name: t.Name})
		changed := b.tokenChanged(t, r)
		if changed.isEmpty() {
			continue
		}
		if t.Type&insertEvent != 0 {
			out.InsertTriggers = append(out.InsertTriggers, check.TokenTrigger{Name: r.name(), Trigger: t.Trigger, Function: check.Name{Schema: t.Schema, Name: t.Name}, Events: []string{triggerEvents[insertEvent]}})
		}
		// the wall compares with what its first trigger has seen
		if i := b.withoutWall(changed); !b.tables[i].HasWall || t.Trigger < wallMark {
			b.tokenTrigger(out, t, r)
		}
	}
}

// tokenTrigger adds a trigger to its relation and all ancestors, through which
// its rows are written.
func (b *closureBuilder) tokenTrigger(out *check.Closure, t *catalogTrigger, r *reachedRelation) {
	var events []string
	above := b.above(r)
	for _, event := range []int{insertEvent, updateEvent} {
		// a row that an UPDATE moves to a partition is inserted there
		if t.Type&event != 0 || event == updateEvent && len(above) > 1 {
			events = append(events, triggerEvents[event])
		}
	}
	for _, a := range above {
		found := check.TokenTrigger{Name: a.name(), Trigger: t.Trigger, Function: check.Name{Schema: t.Schema, Name: t.Name}, Events: events}
		// each partition has its own of one trigger
		if !slices.ContainsFunc(out.TokenTriggers, func(other check.TokenTrigger) bool { return reflect.DeepEqual(other, found) }) {
			out.TokenTriggers = append(out.TokenTriggers, found)
		}
	}
}

// above returns a relation and its ancestors.
func (b *closureBuilder) above(r *reachedRelation) []*reachedRelation {
	out := []*reachedRelation{r}
	for next := 0; next < len(out); next++ {
		for _, of := range b.parents[out[next].OID] {
			if parent := b.relations[of]; parent != nil && !slices.Contains(out, parent) {
				out = append(out, parent)
			}
		}
	}
	return out
}

// unique sorts names, and keeps each once.
func unique(names []check.Name) []check.Name {
	slices.SortFunc(names, func(a, b check.Name) int { return strings.Compare(a.Schema+"\x00"+a.Name, b.Schema+"\x00"+b.Name) })
	return slices.Compact(names)
}

func (r *reachedRoutine) name() check.Name { return check.Name{Schema: r.Schema, Name: r.Name} }

// reaches reports whether a write of the relation may write a protected table.
func (r *reachedRelation) reaches() bool {
	return !r.family.isEmpty() || !r.over.isEmpty() || len(r.cascade) > 0 || len(r.code) > 0
}

func (r *reachedRelation) name() check.Name {
	return check.Name{Schema: r.Schema, Name: r.Name}
}

func (b *closureBuilder) tableName(i int) check.Name {
	if i == b.own() {
		return check.Name{Schema: "fencing", Name: "registry"} // the first of them
	}
	return check.Name{Schema: b.tables[i].Schema, Name: b.tables[i].Name}
}

// isChosen reports whether a name is a chosen table's own.
func (b *closureBuilder) isChosen(n check.Name) bool { return b.chosenNames[n] }
