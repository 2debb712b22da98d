package check

import (
	"time"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// Counts is what happened in a run.
type Counts struct {
	Time      time.Duration
	Faults    map[string]int // by kind
	Ops       int
	Grants    int // tokens, with leases and without
	TakeOvers int // leases taken by another while their holder was paused
	Accepted  int // writes and inserts
	Present   int // writes and inserts of present holders of a lease
	Reads     int
	Stale     int // writes under leases that were rejected as stale
	Late      int // and in mode strict
	Replays   int
	Refused   int // for certain not applied, for another reason
	Unknown   int // writes and inserts
	Lost      int // acknowledged, and lost by an asynchronous failover
	Forgotten int // told to be replays, of a write that a failover lost
}

// Count counts.
func Count(h *history.History) Counts {
	e := newEvidence(h)
	c := Counts{Time: time.Duration(h.End), Faults: make(map[string]int), Ops: len(h.Ops), Lost: len(e.gone), Forgotten: e.forgotten, TakeOvers: takeOvers(h)}
	for _, f := range h.Faults {
		c.Faults[f.Kind]++
	}
	all := e.claims()
	for _, op := range h.Ops {
		changes := op.Raises() || op.Enters()
		if isUnderLease(op) && (op.Outcome == history.OK || op.Outcome == history.Stale) && e.isPresent(op, all) {
			c.Present++
		}
		switch {
		case op.Grants():
			c.Grants++
		case op.Kind == history.Read && op.Outcome == history.OK:
			c.Reads++
		case !changes:
		case op.Outcome == history.OK:
			c.Accepted++
		case op.Outcome == history.Stale && op.Kind == history.Strict:
			c.Late++
		case op.Outcome == history.Stale:
			c.Stale++
		case op.Outcome == history.Replay:
			c.Replays++
		case op.Outcome == history.Unknown:
			c.Unknown++
		default:
			c.Refused++
		}
	}
	return c
}

// perTakeOver is the time in which at least one lease must be taken over.
const perTakeOver = 10 * time.Second

// Exercised says what a run lacks to count, "" if nothing.
func (c Counts) Exercised() string {
	switch {
	case c.TakeOvers < 1 || c.TakeOvers < int(c.Time/perTakeOver):
		return "too few leases were taken over while their holders were paused: it takes one in 10 seconds"
	case c.Stale < c.TakeOvers:
		return "too few writes were rejected as stale: it takes as many as there were take-overs"
	}
	return ""
}

// takeOvers counts the leases whose holder was paused when another took them.
func takeOvers(h *history.History) int {
	takes := make(map[string][]history.Op)
	released := make(map[int64]int64) // by token: when that was asked for
	for _, op := range h.Ops {
		switch {
		case op.Kind == history.Take && op.Outcome == history.OK:
			takes[op.Resource] = append(takes[op.Resource], op)
		case op.Kind == history.Release:
			if at, ok := released[op.Token]; !ok || op.Call < at {
				released[op.Token] = op.Call
			}
		}
	}
	n := 0
	for _, f := range h.Faults {
		if f.Kind != pauses {
			continue
		}
		for _, ops := range takes {
			if takenOver(ops, f, released) {
				n++
			}
		}
	}
	return n
}

// pauses is the kind of the faults that are pauses.
const pauses = "pause"

// takenOver reports whether a pause had another take the resource of these
// leases.
func takenOver(takes []history.Op, pause history.Fault, released map[int64]int64) bool {
	var holder history.Op
	for _, op := range takes {
		if op.End < pause.Start && op.Token > holder.Token {
			holder = op
		}
	}
	if at, ok := released[holder.Token]; holder.Worker != pause.Worker || ok && at < pause.Start {
		return false
	}
	for _, op := range takes {
		if op.Worker != pause.Worker && op.Token > holder.Token && op.End > pause.Start && op.End < pause.End {
			return true
		}
	}
	return false
}
