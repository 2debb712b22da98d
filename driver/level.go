package driver

import (
	"fmt"
	"slices"

	"github.com/fencerow/fencerow/internal/gate"
)

// Level says how the driver holds a table, so that a code base can adopt it
// step by step. A registered table's level is in the registry; see
// [github.com/fencerow/fencerow/migrations.SetLevel].
type Level = gate.Level

// The levels.
const (
	// Enforce refuses a statement that could write the table without a proven
	// guard. It is where a table starts.
	Enforce = gate.Enforce
	// Report runs the statement as it is and reports what Enforce would have
	// refused; see [WithReporter]. Of a guarded write, too, the caller gets
	// what PostgreSQL says: stale and replay are reported only. What can't run
	// is refused still: tokenctx.Arg where the context has no token.
	Report = gate.Report
	// Off looks away. The token's place in a guarded statement is still found
	// for tokenctx.Arg.
	Off = gate.Off
)

// WithLevel sets the level of tables that are named by [Protect] or
// [ProtectTable]. Their names are written as there.
func WithLevel(level Level, tables ...string) Option {
	return func(s *settings) error {
		if !gate.IsLevel(level) {
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

// setLevels gives the tables the levels that were named for them.
func (s *settings) setLevels() error {
	for _, l := range s.levels {
		i := slices.IndexFunc(s.tables, func(t gate.Table) bool { return t.Is(l.schema, l.table) })
		if i < 0 {
			return fmt.Errorf("fencerow: WithLevel: table %s is not protected by this program: name it with Protect, or set a registered table's level with migrations.SetLevel", l.written)
		}
		s.tables[i].Level = l.level
	}
	return nil
}
