package rewrite_test

import (
	"database/sql/driver"
	"fmt"

	"github.com/fencerow/fencerow/rewrite"
)

// A policy says of a text whether it may be sent, and where the token belongs.
func Example() {
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Strict})
	if err != nil {
		panic(err)
	}
	fmt.Println(policy.Plan(`UPDATE orders SET status = $1 WHERE id = $2`).Refusal())

	plan := policy.Plan(`UPDATE orders SET status = $1, last_token = $3 WHERE id = $2 AND last_token < $3`)
	args, err := plan.Bind(8, []driver.NamedValue{{Ordinal: 1, Value: "paid"}, {Ordinal: 2, Value: int64(1)}, {Ordinal: 3, Value: int64(8)}})
	fmt.Println(len(args), err)
	// Output:
	// UPDATE on protected table "orders" has no last_token guard (FR101 unguarded-update)
	//     1 | UPDATE orders SET status = $1 WHERE id = $2
	//       |        ^^^^^^
	//   fix:  UPDATE orders SET status = $1, last_token = $3 WHERE id = $2 AND last_token < $3
	//   docs: rewrite/rules/FR101.md
	// 3 <nil>
}

// What reaches a protected table by another name is given as a closure.
func ExamplePolicy_WithClosure() {
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease})
	if err != nil {
		panic(err)
	}
	policy, err = policy.WithClosure(rewrite.Closure{Views: []rewrite.Name{{Schema: "public", Name: "open_orders"}}})
	if err != nil {
		panic(err)
	}
	for _, v := range policy.Plan(`UPDATE open_orders SET status = 'paid'`).Violations {
		fmt.Println(v.Rule, v.Rule.Slug())
	}
	// Output: FR210 view-write
}
