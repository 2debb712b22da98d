package gate

import (
	"slices"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/reach"
)

// Table is a protected table with its level.
type Table struct {
	check.Table
	Level    Level
	HasWall  bool       // its own triggers judge what cascades into it
	IssuedBy check.Name // the sequence that its tokens come from, if it is known

	IsRegistered bool // the database has it in its registry; code didn't name it
}

// ReachTables returns what the closure of tables depends on. Those at one of the
// levels are chosen.
func ReachTables(tables []Table, levels ...Level) []reach.Table {
	out := make([]reach.Table, len(tables))
	for i, t := range tables {
		out[i] = reach.Table{Schema: t.Schema, Name: t.Name, TokenColumn: t.TokenColumn, IsChosen: slices.Contains(levels, t.Level), HasWall: t.HasWall, IssuedBy: t.IssuedBy}
	}
	return out
}

// Is reports whether the table has the name. No schema stands for public.
func (t *Table) Is(schema, name string) bool {
	return t.Name == name && OrPublic(t.Schema) == OrPublic(schema)
}

// SameTables reports whether two registries say the same.
func SameTables(a, b []Table) bool {
	return slices.EqualFunc(a, b, func(x, y Table) bool {
		return x.Schema == y.Schema && x.Name == y.Name && x.TokenColumn == y.TokenColumn && x.Mode == y.Mode &&
			x.Resource == y.Resource && x.Level == y.Level && x.HasWall == y.HasWall && x.Attested == y.Attested && x.Moves == y.Moves && x.Rewrite == y.Rewrite && x.Unfit == y.Unfit && slices.Equal(x.Key, y.Key) &&
			slices.EqualFunc(x.Keys, y.Keys, slices.Equal) && x.DropsRows == y.DropsRows
	})
}

// OrPublic returns the schema of a table that is named with it, or without one.
func OrPublic(schema string) string {
	if schema == "" {
		return "public"
	}
	return schema
}
