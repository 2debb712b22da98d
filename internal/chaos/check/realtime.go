package check

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// newestBefore yields each operation with the one of the largest token among
// those that had ended before it was called.
func newestBefore(ops []history.Op) iter.Seq2[history.Op, history.Op] {
	return func(yield func(op, newest history.Op) bool) {
		calls := slices.SortedFunc(slices.Values(ops), func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
		ends := slices.SortedFunc(slices.Values(ops), func(a, b history.Op) int { return cmp.Compare(a.End, b.End) })
		var newest history.Op
		ended := 0
		for _, op := range calls {
			for ; ended < len(ends) && ends[ended].End < op.Call; ended++ {
				if ends[ended].Token > newest.Token {
					newest = ends[ended]
				}
			}
			if ended > 0 && !yield(op, newest) {
				return
			}
		}
	}
}

// tokens looks at all resources together: their tokens are of one sequence.
func tokens(e *evidence) []Violation {
	var grants []history.Op
	var found []Violation
	first := map[int64]history.Op{}
	for _, op := range e.Ops {
		if !op.Grants() {
			continue
		}
		grants = append(grants, op)
		if other, twice := first[op.Token]; twice {
			found = append(found, violation(fmt.Sprintf("token %d was granted twice", op.Token), other, op))
		}
		first[op.Token] = op
	}
	for op, newest := range newestBefore(grants) {
		if op.Token < newest.Token {
			found = append(found, violation(fmt.Sprintf("token %d was granted after %d", op.Token, newest.Token), newest, op))
		}
	}
	return found
}

// order looks at what was acknowledged and not lost, row by row.
func order(e *evidence) []Violation {
	rows := make(map[int64][]history.Op)
	for _, op := range e.Ops {
		if op.Raises() && op.Outcome == history.OK && !e.gone[op.ID] {
			rows[op.Row] = append(rows[op.Row], op)
		}
	}
	var found []Violation
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		for op, newest := range newestBefore(rows[row]) {
			if op.Token < newest.Token {
				found = append(found, violation(fmt.Sprintf("row %d: a write under token %d was acknowledged, sent after one under %d was", row, op.Token, newest.Token), newest, op))
			}
		}
	}
	return found
}

// sealed looks at the leases of a resource together with all writes under them:
// where tables are sealed, a grant shuts older holders out of rows, too, that
// its holder hasn't written yet, and of inserts.
func sealed(e *evidence) []Violation {
	if !e.Sealed {
		return nil
	}
	kept := make(map[int64]bool)
	for _, l := range e.Leases {
		kept[l.NewToken] = true
	}
	resources := make(map[string][]history.Op)
	for _, op := range e.Ops {
		grant := op.Kind == history.Take && kept[op.Token]
		write := (op.Raises() || op.Enters()) && !e.gone[op.ID]
		if op.Outcome == history.OK && op.Resource != "" && (grant || write) {
			resources[op.Resource] = append(resources[op.Resource], op)
		}
	}
	var found []Violation
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		for op, newest := range newestBefore(resources[resource]) {
			if op.Kind != history.Take && op.Token < newest.Token {
				found = append(found, violation(fmt.Sprintf("%s: a write under token %d was acknowledged, sent when %d had been granted", resource, op.Token, newest.Token), newest, op))
			}
		}
	}
	return found
}

// takenSince reports whether a write's lease may have been taken by another
// holder before the write was rejected. What became of such a call need not be
// known.
func (e *evidence) takenSince(op history.Op) bool {
	return slices.ContainsFunc(e.Ops, func(other history.Op) bool {
		return other.Kind == history.Take && other.Resource == op.Resource && other.Call < op.End && (other.Token > op.Token || other.Token == 0)
	})
}

// rejected takes a newer token that was only sent for a reason: its write may
// have come to be, or have been lost since.
func rejected(e *evidence) []Violation {
	sent := make(map[int64][]history.Op)
	for _, op := range e.Ops {
		if op.Raises() {
			sent[op.Row] = append(sent[op.Row], op)
		}
	}
	var found []Violation
	for _, op := range e.Ops {
		if op.Outcome != history.Stale || !op.Raises() {
			continue
		}
		late := slices.ContainsFunc(sent[op.Row], func(other history.Op) bool { return other.Token > op.Token && other.Call < op.End })
		if !late && !(e.Sealed && e.takenSince(op)) {
			found = append(found, violation(fmt.Sprintf("token %d was rejected, and no newer one had been sent", op.Token), op))
		}
	}
	return found
}
