package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/cluster"
	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/internal/chaos/schedule"
	"github.com/fencerow/fencerow/internal/chaos/worker"
)

// nemesis does what the schedule says.
type nemesis struct {
	cluster *cluster.Cluster
	places  *places
	sync    bool
	clock   history.Clock
	say     func(format string, args ...any)

	mu        sync.Mutex
	faults    []history.Fault
	failovers []history.Failover
	err       error // something that should have worked didn't
}

// overdue is how late an event about the servers may be, which wait for each
// other. One that is later is left out.
const overdue = 5 * time.Second

// run goes through the schedule until ctx ends, and returns when all that was
// stopped or held goes on again.
func (n *nemesis) run(ctx context.Context, config schedule.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	var running sync.WaitGroup
	server := make(chan schedule.Event, 100)
	running.Go(func() {
		for e := range server {
			if ctx.Err() == nil && time.Since(start)-e.At < overdue {
				n.do(ctx, cancel, e, n.onServer)
			}
		}
	})
	for e := range schedule.Of(config) {
		if !sleep(ctx, time.Until(start.Add(e.At))) {
			break
		}
		if e.OnServer() {
			server <- e
			continue
		}
		running.Go(func() { n.do(ctx, cancel, e, n.onWorker) })
	}
	close(server)
	running.Wait()
	return n.err
}

// do does one thing and writes it down, if it was done.
func (n *nemesis) do(ctx context.Context, failed func(), e schedule.Event, act func(context.Context, schedule.Event) (int, error)) {
	start := n.clock.Now()
	hit, err := act(ctx, e)
	n.say("%s%s", e, map[bool]string{true: "  (left out: it is busy)"}[hit == busy])
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("%s: %w", e.Kind, err))
		failed()
	}
	if hit != busy {
		n.faults = append(n.faults, history.Fault{Kind: string(e.Kind), Worker: hit, Start: start, End: n.clock.Now()})
	}
}

// busy is hit in place of a worker that something is being done to.
const busy = -1

// onWorker does something to a worker, and returns to which.
func (n *nemesis) onWorker(ctx context.Context, e schedule.Event) (int, error) {
	p := n.places.all[e.Worker-1]
	if e.Resource > 0 {
		p = n.places.holding(worker.Resource(e.Resource), e.Worker)
	}
	lock := &p.network
	if e.Kind == schedule.Pause || e.Kind == schedule.Kill {
		lock = &p.process
	}
	if !lock.TryLock() {
		return busy, nil
	}
	defer lock.Unlock()
	switch e.Kind {
	case schedule.Pause:
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return p.number, err
		}
		sleep(ctx, e.For)
		return p.number, p.cmd.Process.Signal(syscall.SIGCONT)
	case schedule.Kill:
		return p.number, n.places.kill(p)
	case schedule.Hold:
		p.proxy.Hold(e.Direction)
		sleep(ctx, e.For)
		p.proxy.Resume(e.Direction)
	case schedule.Delay:
		p.proxy.Delay(e.Direction, e.By)
		sleep(ctx, e.For)
		p.proxy.Delay(e.Direction, 0)
	case schedule.Cut:
		p.proxy.Cut()
	case schedule.HalfClose:
		p.proxy.HalfClose(e.Direction)
	}
	return p.number, nil
}

// onServer does something to the servers. What has begun is finished after the
// end of ctx, too.
func (n *nemesis) onServer(ctx context.Context, e schedule.Event) (int, error) {
	switch e.Kind {
	case schedule.Lag:
		n.cluster.HoldReplication()
		sleep(ctx, e.For)
		n.cluster.ResumeReplication()
		return 0, nil
	case schedule.Crash:
		return 0, n.cluster.Crash(context.WithoutCancel(ctx))
	}
	hold := n.clock.Now()
	if err := n.catchUp(ctx); err != nil {
		return 0, err
	}
	if e.For > 0 {
		n.cluster.HoldReplication()
		sleep(ctx, e.For)
	}
	return 0, n.failover(context.WithoutCancel(ctx), hold)
}

// catchUp waits until the standby has all that was acknowledged before, so that
// what a failover may lose has a beginning. Where replication is synchronous it
// may lose nothing, and so needs no beginning.
func (n *nemesis) catchUp(ctx context.Context) error {
	if n.sync {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return awaitStandby(ctx, n.cluster.PrimaryDSN())
}

// failover promotes the standby, reads what it has, and only then lets the
// workers in.
func (n *nemesis) failover(ctx context.Context, hold int64) error {
	f := history.Failover{Hold: hold, Kill: n.clock.Now()}
	if err := n.cluster.Failover(ctx); err != nil {
		return err
	}
	state, err := readState(ctx, n.cluster.PrimaryDSN())
	if err != nil {
		return err
	}
	f.State, f.Up = state, n.clock.Now()
	n.mu.Lock()
	n.failovers = append(n.failovers, f)
	n.mu.Unlock()
	for _, p := range n.places.all {
		p.proxy.SetTarget(n.cluster.Addr())
	}
	return n.cluster.Rebuild(ctx)
}

// snapshot returns what was done so far.
func (n *nemesis) snapshot() ([]history.Fault, []history.Failover) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]history.Fault(nil), n.faults...), append([]history.Failover(nil), n.failovers...)
}

// sleep waits, and reports whether ctx lasted as long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
