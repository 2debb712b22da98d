package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/chaos/schedule"
)

func first(c schedule.Config, d time.Duration) []schedule.Event {
	var events []schedule.Event
	for e := range schedule.Of(c) {
		if e.At > d {
			break
		}
		events = append(events, e)
	}
	return events
}

func TestSameSeed(t *testing.T) {
	config := schedule.Config{Seed: 7, Workers: 6, Resources: 3, TTL: time.Second}
	events := first(config, 10*time.Minute)
	require.Equal(t, events, first(config, 10*time.Minute))
	require.True(t, slices.IsSortedFunc(events, func(a, b schedule.Event) int { return int(a.At - b.At) }))
	config.Seed = 8
	require.NotEqual(t, events, first(config, 10*time.Minute))
}

func TestEveryKind(t *testing.T) {
	for seed := range uint64(20) {
		kinds := map[schedule.Kind]int{}
		for _, e := range first(schedule.Config{Seed: seed, Workers: 6, Resources: 3, TTL: time.Second}, 10*time.Minute) {
			kinds[e.Kind]++
			if e.Kind == schedule.Pause {
				require.Greater(t, e.For, time.Second, "longer than a lease")
			}
			if !e.OnServer() {
				require.Positive(t, e.Worker)
			}
		}
		for _, kind := range schedule.Kinds() {
			require.Positive(t, kinds[kind], "%s with seed %d", kind, seed)
		}
		require.Greater(t, kinds[schedule.Pause], 180)
	}
}

// TestShort holds the short form to what it must meet: a crash, a failover.
func TestShort(t *testing.T) {
	for seed := range uint64(200) {
		kinds := map[schedule.Kind]bool{}
		for _, e := range first(schedule.Config{Seed: seed, Workers: 3, Resources: 2, TTL: time.Second}, 24*time.Second) {
			kinds[e.Kind] = true
		}
		require.True(t, kinds[schedule.Pause] && kinds[schedule.Crash] && kinds[schedule.Failover], "seed %d", seed)
	}
}
