package check

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// claims tell from when on the leases of a resource may have been in the way of older
// ones: tokens rise, and since[i] is the earliest time of tokens[i] or a newer one. A lease
// shuts older holders out of sealed tables as soon as it is granted, which is some time
// after it was asked for, and of others when its holder writes, who has been told by then.
// One that is in the database's record, and whose taker was never told, may have been
// taken at any time.
type claims struct {
	tokens []int64
	since  []int64
}

// claims returns those of each resource.
func (e *evidence) claims() map[string]claims {
	takes := make(map[string]map[int64]int64) // by resource and token: the time
	note := func(resource string, token, time int64) {
		if takes[resource] == nil {
			takes[resource] = make(map[int64]int64)
		}
		if _, ok := takes[resource][token]; !ok {
			takes[resource][token] = time
		}
	}
	for _, op := range e.Ops {
		switch {
		case op.Kind != history.Take || op.Outcome != history.OK:
		case e.Sealed:
			note(op.Resource, op.Token, op.Call)
		default:
			note(op.Resource, op.Token, op.End)
		}
	}
	for _, l := range e.Leases {
		note(l.Resource, l.NewToken, 0)
	}
	all := make(map[string]claims, len(takes))
	for resource, times := range takes {
		c := claims{tokens: slices.Sorted(maps.Keys(times)), since: make([]int64, len(times))}
		earliest := int64(math.MaxInt64)
		for i, token := range slices.Backward(c.tokens) {
			earliest = min(earliest, times[token])
			c.since[i] = earliest
		}
		all[resource] = c
	}
	return all
}

// isPresent reports whether no newer lease can have been in the way of a write under one
// when it ended: its sender was the present holder all the while. A lease that was taken
// just before a failover may be known to nobody.
func (e *evidence) isPresent(op history.Op, all map[string]claims) bool {
	c := all[op.Resource]
	i, _ := slices.BinarySearch(c.tokens, op.Token+1)
	return (i == len(c.tokens) || c.since[i] >= op.End) && !e.meetsFailover(op)
}

// isUnderLease reports whether an operation is a write under a lease.
func isUnderLease(op history.Op) bool {
	return op.Resource != "" && (op.Raises() || op.Enters())
}

// alarms are writes of present holders that were rejected as stale. A stale write ends
// its lease, and nothing else does but the lease's own time.
func alarms(e *evidence) []Violation {
	all := e.claims()
	var found []Violation
	for _, op := range e.Ops {
		if op.Outcome == history.Stale && isUnderLease(op) && e.isPresent(op, all) {
			found = append(found, violation(fmt.Sprintf("%s: token %d was rejected, and nobody had a newer lease", op.Resource, op.Token), op))
		}
	}
	return found
}
