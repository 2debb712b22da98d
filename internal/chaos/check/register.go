package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// registerTimeout bounds the look at one row. What can't be told in that time
// counts as a violation.
const registerTimeout = 20 * time.Second

// step is an operation on a register. A failover is one, too: it writes what
// the new primary had when nobody had yet been let in.
type step struct {
	write bool
	value int64
}

// register is a register that starts at 0.
var register = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		s := input.(step)
		if s.write {
			return true, s.value
		}
		return state.(int64) == s.value, state
	},
}

func registers(e *evidence) []Violation {
	var found []Violation
	ops := make(map[int64][]history.Op)
	for _, op := range e.Ops {
		if op.Raises() || op.Kind == history.Read {
			ops[op.Row] = append(ops[op.Row], op)
		}
	}
	restored := e.restored()
	for _, row := range slices.Sorted(maps.Keys(ops)) {
		var input []porcupine.Operation
		all := slices.Concat(ops[row], restored(row))
		for _, op := range settle(all) {
			s := step{write: op.Writes() || op.Kind == restore, value: op.Value}
			if op.Writes() {
				s.value = op.ID
			}
			input = append(input, porcupine.Operation{Input: s, Call: op.Call, Return: op.End})
		}
		switch porcupine.CheckOperationsTimeout(register, input, registerTimeout) {
		case porcupine.Illegal:
			found = append(found, violation(fmt.Sprintf("row %d: its %d operations are those of no register", row, len(input)), suspects(all)...))
		case porcupine.Unknown:
			found = append(found, violation(fmt.Sprintf("row %d: its %d operations could not be checked in %v", row, len(input), registerTimeout)))
		}
	}
	return found
}

// restore is the kind of the operations that stand for failovers.
const restore history.Kind = "restore"

// restored returns what gives the failovers' operations on a row: a write by
// the server, and at the end of the run a read.
func (e *evidence) restored() func(row int64) []history.Op {
	at := make([]map[int64]int64, len(e.Failovers))
	for i, f := range e.Failovers {
		at[i] = values(f.State)
	}
	final := values(e.Final)
	return func(row int64) []history.Op {
		var ops []history.Op
		for i, f := range e.Failovers {
			ops = append(ops, history.Op{Kind: restore, Row: row, Value: at[i][row], Call: f.Kill, End: f.Up, Outcome: history.OK})
		}
		return append(ops, history.Op{Kind: history.Read, Row: row, Value: final[row], Call: e.End, End: e.End + 1, Outcome: history.OK})
	}
}

func values(states []history.State) map[int64]int64 {
	m := make(map[int64]int64, len(states))
	for _, s := range states {
		m[s.Row] = s.Value
	}
	return m
}

// settle returns the operations that have an effect or have seen one. A write
// whose outcome is unknown, and whose value nobody has seen, may as well have
// come last or never, so it is left out; one that was seen had happened when the
// first who saw it was told. That says the same as leaving it open for ever, and
// is quickly checked.
func settle(ops []history.Op) []history.Op {
	seen := make(map[int64]int64) // by value: the end of the first that saw it
	for _, op := range ops {
		if sees := op.Kind == history.Read || op.Kind == history.Claim || op.Kind == restore; sees && op.Outcome == history.OK {
			if end, ok := seen[op.Value]; !ok || op.End < end {
				seen[op.Value] = op.End
			}
		}
	}
	var settled []history.Op
	for _, op := range ops {
		end, ok := seen[op.ID]
		switch {
		case op.Outcome == history.OK:
		case op.Outcome == history.Unknown && op.Writes() && ok:
			op.End = max(end, op.Call)
		default:
			continue
		}
		if op.Kind == restore || op.Writes() || op.Kind == history.Read || op.Kind == history.Claim {
			settled = append(settled, op)
		}
	}
	return settled
}

// suspects are the reads of a row that saw something else than the newest
// write that had ended before them, and what overlaps none: a place to look
// first.
func suspects(ops []history.Op) []history.Op {
	const most = 6
	byID := make(map[int64]history.Op)
	for _, op := range ops {
		byID[op.ID] = op
	}
	var found []history.Op
	for _, op := range ops {
		if op.Kind != history.Read && op.Kind != history.Claim || op.Outcome != history.OK || len(found) >= most {
			continue
		}
		wrote := byID[op.Value]
		for _, w := range ops {
			if w.Writes() && w.Outcome == history.OK && w.Call > wrote.End && w.End < op.Call {
				found = append(found, wrote, w, op)
				break
			}
		}
	}
	return found
}
