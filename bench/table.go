package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// printAll writes the tables, as Markdown. One without figures is left out, but
// for that of the targets.
func printAll(w io.Writer, s *samples) error {
	for _, print := range []func(io.Writer, *samples) error{printTargets, printInProcess, printSocket, printOthers} {
		if err := print(w, s); err != nil {
			return err
		}
	}
	return nil
}

// printTargets writes each target, what was measured, and whether that meets it.
func printTargets(w io.Writer, s *samples) error {
	t := newTable(w, "Targets", "", "figure", "target:", "measured:", "rounds from:", "to:", "")
	for _, target := range targets() {
		measured, from, to, verdict := "not measured", "-", "-", "-"
		if v := target.measure(s); len(v) > 0 {
			measured, verdict = fmt.Sprintf(target.show, median(v)), target.verdict(median(v))
			from, to = fmt.Sprintf(target.show, slices.Min(v)), fmt.Sprintf(target.show, slices.Max(v))
		}
		t.row(target.number, target.what, target.bound(), measured, from, to, verdict)
	}
	t.row("7", "guarded UPDATE of 1 row on a walled table, of the rate without a wall", "≥ 0.85; synced ≥ 0.9", "by internal/wallbench", "-", "-", "-")
	return t.flush()
}

// rivals are compared with raw.
var rivals = []string{"sqlmw", "otelsql", "fencerow"}

// printInProcess writes what each rival costs over a driver that does nothing.
func printInProcess(w io.Writer, s *samples) error {
	heads := []string{"case", "raw, ns:"}
	for _, r := range rivals {
		heads = append(heads, r+", × raw:")
	}
	heads = append(heads, "fencerow − raw, ns:", "raw, allocs:")
	for _, r := range rivals {
		heads = append(heads, r+", + allocs:")
	}
	t := newTable(w, "In the process, over a driver that does nothing", heads...)
	for _, name := range s.names {
		name, isRaw := strings.CutSuffix(name, "/raw")
		if !isRaw || !strings.HasPrefix(name, "InProcess/") {
			continue
		}
		raw := name + "/raw"
		cells := []string{strings.TrimPrefix(name, "InProcess/"), figure("%.0f", median(s.at(raw, "ns/op", 0)))}
		for _, r := range rivals {
			cells = append(cells, figure("%.2f", median(s.ratios(name+"/"+r, raw, "ns/op"))))
		}
		cells = append(cells, figure("%+.0f", median(s.differences(name+"/fencerow", raw, "ns/op"))), figure("%.0f", median(s.at(raw, "allocs/op", 0))))
		for _, r := range rivals {
			cells = append(cells, figure("%+.0f", median(s.differences(name+"/"+r, raw, "allocs/op"))))
		}
		t.row(cells...)
	}
	return t.flush()
}

// printSocket writes throughputs and latencies over a socket.
func printSocket(w io.Writer, s *samples) error {
	t := newTable(w, "Over a socket to PostgreSQL, beside plain pgx", "case", "cores", "plain, op/s:", "fencerow, × plain:",
		"plain p50, µs:", "fencerow p50, µs:", "plain p99, µs:", "fencerow p99, µs:")
	for _, prefix := range []string{"", oneCore} {
		for _, name := range socketNames() {
			bench := prefix + name.bench
			if _, ok := s.results[bench]; !ok {
				continue
			}
			cells := []string{name.what, fmt.Sprint(s.most(bench)), figure("%.0f", median(s.at(bench, "plain-op/s", 0))), figure(byRatio, median(s.at(bench, "x-plain", 0)))}
			for _, unit := range []string{"plain-p50-ns", "fencerow-p50-ns", "plain-p99-ns", "fencerow-p99-ns"} {
				cells = append(cells, figure("%.1f", median(s.at(bench, unit, 0))/1000))
			}
			t.row(cells...)
		}
	}
	return t.flush()
}

// printOthers writes the rest: texts that were not seen before, the cache, and
// what more cores bring.
func printOthers(w io.Writer, s *samples) error {
	t := newTable(w, "Unseen texts, the cache, and its hits on more cores", "benchmark", "CPUs:", "ns/op:", "ns/KB:", "allocs/op:", "heap, × bound:", "hits:")
	for _, name := range s.names {
		group, _, _ := strings.Cut(name, "/")
		if group == "InProcess" || group == "Socket" || group+"/" == oneCore {
			continue
		}
		for _, cpus := range cpusOf(s.results[name]) {
			cells := []string{name, fmt.Sprint(cpus)}
			for _, c := range []struct{ unit, format string }{{"ns/op", "%.0f"}, {"ns/KB", "%.0f"}, {"allocs/op", "%.0f"}, {"x-bound", "%.3f"}, {"hits/op", "%.4f"}} {
				cells = append(cells, figure(c.format, median(s.at(name, c.unit, cpus))))
			}
			t.row(cells...)
		}
	}
	return t.flush()
}

func cpusOf(results []result) (out []int) {
	for _, r := range results {
		if !slices.Contains(out, r.cpus) {
			out = append(out, r.cpus)
		}
	}
	return out
}

// figure prints a number, or a dash for none.
func figure(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// table is one in Markdown, which is readable as it is.
type table struct {
	title string
	heads []string
	rows  [][]string
	w     io.Writer
}

// newTable begins a table. Columns whose head ends in a colon are numbers.
func newTable(w io.Writer, title string, heads ...string) *table {
	return &table{title: title, heads: heads, w: w}
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// flush writes the table if it has a row.
func (t *table) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	fmt.Fprintf(t.w, "\n### %s\n\n", t.title)
	w := tabwriter.NewWriter(t.w, 0, 0, 1, ' ', 0)
	var heads, rule []string
	for _, h := range t.heads {
		name, number := strings.CutSuffix(h, ":")
		heads = append(heads, name)
		rule = append(rule, map[bool]string{true: "---:", false: "---"}[number])
	}
	for _, cells := range append([][]string{heads, rule}, t.rows...) {
		fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| "))
	}
	return w.Flush()
}
