package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// leases reads the database's own record: a token that was drawn before the
// lease's row was locked shows only there, as its request had been under way
// since before.
func leases(e *evidence) []Violation {
	var found []Violation
	last := make(map[string]history.Lease)
	for _, l := range e.Leases {
		before, ok := last[l.Resource]
		switch {
		case ok && l.OldToken != before.NewToken:
			found = append(found, violation(fmt.Sprintf("the lease of %s under token %d replaced %d, and the one before was %d", l.Resource, l.NewToken, l.OldToken, before.NewToken)))
		case l.NewToken <= l.OldToken:
			found = append(found, violation(fmt.Sprintf("the lease of %s under token %d replaced that under %d", l.Resource, l.NewToken, l.OldToken)))
		}
		last[l.Resource] = l
	}
	return found
}

func chain(e *evidence) []Violation {
	var found []Violation
	for _, row := range slices.Sorted(maps.Keys(e.rows)) {
		last := history.Write{Row: row}
		for _, w := range e.rows[row] {
			switch {
			case w.Seq != last.Seq+1:
				found = append(found, violation(fmt.Sprintf("row %d: write %d follows write %d", row, w.Seq, last.Seq), e.of(last, w)...))
			case w.OldValue != last.NewValue || w.OldToken != last.NewToken:
				found = append(found, violation(fmt.Sprintf("row %d: write %d replaced value %d of token %d, and the one before had left %d of token %d",
					row, w.Seq, w.OldValue, w.OldToken, last.NewValue, last.NewToken), e.of(last, w)...))
			case w.NewToken < w.OldToken:
				found = append(found, violation(fmt.Sprintf("row %d: its token fell from %d to %d", row, w.OldToken, w.NewToken), e.of(last, w)...))
			case w.Strict && w.NewToken == w.OldToken:
				found = append(found, violation(fmt.Sprintf("row %d: token %d wrote it twice, in mode strict", row, w.NewToken), e.of(last, w)...))
			}
			last = w
		}
	}
	return found
}

func (e *evidence) of(writes ...history.Write) []history.Op {
	var ops []history.Op
	for _, w := range writes {
		if op, ok := e.ops[w.Op]; ok {
			ops = append(ops, op)
		}
	}
	return ops
}

// accepted goes from the database's record to the operations.
func accepted(e *evidence) []Violation {
	var found []Violation
	written, entered := make(map[int64]bool), make(map[int64]bool)
	for _, w := range e.Writes {
		op, ok := e.ops[w.Op]
		value := w.OldValue
		if op.Writes() {
			value = op.ID
		}
		switch {
		case !ok:
			found = append(found, violation(fmt.Sprintf("row %d was written by operation %d, which nobody sent", w.Row, w.Op)))
		case op.Row != w.Row || op.Token != w.NewToken || value != w.NewValue || !op.Raises():
			found = append(found, violation(fmt.Sprintf("row %d: write %d under token %d left value %d, which is not what was sent", w.Row, w.Seq, w.NewToken, w.NewValue), op))
		case written[w.Op]:
			found = append(found, violation(fmt.Sprintf("row %d: operation %d was applied twice", w.Row, w.Op), op))
		}
		written[w.Op] = true
	}
	for _, entry := range e.Entries {
		if op, ok := e.ops[entry.Op]; !ok || !op.Enters() || op.Token != entry.Token {
			found = append(found, violation(fmt.Sprintf("entry %d of token %d is not what was sent", entry.Op, entry.Token), op))
		}
		entered[entry.Op] = true
	}
	for _, op := range e.Ops {
		switch {
		case op.Outcome != history.OK && op.Outcome != history.Unknown && e.kept[op.ID]:
			found = append(found, violation("it was applied, and its sender was told that it was not", op))
		case op.Kind == history.Both && written[op.ID] != entered[op.ID]:
			found = append(found, violation("half of a transaction was applied", op))
		}
	}
	return found
}

// lost goes from the operations to the database's record.
func lost(e *evidence) []Violation {
	var found []Violation
	for _, op := range e.missed {
		found = append(found, violation("it was acknowledged, and it is not there", op))
	}
	return append(found, e.replays...)
}

// judgeReplays looks for the write that each replay is told to be one of. The
// tokens of the table in mode strict are drawn for one write each.
//
// To be told of a replay is to have read, and no acknowledgement. A write whose
// wait for the standby was cancelled, as pgx does when a call's time is over or
// its connection broke, is seen before the standby has it, and a synchronous
// failover, too, may lose it then.
func (e *evidence) judgeReplays() {
	sent := make(map[int64][]history.Op)
	for _, op := range e.Ops {
		if op.Kind == history.Strict {
			sent[op.Token] = append(sent[op.Token], op)
		}
	}
	there := func(op history.Op) bool { return e.kept[op.ID] }
	for _, op := range e.Ops {
		switch attempts := sent[op.Token]; {
		case op.Outcome != history.Replay || slices.ContainsFunc(attempts, there):
		case slices.ContainsFunc(attempts, e.meetsFailover):
			e.forgotten++
		default:
			e.replays = append(e.replays, violation("it was told to have been applied before, and it is not there", attempts...))
		}
	}
}

// updates finds the update that a holder lost to one who had looked before it:
// each write names the operation, under the same token, by which its sender
// knew what the row held.
func updates(e *evidence) []Violation {
	var found []Violation
	for _, row := range slices.Sorted(maps.Keys(e.rows)) {
		at := make(map[int64]int)
		for i, w := range e.rows[row] {
			at[w.Op] = i
			looked, ok := at[e.ops[w.Op].Base]
			if !ok || w.Strict || w.NewValue == w.OldValue {
				continue
			}
			between := e.rows[row][looked+1 : i]
			if other := slices.IndexFunc(between, func(b history.Write) bool { return b.NewToken != w.NewToken && b.NewValue != b.OldValue }); other >= 0 {
				lost := between[other]
				found = append(found, violation(fmt.Sprintf("row %d: the write of token %d was lost to one of token %d, whose holder had looked before it", row, lost.NewToken, w.NewToken),
					e.of(e.rows[row][looked], lost, w)...))
			}
		}
	}
	return found
}
