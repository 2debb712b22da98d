package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pgparser "github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/rewrite"
)

// variants is how many texts there are of each sort, so that the processor does
// not learn one by heart.
const variants = 64

// entities are the tables that ordinary texts read.
var entities = []string{"customers", "invoices", "products", "shipments", "addresses", "payments", "sessions", "reviews"}

// ordinary is a query as programs send them, with joins up to a length.
func ordinary(variant, length int) string {
	var columns, joins, conditions strings.Builder
	main := entities[variant%len(entities)]
	fmt.Fprintf(&columns, "SELECT m.id, m.created_at, m.state_%d", variant)
	fmt.Fprintf(&joins, " FROM %s m", main)
	fmt.Fprintf(&conditions, " WHERE m.tenant_id = $1 AND m.deleted_at IS NULL")
	const end = " ORDER BY m.created_at DESC, m.id LIMIT 50"
	for i := 0; columns.Len()+joins.Len()+conditions.Len()+len(end) < length-150; i++ {
		other := entities[(variant+i*3+1)%len(entities)]
		fmt.Fprintf(&columns, ", t%d.name AS %s_name, coalesce(t%d.amount, 0)", i, other, i)
		fmt.Fprintf(&joins, " LEFT JOIN %s t%d ON t%d.%s_id = m.id", other, i, i, main)
		fmt.Fprintf(&conditions, " AND (t%d.status = 'active' OR t%d.id > %d)", i, i, i*10)
	}
	return columns.String() + joins.String() + conditions.String() + end
}

// literals is an INSERT of rows whose values are written out.
func literals(variant, length int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s (id, name, note, price, created_at, ratio) VALUES ", entities[variant%len(entities)])
	for i := 0; b.Len() < length-100; i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		n := variant*1000 + i
		fmt.Fprintf(&b, "(%d, 'name %d', 'it''s a note of some length, number %d', %d.50, '2026-01-02 03:04:05+00', %d.25e-3)", n, n, n, n, n)
	}
	return b.String()
}

var unprotectedSorts = map[string]func(variant, length int) string{"ordinary": ordinary, "literals": literals}

// policyOf protects orders and as many more tables.
func policyOf(tb testing.TB, tables int) *rewrite.Policy {
	tb.Helper()
	list := []rewrite.Table{{Name: "orders", Mode: rewrite.Strict}}
	for i := range tables - 1 {
		list = append(list, rewrite.Table{Name: fmt.Sprintf("ledger_%05d", i), Mode: rewrite.Strict})
	}
	policy, err := rewrite.NewPolicy(list...)
	require.NoError(tb, err)
	return policy.ForPath("public")
}

// texts are all variants of a sort.
func texts(sort func(variant, length int) string, s size) (out []string, bytes int) {
	for i := range variants {
		out = append(out, sort(i, s.bytes))
		bytes += len(out[i])
	}
	return out, bytes
}

var (
	quickSizes   = []size{middle, large}
	quickTables  = map[string]int{"1table": 1, "10000tables": 10000}
	guardedSizes = []size{small, middle, large}
)

// BenchmarkQuickWayOut is the check of a text that was not seen before and names
// nothing protected.
func BenchmarkQuickWayOut(b *testing.B) {
	for _, sort := range []string{"ordinary", "literals"} {
		for _, s := range quickSizes {
			list, bytes := texts(unprotectedSorts[sort], s)
			for _, tables := range []string{"1table", "10000tables"} {
				policy := policyOf(b, quickTables[tables])
				b.Run(sort+"/"+s.name+"/"+tables, func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						if !policy.Plan(list[i%variants]).Cleared {
							b.Fatal("not cleared")
						}
					}
					perText := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
					b.ReportMetric(perText/(float64(bytes)/variants/1024), "ns/KB")
				})
			}
		}
	}
}

// parser reads a text.
type parser struct {
	name string
	ok   func(text string) bool
}

func parsers(policy *rewrite.Policy) []parser {
	return []parser{
		{"pg_query", func(text string) bool { _, err := pgparser.ParseMessages(text); return err == nil }},
		{"fencerow", func(text string) bool { return policy.Plan(text).Guarded() }},
	}
}

// BenchmarkGuardedPlan is the check of a guarded write that was not seen before,
// beside what the parser's own tree of it costs.
func BenchmarkGuardedPlan(b *testing.B) {
	for _, s := range guardedSizes {
		list := numbered(execText(guarded, s), variants)
		for _, p := range parsers(policyOf(b, 1)) {
			b.Run(s.name+"/"+p.name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if !p.ok(list[i%variants]) {
						b.Fatal("not read as it should be")
					}
				}
			})
		}
	}
}

// The texts are SQL, of their length, and what they are said to be, whatever is
// protected beside.
func TestMissTexts(t *testing.T) {
	few, many := policyOf(t, 1), policyOf(t, 10000)
	require.Len(t, many.Tables(), 10000)
	for name, sort := range unprotectedSorts {
		for _, s := range []size{middle, large} {
			list, bytes := texts(sort, s)
			require.InEpsilon(t, s.bytes*variants, bytes, 0.15, name)
			for _, text := range list {
				require.True(t, few.Plan(text).Cleared, text)
				require.True(t, many.Plan(text).Cleared, text)
			}
			_, err := pgparser.ParseMessages(list[variants-1])
			require.NoError(t, err, name)
		}
	}
	for _, text := range numbered(execText(guarded, large), variants) {
		plan := few.Plan(text)
		require.True(t, plan.Guarded())
		require.NoError(t, plan.Refusal())
	}
}
