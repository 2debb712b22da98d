package compat

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

var printTable = flag.Bool("table", false, "print what works with what")

// table is what has come out: for each operation and library, and each state,
// the settings in which it was otherwise than it must be.
type table struct {
	mu      sync.Mutex
	columns []string
	ops     []string
	cells   map[[2]string]map[string]*cell // by operation and column, then state
}

type cell struct {
	kind   kind
	goesOn bool
	failed []string
}

func newTable() *table { return &table{cells: make(map[[2]string]map[string]*cell)} }

func (t *table) note(column string, o op, state, setting string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
	if !slices.Contains(t.ops, o.name) {
		t.ops = append(t.ops, o.name)
	}
	at := [2]string{o.name, column}
	if t.cells[at] == nil {
		t.cells[at] = make(map[string]*cell)
	}
	c := t.cells[at][state]
	if c == nil {
		c = &cell{kind: o.kind, goesOn: o.goesOn}
		t.cells[at][state] = c
	}
	if !ok && !slices.Contains(c.failed, setting) {
		c.failed = append(c.failed, setting)
	}
}

// show is how a cell is printed: what the program is told.
func show(state string, c *cell) string {
	switch {
	case c == nil:
		return "-"
	case len(c.failed) > 0:
		return "FAILS (" + strings.Join(c.failed, ", ") + ")"
	case state == "holder" || c.kind == reads:
		return "ok"
	case state == "no token":
		return "ErrNoToken"
	case c.kind == inserts:
		return "n/a"
	case state == "replay":
		return "ErrReplay"
	case c.kind == hides:
		return "0 rows"
	}
	return "ErrStale"
}

// print prints one line for each operation. What stands in it has been tested.
func (t *table) print(tb testing.TB) {
	if !*printTable {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	slices.SortFunc(t.columns, func(a, b string) int {
		return slices.IndexFunc(libraries, isColumn(a)) - slices.IndexFunc(libraries, isColumn(b))
	})
	fmt.Fprintln(w, "operation\t| "+strings.Join(t.columns, " holder\tstale\tstrict\tno token\t| ")+" holder\tstale\tstrict\tno token")
	for _, name := range t.ops {
		line := name
		for _, column := range t.columns {
			line += "\t| "
			for i, state := range states {
				if i > 0 {
					line += "\t"
				}
				line += show(state.name, t.cells[[2]string{name, column}][state.name])
			}
		}
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		tb.Error(err)
	}
}

func isColumn(name string) func(library) bool {
	return func(l library) bool { return l.column == name }
}
