package driver

import (
	"database/sql"
	"maps"
	"sync"

	"github.com/fencerow/fencerow/rewrite"
)

// Stats are counts since a connector was made. Publish them with expvar:
//
//	expvar.Publish("fencerow", expvar.Func(func() any { return connector.Stats() }))
type Stats struct {
	Checked   uint64                  // texts that were checked, at Prepare and at each execution
	CacheHits uint64                  // those of them whose plan was in the cache
	Refused   map[rewrite.Rule]uint64 // statements that were not sent
	Reported  map[rewrite.Rule]uint64 // statements that were sent although their table's guard is missing; see Report
	Stale     uint64                  // guarded writes that met a newer token
	Replay    uint64                  // guarded writes that met their own token
	Detours   map[Detour]uint64       // executions that didn't take the short way, by the reason; see docs/cost.md
}

// StatsOf returns the counts of a handle's connector. ok is false for a handle that is not
// fencerow's, or whose driver something else wraps, as otelsql does: ask the connector
// inside of it by [Connector.Stats].
func StatsOf(db *sql.DB) (s Stats, ok bool) {
	if d, isOurs := db.Driver().(*Driver); isOurs && d.connector != nil {
		return d.connector.Stats(), true
	}
	return Stats{}, false
}

// Stats returns the connector's counts.
func (c *Connector) Stats() Stats { return c.counters.read() }

// counters count for a connector. What every statement counts is counted on
// its connection, so that connections don't wait for each other.
type counters struct {
	mu    sync.Mutex
	open  map[*Conn]struct{}
	total Stats // of closed connections, and what is counted here
}

func (n *counters) opened(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open = make(map[*Conn]struct{})
	}
	n.open[c] = struct{}{}
}

func (n *counters) closed(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.open[c]; ok {
		delete(n.open, c)
		n.total.count(c)
	}
}

func (n *counters) rule(kind EventKind, rule rewrite.Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	counts := &n.total.Refused
	if kind == EventReported {
		counts = &n.total.Reported
	}
	if *counts == nil {
		*counts = make(map[rewrite.Rule]uint64)
	}
	(*counts)[rule]++
}

func (n *counters) outcome(kind EventKind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kind == EventReplay {
		n.total.Replay++
	} else {
		n.total.Stale++
	}
}

func (n *counters) read() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.total
	s.Refused, s.Reported, s.Detours = maps.Clone(s.Refused), maps.Clone(s.Reported), maps.Clone(s.Detours)
	for c := range n.open {
		s.count(c)
	}
	return s
}

// count adds what a connection has counted.
func (s *Stats) count(c *Conn) {
	hit := c.hit.Load()
	s.Checked += c.new.Load() + hit
	s.CacheHits += hit
	c.detours.AddTo(&s.Detours)
}
