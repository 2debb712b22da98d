package gate_test

import (
	"context"
	"fmt"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/gate"
)

// A text is judged by the tables that are enforced, as a session with a search path sees
// them. Its plan is kept for all sessions with the same path.
func Example() {
	ctx := context.Background()
	tables := []gate.Table{{Table: check.Table{Schema: "public", Name: "orders", TokenColumn: "last_token", Mode: check.Strict}, Level: gate.Enforce}}
	protection, err := gate.NewProtection(tables, gate.ClosuresOf(tables, nil, nil), 1<<20)
	if err != nil {
		panic(err)
	}
	view := protection.View([]string{"public"})
	for _, text := range []string{
		`UPDATE orders SET status = $1 WHERE id = $2`,
		`UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token < $2`,
		`UPDATE notes SET body = $1`,
		`UPDATE notes SET body = $1`,
	} {
		plan, isKnown := view.Plan(ctx, text, gate.EnforcedTables)
		fmt.Println("refused:", plan.Refusal() != nil, "names nothing protected:", plan.Cleared, "known:", isKnown)
	}
	// Output:
	// refused: true names nothing protected: false known: false
	// refused: false names nothing protected: false known: false
	// refused: false names nothing protected: true known: false
	// refused: false names nothing protected: true known: true
}
