package driver

import (
	"maps"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// relationsFound returns the closure's relations.
func (b *closureBuilder) relationsFound() rewrite.Closure {
	var out rewrite.Closure
	for i := range b.facts.Relations {
		r := b.relations[b.facts.Relations[i].OID]
		if of := sorted(r.family); len(of) > 0 && !b.isChosen(r.name()) {
			out.Relatives = append(out.Relatives, rewrite.Relative{Name: r.name(), Of: b.tableName(of[0])})
		}
		if len(r.over) > 0 {
			out.Views = append(out.Views, r.name())
		}
		out.Cascades = append(out.Cascades, b.cascadesOf(r)...)
		out.Writers = append(out.Writers, b.writersOf(r)...)
	}
	return out
}

// cascadesOf returns what foreign keys do to protected tables when the
// relation's rows change.
func (b *closureBuilder) cascadesOf(r *reachedRelation) (out []rewrite.Cascade) {
	all := tableSet{}
	for _, tables := range r.cascade {
		maps.Copy(all, tables)
	}
	for _, i := range sorted(all) {
		c := rewrite.Cascade{Name: r.name(), Into: b.tableName(i), ChildWall: b.tables[i].wall}
		for _, event := range slices.Sorted(maps.Keys(r.cascade)) {
			if !r.cascade[event][i] {
				continue
			}
			switch column, isUpdate := strings.CutPrefix(event, "UPDATE:"); {
			case isUpdate:
				c.UpdateOf = append(c.UpdateOf, column)
			case event == "DELETE":
				c.Delete = true
			case event == "TRUNCATE":
				c.Truncate = true
			}
		}
		out = append(out, c)
	}
	return out
}

// writersOf returns what triggers and rules write when the relation's rows
// change.
func (b *closureBuilder) writersOf(r *reachedRelation) (out []rewrite.Writer) {
	events := make(map[int][]string)
	for _, event := range slices.Sorted(maps.Keys(r.code)) {
		if event == eventRead {
			continue // no statement that reads is refused
		}
		for i := range r.code[event] {
			events[i] = append(events[i], event)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(events)) {
		out = append(out, rewrite.Writer{Name: r.name(), Into: b.tableName(i), Events: events[i]})
	}
	return out
}

// codeFound adds the closure's routines, and what calls them or guards tables.
func (b *closureBuilder) codeFound(out *rewrite.Closure) {
	writes := func(function oid) bool {
		return b.routines[function] != nil && len(b.routines[function].unguarded()) > 0
	}
	for i := range b.facts.Routines {
		if r := b.routines[b.facts.Routines[i].OID]; len(r.writes) > 0 {
			out.Functions = append(out.Functions, r.name())
		}
	}
	for _, o := range b.facts.Operators {
		if writes(o.Function) {
			out.Operators = append(out.Operators, rewrite.Name{Schema: o.Schema, Name: o.Name})
		}
	}
	for _, t := range b.facts.Types {
		if writes(t.Function) {
			out.Types = append(out.Types, rewrite.Name{Schema: t.Schema, Name: t.Name})
		}
	}
	for _, f := range b.facts.EventTriggers {
		if writes(f) {
			out.EventTriggers = append(out.EventTriggers, b.routines[f].name())
		}
	}
	for _, t := range b.facts.Triggers {
		r := b.relations[t.Relation]
		if r == nil || len(r.family) == 0 {
			continue
		}
		out.TriggerFunctions = append(out.TriggerFunctions, rewrite.Name{Schema: t.Schema, Name: t.Name})
		const row, before, insert = 1, 2, 4
		if t.Type&(row|before|insert) == row|before|insert && t.Schema != "fencing" {
			out.InsertTriggers = append(out.InsertTriggers, r.name())
		}
	}
	if b.facts.Epoch {
		out.Sequences = append(out.Sequences, rewrite.Name{Schema: "fencing", Name: "write_epoch"})
	}
	for i, t := range b.tables {
		if b.chosen(i) && t.issuedBy != (rewrite.Name{}) {
			out.Sequences = append(out.Sequences, t.issuedBy)
		}
	}
	for _, list := range []*[]rewrite.Name{&out.Functions, &out.Operators, &out.Types, &out.TriggerFunctions, &out.Sequences, &out.InsertTriggers} {
		*list = unique(*list)
	}
}

// unique sorts names, and keeps each once.
func unique(names []rewrite.Name) []rewrite.Name {
	slices.SortFunc(names, func(a, b rewrite.Name) int { return strings.Compare(a.Schema+"\x00"+a.Name, b.Schema+"\x00"+b.Name) })
	return slices.Compact(names)
}

func sorted(tables tableSet) []int { return slices.Sorted(maps.Keys(tables)) }

func (r *reachedRoutine) name() rewrite.Name { return rewrite.Name{Schema: r.Schema, Name: r.Name} }

func (r *reachedRelation) name() rewrite.Name {
	return rewrite.Name{Schema: r.Schema, Name: r.Name}
}

func (b *closureBuilder) tableName(i int) rewrite.Name {
	return rewrite.Name{Schema: b.tables[i].Schema, Name: b.tables[i].Name}
}

// isChosen reports whether a name is a chosen table's own.
func (b *closureBuilder) isChosen(n rewrite.Name) bool {
	for i := range b.tables {
		if b.chosen(i) && b.tableName(i) == n {
			return true
		}
	}
	return false
}
