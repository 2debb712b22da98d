package check

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// op makes an operation that was acknowledged; change says what is different.
func op(id int64, kind history.Kind, row, token, call, end int64, change ...func(*history.Op)) history.Op {
	o := history.Op{ID: id, Kind: kind, Row: row, Token: token, Call: call, End: end, Outcome: history.OK, Resource: "r1"}
	for _, c := range change {
		c(&o)
	}
	return o
}

func ended(out history.Outcome) func(*history.Op) { return func(o *history.Op) { o.Outcome = out } }
func saw(value int64) func(*history.Op)           { return func(o *history.Op) { o.Value = value } }
func knew(base int64) func(*history.Op)           { return func(o *history.Op) { o.Base = base } }
func by(worker int) func(*history.Op)             { return func(o *history.Op) { o.Worker = worker } }

// write is the database's record of an operation on row 1.
func write(seq, op, oldValue, newValue, oldToken, newToken int64) history.Write {
	return history.Write{Row: 1, Seq: seq, Op: op, OldValue: oldValue, NewValue: newValue, OldToken: oldToken, NewToken: newToken}
}

// sec is a second.
const sec = 1_000_000_000

// good is what every check passes: a holder that is paused, a take-over, a
// stale write, an unknown one that came to be and one that didn't, a
// transaction, a replay.
func good() *history.History {
	return &history.History{
		End: 100 * sec,
		Ops: []history.Op{
			op(1, history.Take, 0, 7, 1, 2, by(1)),
			op(2, history.Claim, 1, 7, 3, 4),
			op(3, history.Update, 1, 7, 5, 6, knew(2)),
			op(4, history.Take, 0, 8, 10, 20, by(2)),
			op(5, history.Claim, 1, 8, 21, 22, saw(3)),
			op(6, history.Update, 1, 7, 23, 24, knew(3), ended(history.Stale)),
			op(7, history.Upsert, 1, 8, 25, 26, knew(5)),
			op(8, history.Update, 1, 8, 27, history.Never, knew(7), ended(history.Unknown)),
			op(9, history.Update, 1, 8, 28, history.Never, knew(7), ended(history.Unknown)),
			op(10, history.Read, 1, 0, 30, 31, saw(8)),
			op(11, history.Claim, 1, 8, 32, 33, saw(8)),
			op(12, history.Both, 1, 8, 34, 35, knew(11)),
			op(13, history.Insert, 0, 8, 36, 37),
			op(14, history.Insert, 0, 8, 38, 39, ended(history.Refused)),
			op(15, history.Draw, 0, 9, 40, 41),
			op(16, history.Strict, 2, 9, 42, history.Never, ended(history.Unknown)),
			op(17, history.Strict, 2, 9, 44, 45, ended(history.Replay)),
		},
		Writes: []history.Write{
			write(1, 2, 0, 0, 0, 7),
			write(2, 3, 0, 3, 7, 7),
			write(3, 5, 3, 3, 7, 8),
			write(4, 7, 3, 7, 8, 8),
			write(5, 8, 7, 8, 8, 8),
			write(6, 11, 8, 8, 8, 8),
			write(7, 12, 8, 12, 8, 8),
			{Row: 2, Seq: 1, Strict: true, Op: 16, NewValue: 16, NewToken: 9},
		},
		Leases:  []history.Lease{{Seq: 1, Resource: "r1", NewToken: 7}, {Seq: 2, Resource: "r1", OldToken: 7, NewToken: 8}},
		Entries: []history.Entry{{Op: 12, Token: 8}, {Op: 13, Token: 8}},
		Final:   []history.State{{Row: 1, Value: 12, Token: 8}, {Row: 2, Value: 16, Token: 9}},
		Faults:  []history.Fault{{Kind: "pause", Worker: 1, Start: 8, End: 23}},
	}
}

// change changes an operation of a history.
func change(h *history.History, id int64, f func(*history.Op)) {
	i := slices.IndexFunc(h.Ops, func(o history.Op) bool { return o.ID == id })
	f(&h.Ops[i])
}

// truncate takes all that the database has recorded after the n-th write away,
// as a failover does that lost it, and makes the rows agree.
func truncate(h *history.History, n int) {
	h.Writes, h.Entries, h.Final = h.Writes[:n], nil, nil
	last := h.Writes[n-1]
	h.Final = []history.State{{Row: 1, Value: last.NewValue, Token: last.NewToken}}
	h.Failovers = []history.Failover{{Hold: 4, Kill: 50, Up: 60, State: h.Final}}
}

func TestChecks(t *testing.T) {
	tests := map[string]struct {
		spoil func(*history.History)
		found []string // the checks that find something
	}{
		"a good history": {func(*history.History) {}, nil},
		"an empty one":   {func(h *history.History) { *h = history.History{} }, nil},

		"a token granted twice": {func(h *history.History) { change(h, 15, func(o *history.Op) { o.Token = 8 }) }, []string{"tokens"}},
		"a token that falls":    {func(h *history.History) { change(h, 15, func(o *history.Op) { o.Token = 6 }) }, []string{"tokens"}},
		"a smaller token, asked for meanwhile": {func(h *history.History) {
			h.Ops = append(h.Ops, op(20, history.Draw, 0, 5, 1, 41))
		}, nil},

		"a lease whose token falls": {func(h *history.History) {
			h.Leases = append(h.Leases, history.Lease{Seq: 3, Resource: "r1", OldToken: 8, NewToken: 6})
		}, []string{"leases"}},
		"a lease that replaced another than the last": {func(h *history.History) { h.Leases[1].OldToken = 6 }, []string{"leases"}},

		"a gap in the writes":         {func(h *history.History) { h.Writes[6].Seq++ }, []string{"chain"}},
		"a value that was another's":  {func(h *history.History) { h.Writes[6].OldValue = 7 }, []string{"chain"}},
		"a row's token that falls":    {func(h *history.History) { stale(h) }, []string{"chain", "order", "updates"}},
		"a strict token, used twice":  {func(h *history.History) { h.Writes[7].OldToken = 9 }, []string{"chain"}},
		"a strict row, written twice": {strictTwice, []string{"accepted", "chain", "register"}},

		"a write that is applied twice": {func(h *history.History) { h.Writes = append(h.Writes, write(8, 12, 12, 12, 8, 8)) }, []string{"accepted"}},
		"a write that nobody sent":      {func(h *history.History) { h.Writes[6].Op = 99 }, []string{"accepted"}},
		"a value that nobody sent":      {func(h *history.History) { h.Writes[6].NewValue, h.Final[0].Value = 99, 99 }, []string{"accepted", "register"}},
		"a token that nobody sent":      {func(h *history.History) { h.Writes[6].NewToken = 9 }, []string{"accepted"}},
		"a rejected write, applied":     {func(h *history.History) { change(h, 12, ended(history.Stale)) }, []string{"accepted", "alarms", "register", "rejected"}},
		"a refused insert, applied":     {func(h *history.History) { h.Entries = append(h.Entries, history.Entry{Op: 14, Token: 8}) }, []string{"accepted"}},
		"a write of no row, applied":    {func(h *history.History) { change(h, 8, ended(history.None)) }, []string{"accepted", "register"}},
		"half of a transaction":         {func(h *history.History) { h.Entries = h.Entries[1:] }, []string{"accepted"}},
		"an entry that nobody sent":     {func(h *history.History) { h.Entries = append(h.Entries, history.Entry{Op: 98, Token: 8}) }, []string{"accepted"}},
		"an entry of another token":     {func(h *history.History) { h.Entries[1].Token = 7 }, []string{"accepted"}},
		"a write that is applied late":  {func(h *history.History) { change(h, 9, func(o *history.Op) { o.Call = 1 }) }, nil},

		"an acknowledged write, lost": {func(h *history.History) {
			h.Writes, h.Entries, h.Final[0].Value = slices.Delete(h.Writes, 6, 7), h.Entries[1:], 8
		}, []string{"lost", "register"}},
		"an acknowledged insert, lost":    {func(h *history.History) { h.Entries = h.Entries[:1] }, []string{"lost"}},
		"an unknown write, lost":          {func(h *history.History) { change(h, 13, ended(history.Unknown)); h.Entries = h.Entries[:1] }, nil},
		"a replay of nothing":             {func(h *history.History) { h.Writes, h.Final = h.Writes[:7], h.Final[:1] }, []string{"lost"}},
		"an asynchronous failover's loss": {func(h *history.History) { truncate(h, 3) }, nil},
		"a synchronous failover's loss":   {func(h *history.History) { truncate(h, 3); h.Sync = true }, []string{"lost"}},
		"lost, and from before the lag": {func(h *history.History) {
			truncate(h, 3)
			h.Failovers[0].Hold, h.Failovers[0].Kill, h.Failovers[0].Up = 3*sec, 4*sec, 5*sec
		}, []string{"lost"}},
		"lost, and sent after the failover": {func(h *history.History) {
			truncate(h, 3)
			h.Failovers[0].Kill, h.Failovers[0].Up = 23, 24
		}, []string{"lost", "register"}},

		"an older holder's write, sent after": {func(h *history.History) {
			change(h, 3, func(o *history.Op) { o.Call, o.End = 23, 24 })
		}, []string{"order", "register"}},
		"an older holder's write, under way meanwhile": {func(h *history.History) {
			change(h, 3, func(o *history.Op) { o.End = 24 })
		}, nil},

		"an insert after a grant, not sealed": {late, nil},
		"an insert after a grant, sealed":     {func(h *history.History) { late(h); h.Sealed = true }, []string{"sealed"}},
		"a good history, sealed":              {func(h *history.History) { h.Sealed = true }, nil},

		"a rejection without a newer token": {func(h *history.History) { change(h, 6, func(o *history.Op) { o.Token = 8 }) }, []string{"alarms", "rejected"}},
		"a rejection before a newer token":  {func(h *history.History) { change(h, 6, func(o *history.Op) { o.Call, o.End = 9, 10 }) }, []string{"alarms", "rejected"}},

		"a read of what is older":     {func(h *history.History) { change(h, 10, saw(7)); change(h, 11, saw(7)) }, nil},
		"a read of what was replaced": {func(h *history.History) { change(h, 10, saw(3)) }, []string{"register"}},
		"a read before the write":     {func(h *history.History) { change(h, 10, func(o *history.Op) { o.Call, o.End = 7, 8 }) }, []string{"register"}},
		"two reads, back and forth": {func(h *history.History) {
			h.Ops = append(h.Ops, op(20, history.Read, 1, 0, 31, 32, saw(7)))
		}, nil},
		"two reads, back and forth, one after the other": {func(h *history.History) {
			h.Ops = append(h.Ops, op(20, history.Read, 1, 0, 32, 33, saw(7)))
		}, []string{"register"}},
		"a read of what a failover took back": {func(h *history.History) {
			truncate(h, 3)
			h.Ops = append(h.Ops, op(20, history.Read, 1, 0, 61, 62, saw(3)))
		}, nil},
		"a read of what a failover had taken back": {func(h *history.History) {
			truncate(h, 3)
			h.Ops = append(h.Ops, op(20, history.Read, 1, 0, 61, 62, saw(12)))
		}, []string{"register"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := good()
			test.spoil(h)
			found := map[string]bool{}
			all := All(h)
			for _, v := range all {
				found[v.Check] = true
				require.NotEmpty(t, v.String())
			}
			require.Equal(t, test.found, slices.Sorted(maps.Keys(found)), "%v", all)
		})
	}
	t.Run("each check finds something", func(t *testing.T) {
		found := map[string]bool{}
		for _, test := range tests {
			for _, name := range test.found {
				found[name] = true
			}
		}
		for _, c := range Checks() {
			require.True(t, found[c.Name], c.Name)
		}
		require.Len(t, found, len(Checks()))
	})
}

// stale has the write that was rejected accepted: an update is lost.
func stale(h *history.History) {
	change(h, 6, func(o *history.Op) { o.Outcome, o.Call, o.End = history.OK, 36, 37 })
	h.Writes = append(h.Writes, write(8, 6, 12, 6, 8, 7))
	h.Final[0].Value = 6
}

// strictTwice has one write applied by both of its attempts.
func strictTwice(h *history.History) {
	h.Writes = append(h.Writes, history.Write{Row: 2, Seq: 2, Strict: true, Op: 17, OldValue: 16, NewValue: 17, OldToken: 9, NewToken: 9})
	h.Final[1].Value = 17
}

// late has the older holder insert an entry after the newer one was granted.
func late(h *history.History) {
	h.Ops = append(h.Ops, op(20, history.Insert, 0, 7, 21, 22))
	h.Entries = append(h.Entries, history.Entry{Op: 20, Token: 7})
}

func TestCount(t *testing.T) {
	c := Count(good())
	require.Equal(t, map[string]int{"pause": 1}, c.Faults)
	c.Faults = nil
	require.Equal(t, Counts{Time: 100 * sec, Ops: 17, Grants: 3, TakeOvers: 1, Accepted: 7, Present: 7, Reads: 1, Stale: 1, Replays: 1, Refused: 1, Unknown: 3}, c)

	h := good()
	truncate(h, 3)
	require.Equal(t, 4, Count(h).Lost)
	require.Equal(t, 1, Count(h).Forgotten)
	h.Sync = true
	require.Equal(t, 0, Count(h).Lost)
	require.Equal(t, 1, Count(h).Forgotten)
}

func TestTakeOvers(t *testing.T) {
	tests := map[string]struct {
		spoil func(*history.History)
		n     int
	}{
		"taken over":               {func(*history.History) {}, 1},
		"another is paused":        {func(h *history.History) { h.Faults[0].Worker = 3 }, 0},
		"by the same worker":       {func(h *history.History) { change(h, 4, by(1)) }, 0},
		"after the pause":          {func(h *history.History) { h.Faults[0].End = 19 }, 0},
		"before the pause":         {func(h *history.History) { h.Faults[0].Start, h.Faults[0].End = 21, 30 }, 0},
		"it had been released":     {func(h *history.History) { h.Ops = append(h.Ops, op(20, history.Release, 0, 7, 6, 7)) }, 0},
		"it is released after all": {func(h *history.History) { h.Ops = append(h.Ops, op(20, history.Release, 0, 7, 24, 25)) }, 1},
		"no pause but a crash":     {func(h *history.History) { h.Faults[0].Kind = "crash" }, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := good()
			test.spoil(h)
			require.Equal(t, test.n, Count(h).TakeOvers)
		})
	}
}

func TestExercised(t *testing.T) {
	require.Empty(t, Counts{Time: 19 * sec, TakeOvers: 1, Stale: 1}.Exercised())
	require.Contains(t, Counts{Time: 5 * sec}.Exercised(), "too few leases")
	require.Contains(t, Counts{Time: 20 * sec, TakeOvers: 1, Stale: 1}.Exercised(), "too few leases")
	require.Contains(t, Counts{Time: 20 * sec, TakeOvers: 2, Stale: 1}.Exercised(), "too few writes")
}

// TestSettle holds the short cut with unknown writes to what it stands for.
func TestSettle(t *testing.T) {
	ops := []history.Op{
		op(1, history.Update, 1, 7, 1, history.Never, ended(history.Unknown)), // seen
		op(2, history.Update, 1, 7, 2, history.Never, ended(history.Unknown)), // not seen
		op(3, history.Read, 1, 0, 5, 9, saw(1)),
		op(4, history.Read, 1, 0, 6, 8, saw(1)),
		op(5, history.Read, 1, 0, 6, 7, saw(1), ended(history.Unknown)),
		op(6, history.Update, 1, 7, 7, 8, ended(history.Stale)),
	}
	got := settle(ops)
	slices.SortFunc(got, func(a, b history.Op) int { return cmp.Compare(a.ID, b.ID) })
	require.Len(t, got, 3)
	require.Equal(t, int64(8), got[0].End)
	require.Equal(t, []int64{1, 3, 4}, []int64{got[0].ID, got[1].ID, got[2].ID})
}
