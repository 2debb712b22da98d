package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// EXPLAIN without ANALYZE has its statement planned and not executed, so a write in it needs no
// proof (https://www.postgresql.org/docs/current/sql-explain.html). All else in the statement is
// checked as if it ran: the planner works out functions that are IMMUTABLE or STABLE.

// isPlanOnly reports whether the text is one EXPLAIN that doesn't execute its statement.
func isPlanOnly(stmts []*sqltree.Node) bool {
	return len(stmts) == 1 && stmts[0].Get("stmt").Is("ExplainStmt") && !isAnalyzed(stmts[0].Get("stmt"))
}

// withoutProof returns the plan of a text that only has writes planned, without what is wrong with
// their proofs. It returns nil if the text is another one, or something else may be wrong with it
// that isn't told.
func (p *Plan) withoutProof(stmts []*sqltree.Node) *Plan {
	if n := len(p.Violations); n == 0 || n >= maxFound || !isPlanOnly(stmts) {
		return nil
	}
	out := *p
	out.Violations = slices.DeleteFunc(slices.Clone(p.Violations), func(v Violation) bool { return v.Rule.Class() == UnprovenWrite })
	if out.writes, out.tokens = nil, nil; len(out.Violations) == 0 {
		out.shared = nil // whichever table is meant, nothing is written
	}
	return &out
}
