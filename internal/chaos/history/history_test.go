package history_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

func TestRecordAndLog(t *testing.T) {
	var lines bytes.Buffer
	clock := history.NewClock()
	rec := history.NewRecorder(&lines, clock)
	first := rec.Call(history.Op{ID: 1, Kind: history.Update, Row: 3, Token: 8})
	second := rec.Call(history.Op{ID: 2, Kind: history.Read, Row: 3})
	first.Outcome, first.Err = history.Refused, strings.Repeat("x", 5000)
	rec.Done(first)
	rec.Call(history.Op{ID: 3, Kind: history.Read})

	log := history.NewLog()
	heard := 0
	cut := io.LimitReader(&lines, int64(lines.Len()-4)) // its writer was killed
	require.NoError(t, log.Read(cut, func(history.Op) { heard++ }))
	require.Equal(t, 3, heard)

	ops := log.Ops()
	require.Len(t, ops, 2)
	require.Equal(t, history.Refused, ops[0].Outcome)
	require.Less(t, len(ops[0].Err), 4000, "a line is written as a whole")
	require.Positive(t, ops[0].Call)
	require.GreaterOrEqual(t, ops[0].End, second.Call)
	require.LessOrEqual(t, ops[0].End, clock.Now())
	require.Equal(t, history.Op{ID: 2, Kind: history.Read, Row: 3, Call: second.Call, End: history.Never, Outcome: history.Unknown}, ops[1])

	require.Error(t, log.Read(strings.NewReader("no line\n"), func(history.Op) {}))
}

func TestSaveAndLoad(t *testing.T) {
	h := &history.History{
		Ops:       []history.Op{{ID: 1, Kind: history.Update, Call: 1, End: history.Never, Outcome: history.Unknown}, {ID: 2, Kind: history.Read, Value: 1}},
		Sync:      true,
		End:       9,
		Faults:    []history.Fault{{Kind: "pause", Worker: 1, Start: 2, End: 3}},
		Failovers: []history.Failover{{Hold: 1, Kill: 2, Up: 3, State: []history.State{{Row: 1, Value: 2, Token: 3}}}},
		Writes:    []history.Write{{Row: 1, Seq: 1, Op: 2}},
		Leases:    []history.Lease{{Seq: 1, Resource: "r1", NewToken: 7}},
		Entries:   []history.Entry{{Op: 1, Token: 7}},
		Final:     []history.State{{Row: 1, Value: 2, Token: 3}},
	}
	dir := t.TempDir()
	require.NoError(t, h.Save(dir))
	loaded, err := history.Load(dir)
	require.NoError(t, err)
	require.Equal(t, h, loaded)
	_, err = history.Load(t.TempDir())
	require.Error(t, err)
}
