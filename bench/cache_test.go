package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	fencerow "github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/tokenctx"
)

// filling is a great many texts that come once, with a few that come all along.
type filling struct {
	kind  kind
	texts int
	bound int // of the cache, in bytes
}

// workingSet is how many texts come all along: one after two new ones.
const workingSet = 500

// samplings is how often the heap is looked at.
const samplings = 10

// fillings take longer where the check does, so there are fewer texts then.
var fillings = []filling{
	{unprotected, 1_000_000, 16 << 20},
	{guarded, 20_000, 4 << 20},
	{refused, 10_000, 1 << 20},
}

// outcome is what has come of it.
type outcome struct {
	growth float64 // of the heap at its largest, as a multiple of the bound
	hits   float64 // of the working set, as a share
}

// fill sends the texts, and looks at the heap now and then. It counts from when
// the working set has been in use for a little: by then the cache knows it as such.
func (f filling) fill(tb testing.TB) outcome {
	tb.Helper()
	ctx, fresh := tokenctx.With(tb.Context(), 7), newUnseen(execText(f.kind, size{"", 200}))
	working := numbered(execText(unprotected, size{"", 150}), workingSet)
	before := heap()
	db := opened(tb, wrappers[len(wrappers)-1], fencerow.WithPlanCache(f.bound))
	send := func(text string, fails bool) {
		if _, err := db.ExecContext(ctx, text, textArgs...); (err != nil) != fails {
			tb.Fatalf("%q: %v", text, err)
		}
	}
	for i := range 10 * workingSet {
		send(working[i%workingSet], false)
	}
	first, _ := fencerow.StatsOf(db)
	var out outcome
	used := 0
	for i := range f.texts {
		send(fresh.next(), f.kind == refused)
		if i%2 == 1 {
			send(working[used%workingSet], false)
			used++
		}
		if (i+1)%(f.texts/samplings) == 0 {
			out.growth = max(out.growth, float64(heap()-before)/float64(f.bound))
		}
	}
	last, _ := fencerow.StatsOf(db)
	require.EqualValues(tb, f.texts+used, last.Checked-first.Checked)
	out.hits = float64(last.CacheHits-first.CacheHits) / float64(used)
	runtime.KeepAlive(working)
	return out
}

// heap is what is reachable on it, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold lasts for one more
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkCache is the memory that the cache takes and the hits that it gives,
// while it is given many texts that never come again.
func BenchmarkCache(b *testing.B) {
	for _, f := range fillings {
		b.Run(string(f.kind), func(b *testing.B) {
			var growths, hits []float64
			for b.Loop() {
				out := f.fill(b)
				growths, hits = append(growths, out.growth), append(hits, out.hits)
			}
			b.ReportMetric(median(growths), "x-bound")
			b.ReportMetric(median(hits), "hits/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*f.texts*3/2), "ns/op")
		})
	}
}

// A small cache keeps to its bound, and keeps what is used all along. Among so few
// texts the ones of these that it loses once weigh more than among a million.
func TestCache(t *testing.T) {
	out := filling{unprotected, 50_000, 4 << 20}.fill(t)
	require.Positive(t, out.growth)
	require.LessOrEqual(t, out.growth, 1.25)
	require.GreaterOrEqual(t, out.hits, 0.95)
}
