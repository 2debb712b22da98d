package reach

import (
	"maps"
	"slices"

	"github.com/fencerow/fencerow/internal/check"
)

// makers returns what changes the catalog when it is used: routines whose bodies
// make objects, change or drop them, and what calls these. It is followed in the
// same way as what writes a table.
func (c *catalog) makers() check.Makers {
	if c.made == nil {
		c.made = new(check.Makers)
		for i := range c.Routines {
			if c.Routines[i].read().unread != "" {
				*c.made = c.followMakers()
				break
			}
		}
	}
	return *c.made
}

func (c *catalog) followMakers() (out check.Makers) {
	b := &closureBuilder{facts: c, tables: make([]Table, 1), chosen: func(int) bool { return false }, making: true}
	b.spread()
	makes := func(function oid) bool { return b.routines[function] != nil && !b.routines[function].writes.isEmpty() }
	for i := range c.Routines {
		if r := b.routines[c.Routines[i].OID]; !r.writes.isEmpty() {
			out.Functions = append(out.Functions, r.name())
		}
	}
	out.EventTriggers = slices.ContainsFunc(c.EventTriggers, makes)
	out.Unseen = len(b.unseenFound()) > 0
	for i := range c.Relations {
		if r := b.relations[c.Relations[i].OID]; r.makes() {
			out.Relations = append(out.Relations, check.Maker{Name: r.name(), Events: b.makingEvents(r)})
		}
	}
	out.Functions = unique(out.Functions)
	return out
}

// makes reports whether an event on the relation changes the catalog.
func (r *reachedRelation) makes() bool {
	for event, makers := range r.code {
		if event != eventLike && event != eventEnable && event != eventMove && !makers.isEmpty() {
			return true
		}
	}
	return false
}

// makingEvents returns the events on a relation that change the catalog. A row that
// an UPDATE moves to another partition is deleted and inserted.
func (b *closureBuilder) makingEvents(r *reachedRelation) (events []string) {
	for _, event := range slices.Sorted(maps.Keys(r.code)) {
		if event != eventLike && event != eventEnable && event != eventMove {
			events = append(events, event)
		}
	}
	isParent := slices.ContainsFunc(b.facts.Inherits, func(i [2]oid) bool { return i[1] == r.OID })
	if isParent && !slices.Contains(events, "UPDATE") && (slices.Contains(events, "INSERT") || slices.Contains(events, "DELETE")) {
		events = append(events, "UPDATE")
	}
	return events
}
