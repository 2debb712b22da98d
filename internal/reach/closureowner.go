package reach

import (
	"slices"

	"github.com/fencerow/fencerow/internal/check"
)

// A sequence that belongs to a column goes with it, and so does one in a schema that is dropped.

// dropsOwner adds the tables whose tokens come from a sequence that a relation takes along when it
// is dropped.
func (b *closureBuilder) dropsOwner(out tableSet, relation check.Name) {
	for _, o := range b.facts.Owners {
		if lowerASCII(o.Name) == relation.Name && isIn(o.Schema, relation.Schema) {
			b.setsSequence(out, map[string]bool{lowerASCII(o.Sequence.Name): true})
		}
	}
}

// dropsUnnamed adds the tables whose tokens come from a sequence that a body may drop without naming it,
// where the body isn't read: with its table or that table's column, with its schema, or with all
// that a role owns.
func (b *closureBuilder) dropsUnnamed(out tableSet, body *routineBody) {
	if body.has("drop") && (body.has("owned") || body.has("schema") && body.has("cascade")) {
		for i, t := range b.tables {
			if b.chosen(i) && t.IssuedBy != (check.Name{}) {
				out.put(i)
			}
		}
	}
	if body.has("table") {
		for _, o := range b.facts.Owners {
			b.setsSequence(out, map[string]bool{lowerASCII(o.Sequence.Name): true})
		}
	}
}

// dropsType adds the tables with columns of a relation's row type, which a DROP ... CASCADE of it drops.
func (b *closureBuilder) dropsType(out tableSet, relation check.Name, cascades bool) {
	isType := func(n check.Name) bool { return lowerASCII(n.Name) == relation.Name && isIn(n.Schema, relation.Schema) }
	if !cascades || !slices.ContainsFunc(b.facts.Types, isType) {
		return
	}
	for i := range b.tables {
		if b.chosen(i) {
			out.put(i)
		}
	}
}
