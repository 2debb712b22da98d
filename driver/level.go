package driver

import (
	"fmt"
	"slices"

	"github.com/fencerow/fencerow/internal/reach"
	"github.com/fencerow/fencerow/rewrite"
)

// Level says how the driver holds a table, so that a code base can adopt it
// step by step. A registered table's level is in the registry; see
// [github.com/fencerow/fencerow/migrations.SetLevel].
type Level int

// The levels.
const (
	// Enforce refuses a statement that could write the table without a proven
	// guard. It is where a table starts.
	Enforce Level = iota
	// Report runs the statement as it is and reports what Enforce would have
	// refused; see [WithReporter]. Of a guarded write, too, the caller gets
	// what PostgreSQL says: stale and replay are reported only. What can't run
	// is refused still: tokenctx.Arg where the context has no token.
	Report
	// Off looks away. The token's place in a guarded statement is still found
	// for tokenctx.Arg.
	Off
)

var levelNames = []string{Enforce: "enforce", Report: "report", Off: "off"}

// String returns the level's name, as in the registry.
func (l Level) String() string {
	if l >= 0 && int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

func parseLevel(name string) (Level, error) {
	if i := slices.Index(levelNames, name); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("unknown level %q: choose off, report or enforce", name)
}

// WithLevel sets the level of tables that are named by [Protect] or
// [ProtectTable]. Their names are written as there.
func WithLevel(level Level, tables ...string) Option {
	return func(s *settings) error {
		if level < 0 || int(level) >= len(levelNames) {
			return fmt.Errorf("fencerow: WithLevel(%d): choose driver.Off, driver.Report or driver.Enforce", int(level))
		}
		for _, name := range tables {
			schema, table, err := splitName(name)
			if err != nil {
				return err
			}
			s.levels = append(s.levels, tableLevel{name, schema, table, level})
		}
		return nil
	}
}

// tableLevel is a level given by name, until all options are known.
type tableLevel struct {
	written, schema, table string
	level                  Level
}

// heldTable is a protected table with its level.
type heldTable struct {
	rewrite.Table
	level    Level
	wall     bool         // its own triggers judge what cascades into it
	issuedBy rewrite.Name // the sequence that its tokens come from, if it is known

	isRegistered bool // the database has it in its registry; code didn't name it
}

// reachTables returns what the closure of tables depends on. Those at one of the
// levels are chosen.
func reachTables(tables []heldTable, levels ...Level) []reach.Table {
	out := make([]reach.Table, len(tables))
	for i, t := range tables {
		out[i] = reach.Table{Schema: t.Schema, Name: t.Name, TokenColumn: t.TokenColumn, IsChosen: slices.Contains(levels, t.level), HasWall: t.wall, IssuedBy: t.issuedBy}
	}
	return out
}

func (t *heldTable) is(schema, name string) bool {
	return t.Name == name && orPublic(t.Schema) == orPublic(schema)
}

// setLevels gives the tables the levels that were named for them.
func (s *settings) setLevels() error {
	for _, l := range s.levels {
		i := slices.IndexFunc(s.tables, func(t heldTable) bool { return t.is(l.schema, l.table) })
		if i < 0 {
			return fmt.Errorf("fencerow: WithLevel: table %s is not protected by this program: name it with Protect, or set a registered table's level with migrations.SetLevel", l.written)
		}
		s.tables[i].level = l.level
	}
	return nil
}

func orPublic(schema string) string {
	if schema == "" {
		return "public"
	}
	return schema
}
