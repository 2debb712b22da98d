package lease_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
)

// BenchmarkHandover measures how long a lease that was released has no holder,
// while 24 contend for it, all but the last holder, each with a handle of its own as in 24 processes. The longer it is held, the
// more seldom they poll.
func BenchmarkHandover(b *testing.B) {
	const contenders = 24
	for _, bb := range []struct {
		name string
		hold time.Duration
		opts []lease.Option
	}{
		{"listening", 0, nil},
		{"polling", 0, []lease.Option{lease.WithoutListen()}},
		{"listening/held 300ms", 300 * time.Millisecond, nil},
		{"polling/held 300ms", 300 * time.Millisecond, []lease.Option{lease.WithoutListen()}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			dsn := localpg.Database(b, installed)
			var (
				mu       sync.Mutex
				granted  = make(chan struct{}) // closed with the next grant
				released time.Time             // zero before the first
				free     []time.Duration
				wg       sync.WaitGroup
			)
			first := take(b, open(b, dsn), "r", long)
			for range contenders {
				db := open(b, dsn)
				wg.Go(func() {
					for {
						l, err := lease.Take(b.Context(), db, "r", long, bb.opts...)
						if err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						free = append(free, time.Since(released))
						time.Sleep(bb.hold)
						enough := len(free) >= b.N
						close(granted)
						next := make(chan struct{})
						granted = next
						released = time.Now()
						mu.Unlock()
						if err := l.Release(b.Context()); err != nil {
							b.Error(err)
						}
						if enough {
							return
						}
						<-next // it is another's turn
					}
				})
			}
			b.ResetTimer()
			released = time.Now()
			require.NoError(b, first.Release(b.Context()))
			wg.Wait()
			slices.Sort(free)
			b.ReportMetric(free[len(free)/2].Seconds()*1000, "p50-ms")
			b.ReportMetric(free[len(free)*99/100].Seconds()*1000, "p99-ms")
		})
	}
}
