package gate

import "github.com/fencerow/fencerow/internal/check"

// Unchecked is the plan of a text that is sent although it was found fault
// with: nothing is bound, and nothing asked afterwards.
var Unchecked = &check.Plan{}

// Verdict is what the check of a text came to.
type Verdict struct {
	View     *View
	Enforced *check.Plan // by the tables that are enforced, or Unchecked
	Watched  *check.Plan // by the reported ones too; nil if there is no such plan
}

// Plan is the one to go by.
func (v Verdict) Plan() *check.Plan {
	if v.Watched != nil {
		return v.Watched
	}
	return v.Enforced
}

// Sent is the plan of what is sent: statements on tables that are only reported
// are not rewritten.
func (v Verdict) Sent() *check.Plan {
	if plan := v.Plan(); v.Watched == nil || !plan.Rewritten() {
		return plan
	}
	return v.Enforced
}

// Looked is the plan of a statement's text under a view, if it was looked up.
type Looked struct {
	View *View
	Plan *check.Plan
}
