package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/chaos/cluster"
	"github.com/fencerow/fencerow/internal/chaos/proxy"
	"github.com/fencerow/fencerow/internal/chaos/schedule"
	"github.com/fencerow/fencerow/lease"
)

// config is what a run depends on.
type config struct {
	seed       uint64
	statements int  // how many have to be answered
	isRaised   bool // the control: tokens are raised behind the holders' backs
}

// result is what has come of a run.
type result struct {
	config
	*tally
	faults    map[schedule.Kind]int
	takeOvers int
	time      time.Duration
}

// problem says why a run failed, "" if it didn't.
func (r *result) problem() string {
	switch {
	case r.isRaised && r.verdicts[stale] == 0:
		return "nobody was told that a row's token is newer, and some were raised on purpose"
	case r.isRaised:
		return ""
	case r.alarms > 0:
		return fmt.Sprintf("%d false alarms", r.alarms)
	case r.answers < r.wanted:
		return fmt.Sprintf("only %d statements were answered", r.answers)
	}
	return ""
}

// run has a holder for each table send statements until enough are answered and each kind
// of fault has been.
func run(ctx context.Context, c config) (r *result, err error) {
	servers, err := cluster.Start(ctx, cluster.Config{Settings: map[string]string{"max_connections": "300", "deadlock_timeout": "20ms"}, Setup: setUp})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, servers.Stop()) }()
	f := &faults{cluster: servers, counts: make(map[schedule.Kind]int)}
	var leases []*lease.Lease
	defer func() {
		for _, h := range f.holders {
			err = errors.Join(err, h.close())
			h.proxy.Close()
		}
	}()
	for i, t := range tables {
		through, err := proxy.Listen(servers.Addr())
		if err != nil {
			return nil, err
		}
		h := &holder{number: i, table: t.name, resource: t.resource, proxy: through}
		f.holders = append(f.holders, h)
		if err := h.open(servers.DSN(through.Addr())); err != nil {
			return nil, err
		}
		l, err := h.take(ctx)
		if err != nil {
			return nil, err
		}
		leases = append(leases, l)
	}
	if err := awaitStandby(ctx, servers.PrimaryDSN()); err != nil {
		return nil, err
	}
	return exercise(ctx, c, f, leases)
}

// exercise has the holders work, and everything beside them happen.
func exercise(ctx context.Context, c config, f *faults, leases []*lease.Lease) (*result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	enough := make(chan struct{})
	r := &result{config: c, tally: newTally(c.statements, func() { close(enough) }), faults: f.counts}
	start := time.Now()
	var beside, working sync.WaitGroup
	try := func(pause time.Duration, turn func(*rand.Rand) func(context.Context, *pgx.Conn) error) int {
		return keepTrying(ctx, f.cluster.PrimaryDSN, pause, turn(rand.New(rand.NewPCG(c.seed, 99))))
	}
	beside.Go(func() { r.takeOvers = try(2*time.Millisecond, takeOver) })
	beside.Go(func() { try(5*time.Millisecond, change) })
	if c.isRaised {
		beside.Go(func() { try(20*time.Millisecond, raise) })
	}
	beside.Go(func() {
		if err := f.run(ctx, c.seed); err != nil {
			stop(err)
		}
	})
	for i, h := range f.holders {
		working.Go(func() { h.work(ctx, leases[i], c.seed, r.tally) })
	}
	select {
	case <-ctx.Done():
	case <-enough:
	}
	for !f.areAll() && sleep(ctx, 100*time.Millisecond) {
	}
	err := context.Cause(ctx)
	stop(nil)
	working.Wait()
	r.time = time.Since(start)
	beside.Wait()
	for _, l := range leases {
		_ = l.Release(context.WithoutCancel(ctx)) // one that has ended is released again
	}
	return r, err
}
