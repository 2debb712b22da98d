package reach

import (
	"slices"

	"github.com/fencerow/fencerow/internal/check"
)

// A routine whose body isn't read counts for every table without a wall, and so does
// whatever calls or fires it. For messages it is told which routine that is.

// findUnread finds for each routine and relation a routine whose body isn't read and by
// which it may write.
func (b *closureBuilder) findUnread() {
	for i := range b.facts.Routines {
		if r := b.routines[b.facts.Routines[i].OID]; b.why(r.body) != "" {
			r.unread = r
		}
	}
	for b.changed = true; b.changed; {
		b.changed = false
		for i := range b.facts.Routines {
			r := b.routines[b.facts.Routines[i].OID]
			for _, call := range r.body.calls {
				for _, f := range b.calls[call.Name] {
					b.noteUnread(&r.unread, f.by())
				}
			}
			for _, t := range r.body.targets {
				for _, relation := range b.byName[t.Name.Name] {
					b.noteUnread(&r.unread, relation.unread)
				}
			}
		}
		for _, call := range b.facts.Calls {
			if r := b.routines[call[0]]; r != nil {
				b.noteUnread(&r.unread, b.routines[call[1]].by())
			}
		}
		b.findUnreadRelations()
	}
}

// findUnreadRelations does the same for what belongs to relations.
func (b *closureBuilder) findUnreadRelations() {
	note := func(relation, function oid) {
		if r := b.relations[relation]; r != nil {
			b.noteUnread(&r.unread, b.routines[function].by())
		}
	}
	for _, t := range slices.Concat(b.facts.Triggers, b.facts.Conditions) {
		note(t.Relation, t.Function)
	}
	for _, r := range slices.Concat(b.facts.Reads, b.facts.Uses) {
		note(r.Relation, r.Function)
	}
	for _, v := range slices.Concat(b.facts.Views, b.facts.Stored) {
		if base, view := b.relations[v[0]], b.relations[v[1]]; base != nil && view != nil {
			b.noteUnread(&view.unread, base.unread)
		}
	}
}

func (b *closureBuilder) noteUnread(to **reachedRoutine, by *reachedRoutine) {
	if *to == nil && by != nil {
		*to, b.changed = by, true
	}
}

// by returns the routine by whose body, which isn't read, a call of this one may
// write.
func (r *reachedRoutine) by() *reachedRoutine {
	if r == nil || r.guarded {
		return nil
	}
	return r.unread
}

// unreadFound returns the routines that may write by a body that isn't read.
func (b *closureBuilder) unreadFound() (out []check.UnreadRoutine) {
	for i := range b.facts.Routines {
		r := b.routines[b.facts.Routines[i].OID]
		if u := b.unreadBy(r.unread, r.writes); u != nil {
			u.Name = r.name()
			out = append(out, *u)
		}
	}
	return out
}

// unreadBy says for messages by which routine one of the tables may be written, nil if
// it isn't by one whose body isn't read.
func (b *closureBuilder) unreadBy(by *reachedRoutine, tables tableSet) *check.UnreadRoutine {
	i := b.unjudged(tables)
	if by == nil || i < 0 || i == b.own() {
		return nil
	}
	return &check.UnreadRoutine{By: by.name(), Signature: by.Signature, Why: b.why(by.body), Into: b.tableName(i)}
}
