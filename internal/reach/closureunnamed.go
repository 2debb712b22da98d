package reach

import (
	"slices"

	"github.com/fencerow/fencerow/internal/check"
)

// Code also runs where nothing names it: a table's policies, indexes and
// statistics when the table is used, a view's query when it is read, an event
// trigger when a structure changes, and what belongs to no relation at any time.

// spreadUnnamed finds out what is written by reading a relation and by changing a
// structure, as far as is known by now.
func (b *closureBuilder) spreadUnnamed() {
	b.onRead, b.onChange = nil, b.set()
	for _, r := range b.relations {
		if !r.code[eventRead].isEmpty() {
			b.onRead = append(b.onRead, r)
		}
	}
	for _, f := range b.facts.EventTriggers {
		if r := b.routines[f]; r != nil {
			b.onChange.add(r.unguarded())
		}
	}
}

// uses notes what a routine writes that a table's default, column, policy, index
// or the like calls.
func (b *closureBuilder) uses(use catalogRead) {
	r, f := b.relations[use.Relation], b.routines[use.Function]
	if r == nil || f == nil {
		return
	}
	events := []string{"INSERT", "UPDATE", eventLike}
	switch use.Event {
	case "DELETE": // a policy's
		events = []string{"DELETE"}
	case eventRead:
		events = append(events, "DELETE", eventRefresh, eventRead)
	}
	for _, event := range events {
		b.addFor(r.code, event, f.unguarded())
	}
}

// unnamed adds what a body writes by reading a relation, by maintaining tables that
// it doesn't name and by changing a structure.
func (b *closureBuilder) unnamed(out tableSet, body *routineBody) {
	maintains := len(b.onRead) > 0 && hasAny(body.words, check.Maintainers())
	for _, r := range b.onRead {
		if maintains || body.words[lowerASCII(r.Name)] {
			out.add(r.code[eventRead])
		}
	}
	if b.facts.Owned && body.words["truncate"] && body.words["restart"] {
		b.setsSequence(out, nil)
	}
	if !b.onChange.isEmpty() && (hasAny(body.words, check.ChangeWords()) || slices.ContainsFunc(body.targets, func(t bodyTarget) bool { return t.event == eventCreate })) {
		out.add(b.onChange)
	}
}

// unseenFound returns the objects that belong to no relation and write a table
// which has no wall to judge that.
func (b *closureBuilder) unseenFound() (out []check.UnseenCode) {
	note := func(kind, object string, function check.Name, tables tableSet) {
		if i := b.unjudged(tables); i >= 0 {
			out = append(out, check.UnseenCode{Kind: kind, Object: object, Function: function, Into: b.tableName(i)})
		}
	}
	for _, h := range b.facts.Unseen {
		if f := b.routines[h.Function]; f != nil {
			note(h.Kind, h.Name, f.name(), f.unguarded())
		}
	}
	for _, e := range b.expressions {
		if e.Relation == 0 {
			note(e.Kind, e.Name, check.Name{Name: e.function()}, b.reachedBy(e))
		}
	}
	return out
}

// unjudged returns a table of a set that has no wall, -1 if there is none.
func (b *closureBuilder) unjudged(tables tableSet) int {
	for i := range tables.all {
		if i == b.own() || !b.tables[i].HasWall {
			return i
		}
	}
	return -1
}

func hasAny(words map[string]bool, list []string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return words[w] })
}
