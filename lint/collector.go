package lint

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
)

// collector gathers the violations for one Watch, Check or VerifyMain.
type collector struct {
	mu         sync.Mutex
	allowed    []*allowance
	violations []*rewrite.Violation
	ended      bool

	// violations that a Watch or a Check shows; only the collector of VerifyMain has them
	claimed map[*rewrite.Violation]bool
}

// mainCollector is the collector of the running VerifyMain, nil if none runs.
var mainCollector atomic.Pointer[collector]

func newCollector(opts []Option) *collector {
	c := &collector{}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// violationOf returns the violation of an event that is a finding, or nil. Stale tokens
// and replays are not faults of the statement, and an unfit table isn't one either.
func violationOf(e driver.Event) *rewrite.Violation {
	var v *rewrite.Violation
	if e.Kind != driver.EventRefused && e.Kind != driver.EventReported || !errors.As(e.Err, &v) {
		return nil
	}
	return v
}

// record keeps the violation of an event, and reports whether the event came too late.
func (c *collector) record(_ context.Context, e driver.Event) (late bool) {
	v := violationOf(e)
	if v == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	expected := c.useAllowances(v)
	if c.ended && !expected {
		return true
	}
	if !expected {
		c.violations = append(c.violations, v)
	}
	if main := mainCollector.Load(); main != nil && main != c {
		main.claim(v)
	}
	return false
}

// recordEvent is record for an observer.
func (c *collector) recordEvent(ctx context.Context, e driver.Event) { c.record(ctx, e) }

// useAllowances marks the allowances that cover a violation, and reports whether any does.
func (c *collector) useAllowances(v *rewrite.Violation) (found bool) {
	for _, a := range c.allowed {
		if a.covers(v) {
			a.isUsed, found = true, true
		}
	}
	return found
}

// claim notes that a test shows a violation, so that VerifyMain doesn't show it again.
// Each event has a violation of its own. The observers of an event are called in no
// fixed order, so claim may be called before or after record.
func (c *collector) claim(v *rewrite.Violation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.claimed == nil {
		c.claimed = make(map[*rewrite.Violation]bool)
	}
	c.claimed[v] = true
}

// finish returns the findings. Unused allowances are among them if every test has run
// that could have used them.
func (c *collector) finish(all bool) []Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	var out []Finding
	for _, v := range c.violations {
		if !c.claimed[v] {
			out = append(out, FindingOf(v))
		}
	}
	for _, a := range c.allowed {
		switch problem := a.problem(); {
		case problem != "":
			out = append(out, a.finding(problem))
		case all && !a.isUsed:
			out = append(out, a.finding(a.unusedMessage()))
		}
	}
	return MergeFindings(out)
}
