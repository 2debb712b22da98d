package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report prints the table, the skips and the problems. Its error says that
// there are problems.
func report(w io.Writer, tallies []tally, list []skip) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "tests, by exec mode\tpassed\tfailed\tskipped")
	problems := 0
	for _, t := range tallies {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", t.run, t.passed, t.failed, t.skipped)
		problems += len(t.problems)
	}
	fmt.Fprintln(table, "\nskipped\treason")
	for _, s := range list {
		fmt.Fprintf(table, "%s\t%s\n", s.name, s.reason)
		if s.only != "" {
			fmt.Fprintf(table, "\t(%s)\n", s.only)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, t := range tallies {
		for _, p := range t.problems {
			fmt.Fprintf(w, "\n%s\n", p)
		}
	}
	if problems > 0 {
		return fmt.Errorf("tests that don't end as they should: %d", problems)
	}
	return nil
}
