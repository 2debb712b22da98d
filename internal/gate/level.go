package gate

import (
	"fmt"
	"slices"
)

// Level says how a table is held. Package driver exports the levels, and says what
// each means.
type Level int

// The levels, the stricter first.
const (
	Enforce Level = iota
	Report
	Off
)

var levelNames = []string{Enforce: "enforce", Report: "report", Off: "off"}

// String returns the level's name, as in the registry.
func (l Level) String() string {
	if IsLevel(l) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// IsLevel reports whether there is such a level.
func IsLevel(l Level) bool { return l >= 0 && int(l) < len(levelNames) }

// ParseLevel reads a level's name, as in the registry.
func ParseLevel(name string) (Level, error) {
	if i := slices.Index(levelNames, name); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("unknown level %q: choose off, report or enforce", name)
}
