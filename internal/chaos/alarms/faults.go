package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/chaos/cluster"
	"github.com/fencerow/fencerow/internal/chaos/schedule"
)

// faults does to the holders' connections and to the servers what a schedule says.
type faults struct {
	cluster *cluster.Cluster
	holders []*holder

	mu     sync.Mutex
	counts map[schedule.Kind]int
}

// kinds are those that a run has to have had.
var kinds = []schedule.Kind{schedule.Hold, schedule.Delay, schedule.Cut, schedule.HalfClose, schedule.Crash, schedule.Failover}

// areAll reports whether each kind has been.
func (f *faults) areAll() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range kinds {
		if f.counts[kind] == 0 {
			return false
		}
	}
	return true
}

// run goes through the schedule until ctx ends, and returns when all that was held flows
// again.
func (f *faults) run(ctx context.Context, seed uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	start := time.Now()
	server := make(chan schedule.Event, 1)
	defer close(server)
	running.Go(func() {
		for e := range server {
			if err := f.onServer(ctx, e); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", e.Kind, err))
			}
		}
	})
	for e := range schedule.Of(schedule.Config{Seed: seed, Workers: len(f.holders), Resources: 1, TTL: time.Second}) {
		if !sleep(ctx, time.Until(start.Add(e.At))) {
			break
		}
		switch {
		case e.OnServer():
			select {
			case server <- e:
			default: // the servers are at it still
			}
		default:
			running.Go(func() { f.onHolder(ctx, e) })
		}
	}
	if err := context.Cause(ctx); err != context.Canceled {
		return err
	}
	return nil
}

// onHolder does something to the connections of a holder.
func (f *faults) onHolder(ctx context.Context, e schedule.Event) {
	p := f.holders[e.Worker-1].proxy
	switch e.Kind {
	case schedule.Hold:
		p.Hold(e.Direction)
		sleep(ctx, e.For)
		p.Resume(e.Direction)
	case schedule.Delay:
		p.Delay(e.Direction, e.By)
		sleep(ctx, e.For)
		p.Delay(e.Direction, 0)
	case schedule.Cut:
		p.Cut()
	case schedule.HalfClose:
		p.HalfClose(e.Direction)
	default:
		return // it is for processes, and a holder is none
	}
	f.note(e.Kind)
}

// onServer does something to the servers, and finishes what it has begun.
func (f *faults) onServer(ctx context.Context, e schedule.Event) error {
	if ctx.Err() != nil {
		return nil
	}
	defer f.note(e.Kind)
	if e.Kind != schedule.Crash && e.For > 0 {
		f.cluster.HoldReplication()
		sleep(ctx, e.For)
	}
	whole := context.WithoutCancel(ctx)
	switch e.Kind {
	case schedule.Crash:
		return f.cluster.Crash(whole)
	case schedule.Failover:
		if err := f.cluster.Failover(whole); err != nil {
			return err
		}
		for _, h := range f.holders {
			h.proxy.SetTarget(f.cluster.Addr())
		}
		if err := f.cluster.Rebuild(whole); err != nil {
			return err
		}
		return awaitStandby(whole, f.cluster.PrimaryDSN())
	}
	f.cluster.ResumeReplication()
	return nil
}

func (f *faults) note(kind schedule.Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[kind]++
}

// awaitStandby waits until the standby has what the primary has now: a failover may lose
// what comes later, but no lease.
func awaitStandby(ctx context.Context, dsn string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var lsn string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&lsn); err != nil {
		return err
	}
	for isThere := false; ; {
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE flush_lsn >= $1::text::pg_lsn)", lsn).Scan(&isThere)
		if err != nil || isThere {
			return err
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("wait for the standby to catch up: %w", ctx.Err())
		}
	}
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
