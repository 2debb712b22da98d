package driver

import (
	"slices"

	"github.com/fencerow/fencerow/rewrite"
)

// Code also runs where nothing names it: a table's policies, indexes and
// statistics when the table is used, a view's query when it is read, an event
// trigger when a structure changes.

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
		b.addFor(r.code, event, f.fromAnywhere())
	}
}

// changeWords begin statements that change a structure, and so may run an event
// trigger.
var changeWords = []string{"create", "alter", "drop", "comment", "grant", "revoke", "refresh", "reindex", "security", "import", "reassign"}

// unnamed adds what a body writes by reading a relation, by maintaining tables that
// it doesn't name and by changing a structure.
func (b *closureBuilder) unnamed(out tableSet, body *routineBody) {
	maintains := len(b.onRead) > 0 && hasAny(body.words, rewrite.Maintainers())
	for _, r := range b.onRead {
		if maintains || body.words[lowerASCII(r.Name)] {
			out.add(r.code[eventRead])
		}
	}
	if !b.onChange.isEmpty() && (hasAny(body.words, changeWords) || slices.ContainsFunc(body.targets, func(t bodyTarget) bool { return t.event == eventCreate })) {
		out.add(b.onChange)
	}
}

// unseenFound adds the objects that run a writing function where no statement shows
// it.
func (b *closureBuilder) unseenFound(out *rewrite.Closure) {
	for _, h := range b.facts.Unseen {
		f := b.routines[h.Function]
		if f == nil {
			continue
		}
		if i := f.fromAnywhere().next(0); i >= 0 {
			out.Unseen = append(out.Unseen, rewrite.UnseenCode{Kind: h.Kind, Object: h.Name, Function: f.name(), Into: b.tableName(i)})
		}
	}
}

func hasAny(words map[string]bool, list []string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return words[w] })
}
