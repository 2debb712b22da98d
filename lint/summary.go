package lint

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

// coverageFlag is the form in which the coverage is shown. It may be read before the
// command line has been parsed.
type coverageFlag struct{ atomic.Int32 }

const (
	hidden int32 = iota
	asText
	asJSON
)

var shownCoverage coverageFlag

var coverageForms = map[string]int32{"": hidden, "0": hidden, "false": hidden, "1": asText, "true": asText, "json": asJSON}

// Only test binaries get the flag.
func init() {
	if !testing.Testing() {
		return
	}
	if err := shownCoverage.Set(os.Getenv("FENCEROW_COVERAGE")); err != nil {
		fmt.Fprintln(os.Stderr, "FENCEROW_COVERAGE:", err)
	}
	flag.Var(&shownCoverage, "fencerow.coverage", "show what the tests wrote of each protected table; =json shows it as JSON")
}

// IsBoolFlag lets the flag stand without a value.
func (f *coverageFlag) IsBoolFlag() bool { return true }

// Set takes the value of the flag.
func (f *coverageFlag) Set(value string) error {
	form, ok := coverageForms[value]
	if !ok {
		return errors.New("give it no value, or json")
	}
	f.Store(form)
	return nil
}

// String returns the form's name.
func (f *coverageFlag) String() string { return []string{"", "true", "json"}[f.Load()] }

func (f *coverageFlag) isOn() bool { return f.Load() != hidden }

// sorted returns the tables by name, with their statements by place.
func (c *coverage) sortedTables() []tableCoverage {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []tableCoverage{}
	for _, name := range slices.Sorted(maps.Keys(c.tables)) {
		t := tableCoverage{Table: name, Statements: []*statementCoverage{}}
		for _, counted := range c.tables[name] {
			s := *counted // statements may still be counted
			t.Statements = append(t.Statements, &s)
			t.Written = t.Written || s.Accepted+s.Reported > 0
		}
		slices.SortFunc(t.Statements, func(a, b *statementCoverage) int {
			pathA, lineA := splitLocation(a.Place)
			pathB, lineB := splitLocation(b.Place)
			return cmp.Or(cmp.Compare(pathA, pathB), cmp.Compare(lineA, lineB), cmp.Compare(a.SQL, b.SQL))
		})
		out = append(out, t)
	}
	return out
}

// format returns the coverage in a form, with a line break at its end.
func (c *coverage) format(form int32) string {
	if form == hidden {
		return ""
	}
	tables, written := c.sortedTables(), 0
	var b strings.Builder
	if form == asJSON {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(struct {
			Tables []tableCoverage `json:"protected_tables"`
		}{tables})
		return b.String()
	}
	if len(tables) == 0 {
		return "fencerow coverage: these tests used no handle of fencerow's with a protected table\n"
	}
	for _, t := range tables {
		if t.Written {
			written++
			fmt.Fprintf(&b, "%s:\n", t.Table)
		} else {
			fmt.Fprintf(&b, "%s: never written by these tests\n", t.Table)
		}
		for _, s := range t.Statements {
			fmt.Fprintf(&b, "  %s\n", s)
		}
	}
	return fmt.Sprintf("fencerow coverage: %d of %d protected tables written\n%s", written, len(tables), b.String())
}

// String returns the counts on a line and the text on another.
func (s *statementCoverage) String() string {
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{{s.Accepted, "accepted"}, {s.Reported, "reported"}, {s.Stale, "stale"}, {s.Replay, "replay"}, {s.Refused, "refused"}, {s.Failed, "failed"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return fmt.Sprintf("%s: %s\n      %s", cmp.Or(s.Place, "unknown place"), strings.TrimSpace(s.Kind+" "+strings.Join(counts, ", ")), cmp.Or(s.SQL, "(not shown: its literals are unknown)"))
}

// maxShown is how much of a statement is shown, in bytes.
const maxShown = 160

func shorten(sql string) string {
	if len(sql) <= maxShown {
		return sql
	}
	end := maxShown
	for !utf8.RuneStart(sql[end]) {
		end--
	}
	return sql[:end] + " ..."
}
