package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/check"
	"github.com/fencerow/fencerow/internal/chaos/cluster"
	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/internal/chaos/schedule"
	"github.com/fencerow/fencerow/internal/chaos/worker"
)

// Kind is a kind of run.
type Kind string

// The kinds. In those that are controls something is wrong, and that has to be
// found.
const (
	asynchronous Kind = "async"    // fencerow and the wall; a failover may lose what was acknowledged last
	synchronous  Kind = "sync"     // and may not
	sealed       Kind = "sealed"   // as async, and the tables are sealed
	wall         Kind = "wall"     // pgx without fencerow and without a guard: the wall is alone
	plain        Kind = "plain"    // a control: and there is no wall
	report       Kind = "report"   // a control: fencerow at level report, without a guard, without a wall
	nextval      Kind = "nextval"  // a control: tokens by nextval alone
	excluded     Kind = "excluded" // a control: a lease with a token that was drawn before its row was locked
	unsealed     Kind = "unsealed" // a control: as async, held against what only a seal does
)

func kinds() []Kind {
	return []Kind{asynchronous, synchronous, sealed, wall, plain, report, nextval, excluded, unsealed}
}

func (k Kind) control() bool {
	return k == plain || k == report || k == nextval || k == excluded || k == unsealed
}

// main reports whether it is one of the runs that share the time of -duration.
func (k Kind) main() bool { return k == asynchronous || k == synchronous || k == sealed }

// write is how the workers of such a run write.
func (k Kind) write() worker.Write {
	switch k {
	case plain, wall:
		return worker.Plain
	case report:
		return worker.Report
	}
	return worker.Guarded
}

// Config is what a run depends on.
type Config struct {
	Kind     Kind
	Seed     uint64
	Workers  int
	Duration time.Duration // of the chaos
	Limit    time.Duration // it goes on until then if it is not exercised yet
	Say      func(format string, args ...any)
}

// The leases and the rows of a run.
const (
	resources = 3
	rowsEach  = 4
	rotate    = 8 * time.Second
	ttl       = time.Second
	timeout   = 2 * time.Second // of an operation
)

func (c Config) schedule() schedule.Config {
	return schedule.Config{Seed: c.Seed, Workers: c.Workers, Resources: resources, TTL: ttl}
}

// Result is a run that was checked.
type Result struct {
	Config     Config
	History    *history.History
	Counts     check.Counts
	Violations []check.Violation
}

// Problem says why the run failed, "" if it didn't. A control fails if nothing
// is found.
func (r *Result) Problem() string {
	switch {
	case r.Config.Kind.control() && len(r.Violations) == 0:
		return "nothing was found, and something is wrong on purpose"
	case r.Config.Kind.control():
		return ""
	case len(r.Violations) > 0:
		return fmt.Sprintf("%d violations", len(r.Violations))
	case r.Counts.Exercised() != "":
		return "not exercised: " + r.Counts.Exercised()
	}
	return ""
}

// run runs the workers and the nemesis, and checks what has come of it.
func run(ctx context.Context, c Config) (*Result, error) {
	h, err := record(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Result{Config: c, History: h, Counts: check.Count(h), Violations: check.All(h)}, nil
}

func record(ctx context.Context, c Config) (h *history.History, err error) {
	w := worker.Config{
		Write: c.Kind.write(), Seed: c.Seed, Resources: resources, Rows: rowsEach,
		Rotate: rotate, Rotations: 1 + int(max(c.Duration, c.Limit)/rotate), TTL: ttl, Timeout: timeout,
	}
	servers, err := cluster.Start(ctx, cluster.Config{
		Sync:     c.Kind == synchronous,
		Settings: map[string]string{"max_connections": "300"},
		Setup:    func(ctx context.Context, dsn string) error { return setUp(ctx, dsn, c.Kind, w) },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, servers.Stop()) }()

	w.Start = history.NewClock()
	places, err := startPlaces(c.Workers, w, servers.Addr(), servers.DSN)
	if err != nil {
		return nil, err
	}
	h = &history.History{Sync: c.Kind == synchronous, Sealed: c.Kind == sealed || c.Kind == unsealed}
	n := &nemesis{cluster: servers, places: places, sync: h.Sync, clock: w.Start, say: c.Say}
	err = n.until(ctx, c, h)
	if err := errors.Join(err, places.stop(), ctx.Err()); err != nil {
		return nil, err
	}
	h.Faults, h.Failovers = n.snapshot()
	if err := collect(ctx, servers.PrimaryDSN(), w.Start, h); err != nil {
		return nil, fmt.Errorf("read what the database has recorded: %w", err)
	}
	h.Ops = places.log.Ops()
	return h, nil
}

// until runs the nemesis for the time of the run.
func (n *nemesis) until(ctx context.Context, c Config, h *history.History) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.run(ctx, c.schedule()) }()
	over := time.NewTimer(c.Duration)
	defer over.Stop()
	limit := time.Now().Add(c.Limit)
	for {
		select {
		case err := <-ended:
			return err
		case <-over.C:
			if !time.Now().Before(limit) || n.exercised(c.Kind, *h) {
				cancel()
				return <-ended
			}
			over.Reset(time.Second)
		}
	}
}

// exercised reports whether enough has happened for the run to end. What the
// database has recorded is not known yet.
func (n *nemesis) exercised(kind Kind, h history.History) bool {
	h.Faults, h.Failovers = n.snapshot()
	h.Ops, h.End = n.places.log.Ops(), n.clock.Now()
	counts := check.Count(&h)
	done := func(kinds ...schedule.Kind) bool {
		for _, kind := range kinds {
			if counts.Faults[string(kind)] == 0 {
				return false
			}
		}
		return true
	}
	switch kind {
	case plain, report:
		return len(check.All(&h, "order")) > 0
	case nextval:
		return len(check.All(&h, "tokens")) > 0
	case unsealed:
		return len(check.All(&h, "sealed")) > 0
	case excluded: // that shows in the database only
		return counts.Grants > 300
	}
	return counts.Exercised() == "" && done(schedule.Crash, schedule.Failover)
}
