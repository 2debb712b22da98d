// Package check finds out what an SQL text writes and what proves that it may.
// It parses with PostgreSQL's own grammar, and needs no database. Package rewrite
// is its face for users; what only the driver asks for stays here.
//
//	policy, err := check.NewPolicy(check.Table{Name: "orders", Mode: check.Strict})
//	...
//	plan := policy.Plan(`UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token < $2`)
//	if err := plan.Refusal(); err != nil {
//	    return err // a *Violation: the rule, the place in the text, and what to write instead
//	}
//	args, err = plan.Bind(token, args) // the token in its place, or a *Violation
//
// A write to a protected table is provable if the same statement compares the
// token column with the token (the guard) and sets it to the token (the
// raise); the rules are in the files named for the statements, and each has a
// page in rewrite/rules. Whatever the check does not know, it refuses.
//
// What a text alone does not show (partitions, views, cascades, functions that
// write) is given to the policy as its [Closure].
package check
