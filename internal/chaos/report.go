package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/check"
	"github.com/fencerow/fencerow/internal/chaos/schedule"
)

// line is one line of the table.
type line struct {
	name  string
	value func(*Result) string
}

// printTable prints the results side by side, as Markdown that is aligned.
func printTable(out io.Writer, results []*Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprint(w, "| ")
	for _, r := range results {
		fmt.Fprintf(w, "\t| %s", r.Config.Kind)
	}
	fmt.Fprint(w, "\t|\n|---")
	fmt.Fprint(w, strings.Repeat("\t|---:", len(results)))
	fmt.Fprintln(w, "\t|")
	for _, l := range lines() {
		fmt.Fprintf(w, "| %s", l.name)
		for _, r := range results {
			fmt.Fprintf(w, "\t| %s", l.value(r))
		}
		fmt.Fprintln(w, "\t|")
	}
	return w.Flush()
}

func lines() []line {
	number := func(name string, value func(check.Counts) int) line {
		return line{name, func(r *Result) string { return fmt.Sprint(value(r.Counts)) }}
	}
	lines := []line{
		{"seconds of chaos", func(r *Result) string { return fmt.Sprintf("%.0f", r.Counts.Time.Round(time.Second).Seconds()) }},
	}
	for _, kind := range schedule.Kinds() {
		lines = append(lines, number("faults: "+string(kind), func(c check.Counts) int { return c.Faults[string(kind)] }))
	}
	lines = append(lines,
		number("tokens granted", func(c check.Counts) int { return c.Grants }),
		number("take-overs during a pause", func(c check.Counts) int { return c.TakeOvers }),
		number("writes accepted", func(c check.Counts) int { return c.Accepted }),
		number("writes of present holders", func(c check.Counts) int { return c.Present }),
		line{"false alarms among these", func(r *Result) string { return fmt.Sprint(len(violationsOf(r, "alarms"))) }},
		number("writes rejected as stale", func(c check.Counts) int { return c.Stale }),
		number("strict writes rejected as stale", func(c check.Counts) int { return c.Late }),
		number("writes rejected as replays", func(c check.Counts) int { return c.Replays }),
		number("writes refused or not sent", func(c check.Counts) int { return c.Refused }),
		number("writes of unknown outcome", func(c check.Counts) int { return c.Unknown }),
		number("reads", func(c check.Counts) int { return c.Reads }),
		number("acknowledged, lost by a failover", func(c check.Counts) int { return c.Lost }),
		number("replays of a write so lost", func(c check.Counts) int { return c.Forgotten }),
		line{"**violations**", func(r *Result) string { return fmt.Sprintf("**%d**", len(r.Violations)) }},
	)
	for _, c := range check.Checks() {
		lines = append(lines, line{"violations: " + c.Name, func(r *Result) string { return fmt.Sprint(len(violationsOf(r, c.Name))) }})
	}
	return lines
}

func violationsOf(r *Result, name string) []check.Violation {
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v check.Violation) bool { return v.Check != name })
}

// shown is how many violations of a check are printed.
const shown = 3

// printViolations prints the first violations of each check.
func printViolations(out io.Writer, r *Result) {
	for _, c := range check.Checks() {
		found := violationsOf(r, c.Name)
		if len(found) > 0 {
			fmt.Fprintf(out, "%s, %s (%s): %d\n", r.Config.Kind, c.Name, c.Doc, len(found))
		}
		for _, v := range found[:min(len(found), shown)] {
			fmt.Fprintf(out, "  %s\n", v)
		}
	}
}
