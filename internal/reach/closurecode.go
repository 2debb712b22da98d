package reach

import (
	"maps"
	"slices"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// triggerEvents are the bits of pg_trigger.tgtype.
var triggerEvents = map[int]string{4: "INSERT", 8: "DELETE", 16: "UPDATE", 32: "TRUNCATE"}

// ruleEvents are the values of pg_rewrite.ev_type.
var ruleEvents = map[string]string{"2": "UPDATE", "3": "INSERT", "4": "DELETE"}

// Events that are no changes of rows: a disabled trigger or rule is enabled, a
// table is made like another, a view is read, a materialized one refreshed, and
// a relation is given a name.
const (
	eventEnable  = "ENABLE"
	eventLike    = "LIKE"
	eventRead    = "READ"
	eventRefresh = "REFRESH"
	eventCreate  = "CREATE"

	// eventMove is what an UPDATE of the partitioned table does to a row that leaves
	// its partition: foreign keys to that partition take the row for deleted.
	eventMove = "MOVE"
)

// spreadCode adds up what routines, triggers and rules write.
func (b *closureBuilder) spreadCode() {
	b.spreadUnnamed()
	for _, r := range b.routines {
		b.add(r.writes, b.written(r.body))
	}
	for _, call := range b.facts.Calls {
		if r, f := b.routines[call[0]], b.routines[call[1]]; r != nil && f != nil {
			b.add(r.writes, f.unguarded())
		}
	}
	for i := range b.facts.Triggers {
		t := &b.facts.Triggers[i]
		if f := b.routines[t.Function]; f != nil {
			b.fires(t, f.unguarded())
		}
	}
	for i := range b.facts.Conditions {
		if f := b.routines[b.facts.Conditions[i].Function]; f != nil {
			b.fires(&b.facts.Conditions[i], f.unguarded())
		}
	}
	for i, rule := range b.facts.Rules {
		b.rule(rule.Relation, rule.Event, rule.Fires, b.written(b.rules[i]))
	}
	for _, read := range b.facts.Reads {
		if f := b.routines[read.Function]; f != nil {
			b.rule(read.Relation, read.Event, read.Fires, f.unguarded())
		}
	}
	for _, use := range b.facts.Uses {
		b.uses(use)
	}
}

// fires notes what a trigger writes.
func (b *closureBuilder) fires(t *catalogTrigger, tables tableSet) {
	r := b.relations[t.Relation]
	if r == nil {
		return
	}
	for bit, event := range triggerEvents {
		if !t.Fires {
			event = eventEnable
		}
		if t.Type&bit != 0 {
			b.addFor(r.code, event, tables)
		}
	}
}

// rule notes what a rule writes; event is "" for that of a view, whose function
// may run however the view is used.
func (b *closureBuilder) rule(relation oid, event string, fires bool, tables tableSet) {
	r := b.relations[relation]
	switch {
	case r == nil:
	case event == "":
		for _, event := range []string{"INSERT", "UPDATE", "DELETE", eventRead, eventRefresh} {
			b.addFor(r.code, event, tables)
		}
	case !fires:
		b.addFor(r.code, eventEnable, tables)
	default:
		b.addFor(r.code, ruleEvents[event], tables)
	}
}

// written returns what a body writes, as far as is known by now.
func (b *closureBuilder) written(body *routineBody) tableSet {
	out := b.set()
	for _, t := range body.targets {
		if t.event == eventCreate {
			b.shadowed(out, t.Name)
			continue
		}
		for _, r := range b.byName[t.Name.Name] {
			if r.isIn(t.Schema) {
				r.effects(out, t.event, t.columns)
			}
		}
	}
	for _, call := range body.calls {
		for _, r := range b.calls[call.Name] {
			if isIn(r.Schema, call.Schema) {
				out.add(r.unguarded())
			}
		}
	}
	b.unnamed(out, body)
	for _, sequence := range body.sequences {
		b.setsSequence(out, sequence)
	}
	if b.why(body) != "" {
		b.writtenUnread(out, body)
	}
	if body.writesOwn() {
		out.put(b.own())
	}
	return out
}

// namesBeyondASCII reports whether a name or another word of the body has such letters.
func (r *routineBody) namesBeyondASCII() bool {
	for word := range r.words {
		if !sqltext.IsASCII(word) {
			return true
		}
	}
	return false
}

// why returns why a body isn't read, "" if it is.
func (b *closureBuilder) why(body *routineBody) string {
	if body.unread == "" && b.facts.folds && body.namesBeyondASCII() {
		return "has letters beyond ASCII, which a database whose encoding is not UTF8 may read otherwise in names"
	}
	if body.unread == "" && b.escapes && body.escapes {
		return "has a backslash, which other code has PostgreSQL read in another way by " + stringsSetting
	}
	return body.unread
}

// writtenUnread adds what a body may write that isn't read: each table that has no wall, and
// the sequences of tokens if it has the words by which they are set.
func (b *closureBuilder) writtenUnread(out tableSet, body *routineBody) {
	if b.making {
		out.put(0)
		return
	}
	for i, t := range b.tables {
		if b.chosen(i) && !t.HasWall {
			out.put(i)
		}
	}
	if body.has("setval") || body.has("sequence") && body.has("alter") {
		b.setsSequence(out, nil)
	}
	if body.has("alter") || body.has("drop") {
		words := maps.Clone(body.words)
		maps.Copy(words, body.said)
		b.setsSequence(out, words)
	}
}

// setsBySystemView reports whether a body updates the view pg_settings, or one over system
// catalogs: what it sets by that isn't told.
func (b *closureBuilder) setsBySystemView(body *routineBody) bool {
	return slices.ContainsFunc(body.targets, func(t bodyTarget) bool {
		return t.event == "UPDATE" && (t.Name.Name == "pg_settings" ||
			slices.ContainsFunc(b.facts.SystemViews, func(v catalogRelation) bool { return lowerASCII(v.Name) == t.Name.Name }))
	})
}

// writesOwn reports whether a body writes what the schema fencing has, or calls
// what changes it. A name without a schema counts if the body names that schema
// anywhere, as it does to set the search path.
func (r *routineBody) writesOwn() bool {
	if !r.has("fencing") {
		return false
	}
	// Sequences, functions and the schema itself have no trigger that could refuse this.
	changes := slices.ContainsFunc([]string{"alter", "drop", "truncate", "create"}, r.has)
	if r.has("write_epoch") && (changes || r.has("setval")) || changes && slices.ContainsFunc([]string{"schema", "function", "procedure", "routine", "trigger", "rule"}, r.has) {
		return true
	}
	isOwn := func(schema string) bool { return schema == "fencing" || schema == "" }
	for _, t := range r.targets {
		if t.Schema == "fencing" {
			return true
		}
		if isOwn(t.Schema) && check.IsFencingRelation(t.Name.Name) && t.event != eventCreate {
			return true
		}
	}
	for _, call := range r.calls {
		if isOwn(call.Schema) && check.IsFencingChange(call.Name) {
			return true
		}
	}
	if r.unread == "" {
		return false
	}
	isChange := func(word string) bool { return check.IsFencingRelation(word) || check.IsFencingChange(word) }
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.words)), isChange) || slices.ContainsFunc(slices.Collect(maps.Keys(r.said)), isChange)
}

// ownCallers returns the routines that write or call something by a bare name which
// the schema fencing has, too: their own, or through one that they call. What it
// means depends on the search path under which they run.
func (b *closureBuilder) ownCallers() (out []check.Name) {
	callers := make(map[string]bool)
	for grown := true; grown; {
		grown = false
		for i := range b.facts.Routines {
			r := b.routines[b.facts.Routines[i].OID]
			if name := lowerASCII(r.Name); !callers[name] && (r.body.namesOwn() || slices.ContainsFunc(r.body.calls, func(call check.Name) bool { return callers[call.Name] })) {
				callers[name], grown = true, true
			}
		}
	}
	for i := range b.facts.Routines {
		if r := b.routines[b.facts.Routines[i].OID]; callers[lowerASCII(r.Name)] {
			out = append(out, r.name())
		}
	}
	return unique(out)
}

// namesOwn reports whether a body writes or calls something by a bare name which
// the schema fencing has, too.
func (r *routineBody) namesOwn() bool {
	return slices.ContainsFunc(r.targets, func(t bodyTarget) bool {
		return t.Schema == "" && check.IsFencingRelation(t.Name.Name) && t.event != eventCreate
	}) || slices.ContainsFunc(r.calls, func(call check.Name) bool { return call.Schema == "" && check.IsFencingChange(call.Name) })
}

// isIn reports whether a schema is the one that a body names, or it names none.
func isIn(schema, named string) bool { return check.Name{Schema: lowerASCII(schema)}.IsIn(named) }

func (r *reachedRelation) isIn(named string) bool { return isIn(r.Schema, named) }

// shadowed adds the tables whose name a body gives to something else, in whatever
// schema: a later statement may then find that in their place. Without a name
// it is any, or any of the schema.
func (b *closureBuilder) shadowed(out tableSet, n check.Name) {
	if n.Name != "" {
		for _, r := range b.byName[n.Name] {
			r.all(out, false)
		}
		return
	}
	for _, r := range b.relations {
		if r.isIn(n.Schema) {
			r.all(out, false)
		}
	}
}

// all adds what any event on the relation writes.
func (r *reachedRelation) all(out tableSet, truncates bool) {
	out.add(r.family)
	out.add(r.over)
	for event, tables := range r.cascade {
		if event != "TRUNCATE" || truncates {
			out.add(tables)
		}
	}
	for event, tables := range r.code {
		if event != eventLike && event != eventEnable {
			out.add(tables)
		}
	}
}

// named returns what SQL that has these words could write.
func (b *closureBuilder) named(words map[string]bool) tableSet {
	out := b.set()
	for word := range words {
		for _, r := range b.byName[word] {
			r.all(out, words["cascade"])
		}
		for _, r := range b.calls[word] {
			out.add(r.unguarded())
		}
	}
	return out
}

// effects adds what an event on the relation writes.
func (r *reachedRelation) effects(out tableSet, event string, columns []string) {
	if event == eventLike { // the other table is written, not this one
		out.add(r.code[eventLike])
		return
	}
	out.add(r.family)
	out.add(r.over)
	if event == "" { // a change of structure
		out.add(r.code[eventEnable])
		return
	}
	for _, key := range r.keys(event, columns) {
		out.add(r.cascade[key])
		out.add(r.code[key])
	}
}
