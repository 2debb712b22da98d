package lint

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/rewrite"
)

// coverage counts the statements that wrote each protected table.
type coverage struct {
	mu     sync.Mutex
	tables map[string]map[statementKey]*statementCoverage
}

type statementKey struct{ place, sql string }

// statementCoverage counts the outcomes of a statement at one place.
type statementCoverage struct {
	Place    string `json:"place"`
	Kind     string `json:"kind"`
	SQL      string `json:"sql"`
	Accepted int    `json:"accepted"` // it ended without an error
	Reported int    `json:"reported"` // and was sent
	Stale    int    `json:"stale"`
	Replay   int    `json:"replay"`
	Refused  int    `json:"refused"`
	Failed   int    `json:"failed"` // by another error
}

// tableCoverage is a table with the statements that write it.
type tableCoverage struct {
	Table      string               `json:"table"`
	Written    bool                 `json:"written"`
	Statements []*statementCoverage `json:"statements"`
}

func newCoverage() *coverage {
	return &coverage{tables: make(map[string]map[statementKey]*statementCoverage)}
}

func (c *coverage) observer() driver.Observer {
	return driver.Observer{Tables: c.addTables, Event: c.countEvent, After: c.countSent}
}

func (c *coverage) addTables(tables []rewrite.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tables {
		c.statementsOf(t.String())
	}
}

func (c *coverage) statementsOf(name string) map[statementKey]*statementCoverage {
	if c.tables[name] == nil {
		c.tables[name] = make(map[statementKey]*statementCoverage)
	}
	return c.tables[name]
}

// countEvent counts a statement that was refused or reported. Only its text is known.
func (c *coverage) countEvent(_ context.Context, e driver.Event) {
	if !shownCoverage.isOn() || e.Table == "" || violationOf(e) == nil {
		return
	}
	kind, _, _ := strings.Cut(e.SQL, " ")
	c.count(e.Table, e.Location, strings.ToUpper(kind), e.SQL, func(s *statementCoverage) {
		if e.Kind == driver.EventReported {
			s.Reported++
		} else {
			s.Refused++
		}
	})
}

// countSent counts a guarded statement that was sent.
func (c *coverage) countSent(_ context.Context, op driver.Operation, err error) {
	if !shownCoverage.isOn() || errors.Is(err, rewrite.ErrRefused) { // the wall refused it, and countEvent counts that
		return
	}
	if len(op.Writes) == 0 {
		return
	}
	var partial *driver.PartialError
	text, counted := check.Redact(op.SQL), make(map[string]bool)
	for _, w := range op.Writes {
		table := w.Table.String()
		if counted[table] {
			continue
		}
		counted[table] = true
		c.count(table, op.Location, w.Kind, text, func(s *statementCoverage) {
			switch {
			case err == nil, errors.As(err, &partial):
				s.Accepted++
			case errors.Is(err, driver.ErrStale):
				s.Stale++
			case errors.Is(err, driver.ErrReplay):
				s.Replay++
			default:
				s.Failed++
			}
		})
	}
}

func (c *coverage) count(table, place, kind, sql string, add func(*statementCoverage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	statements, key := c.statementsOf(table), statementKey{place, shorten(sql)}
	if statements[key] == nil {
		statements[key] = &statementCoverage{Place: place, Kind: kind, SQL: key.sql}
	}
	add(statements[key])
}
