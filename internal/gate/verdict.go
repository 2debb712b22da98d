package gate

import "github.com/fencerow/fencerow/rewrite"

// Unchecked is the plan of a text that is sent although it was found fault
// with: nothing is bound, and nothing asked afterwards.
var Unchecked = &rewrite.Plan{}

// Verdict is what the check of a text came to.
type Verdict struct {
	View     *View
	Enforced *rewrite.Plan // by the tables that are enforced, or Unchecked
	Watched  *rewrite.Plan // by the reported ones too; nil if there is no such plan
}

// Plan is the one to go by.
func (v Verdict) Plan() *rewrite.Plan {
	if v.Watched != nil {
		return v.Watched
	}
	return v.Enforced
}

// Sent is the plan of what is sent: statements on tables that are only reported
// are not rewritten.
func (v Verdict) Sent() *rewrite.Plan {
	if plan := v.Plan(); v.Watched == nil || !plan.Rewritten() {
		return plan
	}
	return v.Enforced
}

// Looked is the plan of a statement's text under a view, if it was looked up.
type Looked struct {
	View *View
	Plan *rewrite.Plan
}
