package lint

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
)

// collector gathers what one of the three doors hears.
type collector struct {
	mu      sync.Mutex
	allowed []*allowance
	heard   []*rewrite.Violation
	ended   bool

	// what others answer for; of the collector of VerifyMain only
	claimed map[*rewrite.Violation]bool
}

// whole is the collector of the running VerifyMain.
var whole atomic.Pointer[collector]

func newCollector(opts []Option) *collector {
	c := &collector{}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// violation returns what is to be found in an event: nothing of stale tokens and
// replays, which are no fault of the statement, nor of a table that is unfit.
func violation(e driver.Event) *rewrite.Violation {
	var v *rewrite.Violation
	if e.Kind != driver.EventRefused && e.Kind != driver.EventReported || !errors.As(e.Err, &v) {
		return nil
	}
	return v
}

// hear takes an event, and reports whether it came too late.
func (c *collector) hear(_ context.Context, e driver.Event) (late bool) {
	v := violation(e)
	if v == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	expected := c.allows(v)
	if c.ended && !expected {
		return true
	}
	if !expected {
		c.heard = append(c.heard, v)
	}
	if main := whole.Load(); main != nil && main != c {
		main.leaveOut(v)
	}
	return false
}

// event is hear for an observer.
func (c *collector) event(ctx context.Context, e driver.Event) { c.hear(ctx, e) }

func (c *collector) allows(v *rewrite.Violation) (found bool) {
	for _, a := range c.allowed {
		if a.covers(v) {
			a.met, found = true, true
		}
	}
	return found
}

// leaveOut has a test answer for a violation, so that its package doesn't tell it
// again. Each event has a violation of its own; which of its listeners hears it
// first is open.
func (c *collector) leaveOut(v *rewrite.Violation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.claimed == nil {
		c.claimed = make(map[*rewrite.Violation]bool)
	}
	c.claimed[v] = true
}

// end returns the findings. Allowances that met nothing are among them if all was
// run that could have met them.
func (c *collector) end(all bool) []Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	var out []Finding
	for _, v := range c.heard {
		if !c.claimed[v] {
			out = append(out, Of(v))
		}
	}
	for _, a := range c.allowed {
		switch fault := a.fault(); {
		case fault != "":
			out = append(out, a.finding(fault))
		case all && !a.met:
			out = append(out, a.finding(a.unused()))
		}
	}
	return Merge(out)
}
