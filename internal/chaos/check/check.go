// Package check judges a history. Each check is a function from a history to
// the violations that it shows; [All] runs them all:
//
//	for _, v := range check.All(h) {
//		fmt.Println(v)
//	}
//
// The checks don't trust each other's witness where they can do without: some
// look only at what the workers were told and when, some only at the order in
// which the database says that it took the writes, some hold one against the
// other.
package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// Violation is a broken promise.
type Violation struct {
	Check string // the name of the check
	What  string
	Ops   []history.Op // that show it, if there are any
}

// String is the violation with its operations, one a line.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Check, v.What)
	for _, op := range v.Ops {
		fmt.Fprintf(&b, "\n    %s", describe(op))
	}
	return b.String()
}

// Check is one of the checks.
type Check struct {
	Name string
	Doc  string
	run  func(*evidence) []Violation
}

// Checks are all checks.
func Checks() []Check {
	return []Check{
		{"tokens", "a token that was granted is larger than each that was granted before it was asked for", tokens},
		{"leases", "in the database's own order the tokens of a resource's leases rise", leases},
		{"chain", "each accepted write of a row follows the one before, and its token is no older; in mode strict it is newer", chain},
		{"accepted", "what the database took was sent, once, under this token, and its sender was not told that it was rejected", accepted},
		{"lost", "what was acknowledged is there, unless an asynchronous failover lost it", lost},
		{"order", "no write of an older holder is acknowledged that was sent after a newer holder's was", order},
		{"sealed", "of sealed tables: no write of an older holder is acknowledged that was sent after a newer holder had its lease", sealed},
		{"updates", "between a holder's look at a row and its write no other holder wrote", updates},
		{"rejected", "what was rejected as stale was late: somebody had sent a newer token", rejected},
		{"alarms", "no write was rejected as stale while its sender was the present holder of its lease", alarms},
		{"register", "each row is a linearizable register", registers},
	}
}

// All runs all checks, or those that are named.
func All(h *history.History, names ...string) []Violation {
	e := newEvidence(h)
	var all []Violation
	for _, c := range Checks() {
		if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		}
		for _, v := range c.run(e) {
			v.Check = c.Name
			all = append(all, v)
		}
	}
	return all
}

// evidence is a history with what several checks look up in it.
type evidence struct {
	*history.History
	ops    map[int64]history.Op
	kept   map[int64]bool            // operations in the database's record
	rows   map[int64][]history.Write // by row, in the database's order
	gone   map[int64]bool            // acknowledged, and lost by a failover that may lose
	missed []history.Op              // acknowledged, and lost for no reason

	forgotten int         // replays of a write that a failover lost
	replays   []Violation // and of one that is not there for no reason
}

func newEvidence(h *history.History) *evidence {
	e := &evidence{
		History: h, ops: make(map[int64]history.Op, len(h.Ops)), kept: make(map[int64]bool, len(h.Writes)),
		rows: make(map[int64][]history.Write), gone: make(map[int64]bool),
	}
	for _, op := range h.Ops {
		e.ops[op.ID] = op
	}
	for _, w := range h.Writes {
		e.kept[w.Op] = true
		e.rows[w.Row] = append(e.rows[w.Row], w)
	}
	for _, writes := range e.rows {
		slices.SortStableFunc(writes, func(a, b history.Write) int { return int(a.Seq - b.Seq) })
	}
	for _, entry := range h.Entries {
		e.kept[entry.Op] = true
	}
	for _, op := range h.Ops {
		switch {
		case op.Outcome != history.OK || e.kept[op.ID] || !op.Raises() && !op.Enters():
		case e.mayLose(op):
			e.gone[op.ID] = true
		default:
			e.missed = append(e.missed, op)
		}
	}
	e.judgeReplays()
	return e
}

// mayLose reports whether one of the failovers may have lost an operation that
// was acknowledged. A synchronous one must not.
func (e *evidence) mayLose(op history.Op) bool { return !e.Sync && e.meetsFailover(op) }

// meetsFailover reports whether the standby may have lacked what the operation
// did when it was promoted.
func (e *evidence) meetsFailover(op history.Op) bool {
	return slices.ContainsFunc(e.Failovers, func(f history.Failover) bool { return op.Call < f.Up && op.End > f.Hold })
}

func violation(what string, ops ...history.Op) Violation { return Violation{What: what, Ops: ops} }

func describe(op history.Op) string {
	end := "..."
	if op.End != history.Never {
		end = fmt.Sprintf("%.6f", seconds(op.End))
	}
	s := fmt.Sprintf("%.6f-%s %s %s", seconds(op.Call), end, op.Kind, op.Outcome)
	field := func(name string, v int64) {
		if v != 0 {
			s += fmt.Sprintf(" %s=%d", name, v)
		}
	}
	field("op", op.ID)
	field("row", op.Row)
	field("token", op.Token)
	field("value", op.Value)
	field("base", op.Base)
	field("current", op.Current)
	if op.Resource != "" {
		s += " " + op.Resource
	}
	if op.Client != "" {
		s += " by " + op.Client
	}
	if op.Err != "" {
		s += ": " + op.Err
	}
	return s
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
