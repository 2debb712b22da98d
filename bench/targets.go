package main

import (
	"fmt"
	"strings"
)

// target is a row of the first table.
type target struct {
	number  string
	what    string
	limit   float64
	atLeast bool                     // the limit is the least, not the most
	beside  bool                     // shown beside a target, and not one itself
	show    string                   // how figures are printed
	measure func(*samples) []float64 // by round
}

// verdict says whether a figure meets the target.
func (t target) verdict(v float64) string {
	switch {
	case t.beside:
		return "-"
	case t.atLeast && v >= t.limit, !t.atLeast && v <= t.limit:
		return "met"
	}
	return "NOT met"
}

// bound is the limit in words.
func (t target) bound() string {
	sign := "≤ "
	switch {
	case t.beside:
		return "-"
	case t.atLeast:
		sign = "≥ "
	}
	return sign + fmt.Sprintf("%g", t.limit) + t.unit()
}

// unit is what follows the number.
func (t target) unit() string {
	_, unit, found := strings.Cut(t.show, " ")
	if !found {
		return ""
	}
	return " " + unit
}

const (
	byRatio = "%.3f"
	byNanos = "%.1f ns"
	byCount = "%.0f"
)

// targets are all of them, in order.
func targets() []target {
	all := append(inProcessTargets(), missTargets()...)
	all = append(all, socketTargets()...)
	return append(all, cacheTargets()...)
}

func inProcessTargets() []target {
	const unprotected, guarded = "InProcess/exec/unprotected/hit/", "InProcess/exec/guarded/hit/"
	difference := func(name, unit string) func(*samples) []float64 {
		return func(s *samples) []float64 { return s.differences(name+"/fencerow", name+"/raw", unit) }
	}
	out := []target{
		{number: "1", what: "unprotected Exec, over raw", limit: 50, show: byNanos, measure: difference(unprotected+"100B", "ns/op")},
		{number: "1", what: "unprotected Exec, allocations over raw", show: byCount, measure: difference(unprotected+"100B", "allocs/op")},
	}
	for _, size := range []string{"100B", "1KB", "10KB"} {
		name := guarded + size
		out = append(out,
			target{number: "2", what: "guarded Exec of " + size + ", of sqlmw's time", limit: 0.9, show: byRatio, beside: size != "100B",
				measure: ratioOf(name+"/fencerow", name+"/sqlmw")},
			target{number: "2", what: "guarded Exec of " + size + ", allocations over raw", show: byCount, beside: size != "100B", measure: difference(name, "allocs/op")})
	}
	return out
}

func missTargets() []target {
	const many = "10,000 tables"
	var out []target
	for _, size := range []string{"1KB", "10KB"} {
		for _, sort := range []string{"ordinary", "literals"} {
			limit, name := 1000.0, "QuickWayOut/"+sort+"/"+size
			if sort == "literals" {
				limit = 1500
			}
			out = append(out,
				target{number: "3", what: "unseen text without a protected name, " + sort + ", " + size + ", per KB", limit: limit, show: byNanos,
					measure: func(s *samples) []float64 { return s.at(name+"/1table", "ns/KB", 0) }},
				target{number: "3", what: "the same with " + many + ", of the time with one", limit: 1.3, show: byRatio,
					measure: ratioOf(name+"/10000tables", name+"/1table")})
		}
	}
	for _, size := range []string{"100B", "1KB", "10KB"} {
		name := "GuardedPlan/" + size
		out = append(out, target{number: "4", what: "unseen guarded UPDATE of " + size + ", of pg_query.Parse's time", limit: 0.4, show: byRatio,
			measure: ratioOf(name+"/fencerow", name+"/pg_query")})
	}
	return out
}

// socketTargets are met, or not, with the cores that there are. On one core the
// driver's own work is never hidden by waiting.
func socketTargets() (out []target) {
	for _, prefix := range []string{"", oneCore} {
		for _, name := range socketNames() {
			if prefix != "" && !name.few {
				continue
			}
			what := name.what
			if prefix != "" {
				what += ", on one core"
			}
			out = append(out, target{number: "5", what: what + ", of plain pgx's throughput", limit: 0.98, atLeast: true, beside: prefix != "", show: byRatio,
				measure: func(s *samples) []float64 { return s.at(prefix+name.bench, "x-plain", 0) }})
		}
	}
	return out
}

func cacheTargets() (out []target) {
	metric := func(kind, unit string) func(*samples) []float64 {
		return func(s *samples) []float64 { return s.at("Cache/"+kind, unit, 0) }
	}
	for _, kind := range []string{"unprotected", "guarded", "refused"} {
		out = append(out, target{number: "6", what: "distinct texts, " + kind + ": growth of the heap, of the bound", limit: 1.25, show: byRatio, measure: metric(kind, "x-bound")})
	}
	out = append(out, target{number: "6", what: "hits of a working set among a million distinct texts", limit: 0.999, atLeast: true, show: "%.4f", measure: metric("unprotected", "hits/op")})
	for _, where := range []string{"own", "shared"} {
		out = append(out, target{number: "6", what: "hits in the " + where + " cache: gain by more cores, of raw's gain", limit: 0.9, atLeast: true, show: byRatio,
			measure: func(s *samples) []float64 { return s.gains("Scaling/"+where+"/fencerow", "Scaling/"+where+"/raw") }})
	}
	return out
}

// gains compare how much faster two benchmarks are on all cores than on one.
func (s *samples) gains(a, b string) []float64 {
	if s.most(a) < 2 {
		return nil // there is but one
	}
	return combined(s.speedups(a), s.speedups(b), quotient)
}

// speedups are the throughput on all cores as a multiple of that on one.
func (s *samples) speedups(name string) []float64 {
	return combined(s.at(name, "ns/op", 1), s.at(name, "ns/op", s.most(name)), quotient)
}

func ratioOf(a, b string) func(*samples) []float64 {
	return func(s *samples) []float64 { return s.ratios(a, b, "ns/op") }
}

// socketName is a benchmark over a socket.
type socketName struct {
	bench, what string
	op          string
	goroutines  int
	few         bool // also run on one core, for which these are enough
}

func socketNames() (out []socketName) {
	for _, op := range []string{"exec", "query", "prepared", "guarded"} {
		for _, n := range []int{1, 4, 32} {
			out = append(out, socketName{fmt.Sprintf("Socket/%s/at%d", op, n), fmt.Sprintf("%s, goroutines: %d", op, n), op, n, n < 32})
		}
	}
	return out
}
