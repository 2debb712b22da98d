package check

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/tokenctx"
)

const benchGuarded = `UPDATE protected_rows SET value = $1, grp = grp + 1, last_token = $2 WHERE id = $3 AND last_token < $2 RETURNING id, value`

// BenchmarkPlan is the check of a text that has not been seen before.
func BenchmarkPlan(b *testing.B) {
	p := casesPolicy(b, Strict)
	for name, sql := range map[string]string{
		"cleared": `SELECT u.id, u.name, u.email FROM users u JOIN jobs j ON j.id = u.id WHERE u.active AND j.state = $1 ORDER BY u.created_at DESC LIMIT 50`,
		"guarded": benchGuarded,
		"refused": `UPDATE protected_rows SET value = $1 WHERE id = $2`,
		"1KB":     benchGuarded + strings.Repeat(", coalesce(grp, 0) + 1 AS more", 30),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Plan(sql)
			}
		})
	}
	// the yardstick: what the parser's own tree costs
	b.Run("pg_query.Parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parser.ParseMessages(benchGuarded); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBind is what a statement costs whose plan is known.
func BenchmarkBind(b *testing.B) {
	plan := casesPolicy(b, Strict).Plan(benchGuarded)
	ctx := tokenctx.With(b.Context(), 8)
	args := []driver.NamedValue{{Ordinal: 1, Value: "a"}, {Ordinal: 2, Value: tokenctx.Arg}, {Ordinal: 3, Value: int64(1)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := plan.BindAll(ctx, args); err != nil {
			b.Fatal(err)
		}
	}
}
