// Package schedule says what the nemesis will do: when, what, to whom and for
// how long. It is a pure function of the seed.
//
//	for e := range schedule.Of(schedule.Config{Seed: 7, Workers: 6, Resources: 3}) {
//		fmt.Println(e)
//		if e.At > time.Minute {
//			break
//		}
//	}
package schedule

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/proxy"
)

// Kind is what is done.
type Kind string

// The kinds.
const (
	Pause     Kind = "pause"      // SIGSTOP to a worker, and SIGCONT
	Kill      Kind = "kill"       // SIGKILL to a worker; another is started
	Hold      Kind = "hold"       // bytes between a worker and the server stop flowing
	Delay     Kind = "delay"      // and arrive late
	Cut       Kind = "cut"        // the worker's connections are reset
	HalfClose Kind = "half-close" // and closed in one direction
	Lag       Kind = "lag"        // WAL doesn't reach the standby
	Crash     Kind = "crash"      // SIGKILL to PostgreSQL, and a restart
	Failover  Kind = "failover"   // SIGKILL to the primary, and promotion of the standby, after a lag
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{Pause, Kill, Hold, Delay, Cut, HalfClose, Lag, Crash, Failover}
}

// Config is what a schedule depends on.
type Config struct {
	Seed      uint64
	Workers   int
	Resources int
	TTL       time.Duration // of the leases; a pause lasts longer
}

// Event is one thing that is done.
type Event struct {
	At        time.Duration // since the start
	Kind      Kind
	Worker    int // whom it hits, from 1; if Resource is given, only if nobody holds that
	Resource  int // it hits whoever holds this one, from 1; 0 for none
	Direction proxy.Direction
	By        time.Duration // of a Delay
	For       time.Duration // how long it lasts; of a Failover, the lag before it
}

// OnServer reports whether the event is about the servers, and not about a
// worker.
func (e Event) OnServer() bool { return e.Kind == Lag || e.Kind == Crash || e.Kind == Failover }

// String is the event as one line.
func (e Event) String() string {
	s := fmt.Sprintf("%10.3fs  %-10s", e.At.Seconds(), e.Kind)
	switch {
	case e.OnServer():
	case e.Resource > 0:
		s += fmt.Sprintf("  holder of r%d, or worker %d", e.Resource, e.Worker)
	default:
		s += fmt.Sprintf("  worker %d", e.Worker)
	}
	if e.Direction != 0 {
		s += "  " + map[proxy.Direction]string{proxy.ToServer: "to server", proxy.ToClient: "to client", proxy.Both: "both ways"}[e.Direction]
	}
	if e.By > 0 {
		s += fmt.Sprintf("  by %v", e.By)
	}
	if e.For > 0 {
		s += fmt.Sprintf("  for %v", e.For)
	}
	return s
}

// lane is a sequence of events of its own, which doesn't change when another
// lane gets a further kind.
type lane struct {
	first, gap time.Duration // the gap is up to half as long again, or as short
	next       func(*rand.Rand, Config, int) Event
	at         time.Duration
	made       int
	rand       *rand.Rand
}

// Of yields the events in their order, without an end.
func Of(c Config) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		lanes := []*lane{
			{first: time.Second, gap: 2500 * time.Millisecond, next: pause},
			{first: 3 * time.Second, gap: 10 * time.Second, next: kill},
			{first: 2 * time.Second, gap: 1500 * time.Millisecond, next: network},
			{first: 4 * time.Second, gap: 12 * time.Second, next: server},
		}
		for i, l := range lanes {
			l.rand = rand.New(rand.NewPCG(c.Seed, uint64(i)))
			l.at = around(l.rand, l.first)
		}
		for {
			soonest := lanes[0]
			for _, l := range lanes {
				if l.at < soonest.at {
					soonest = l
				}
			}
			e := soonest.next(soonest.rand, c, soonest.made)
			e.At = soonest.at
			soonest.at += around(soonest.rand, soonest.gap)
			soonest.made++
			if !yield(e) {
				return
			}
		}
	}
}

func pause(r *rand.Rand, c Config, _ int) Event {
	e := Event{Kind: Pause, Worker: 1 + r.IntN(c.Workers), Resource: 1 + r.IntN(c.Resources), For: c.TTL + between(r, 300*time.Millisecond, c.TTL)}
	if r.IntN(8) == 0 {
		e.Resource = 0
	}
	return e
}

func kill(r *rand.Rand, c Config, _ int) Event {
	e := Event{Kind: Kill, Worker: 1 + r.IntN(c.Workers)}
	if r.IntN(2) == 0 {
		e.Resource = 1 + r.IntN(c.Resources)
	}
	return e
}

func network(r *rand.Rand, c Config, _ int) Event {
	e := Event{
		Kind: []Kind{Hold, Delay, Cut, HalfClose}[r.IntN(4)], Worker: 1 + r.IntN(c.Workers),
		Direction: []proxy.Direction{proxy.ToServer, proxy.ToClient, proxy.Both}[r.IntN(3)],
	}
	if r.IntN(2) == 0 {
		e.Resource = 1 + r.IntN(c.Resources)
	}
	switch e.Kind {
	case Cut:
		e.Direction = 0
	case Hold:
		e.For = between(r, 100*time.Millisecond, 3*c.TTL)
	case Delay:
		e.By, e.For = between(r, 2*time.Millisecond, 300*time.Millisecond), between(r, time.Second, 4*time.Second)
	}
	return e
}

// server has a crash and a failover by turns, most of the time: both are rare.
func server(r *rand.Rand, _ Config, n int) Event {
	switch {
	case n > 1 && r.IntN(4) == 0:
		return Event{Kind: Lag, For: between(r, 200*time.Millisecond, 2*time.Second)}
	case n%2 == 0:
		return Event{Kind: Crash}
	}
	e := Event{Kind: Failover, For: between(r, 800*time.Millisecond, 2*time.Second)}
	if n > 3 && r.IntN(4) == 0 {
		e.For = 0
	}
	return e
}

func around(r *rand.Rand, d time.Duration) time.Duration { return between(r, d/2, d+d/2) }

// between is in whole milliseconds, as it is printed.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(r.Int64N(int64(most-least)))).Round(time.Millisecond)
}
