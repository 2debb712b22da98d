package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	statements := flag.Int("statements", 100_000, "how many statements have to be answered")
	control := flag.Int("control", 5_000, "and in the control, which has tokens raised behind the holders' backs; 0 for none")
	seed := flag.Uint64("seed", 0, "of the statements and the faults; 0 chooses one")
	flag.Parse()
	if *seed == 0 {
		*seed = 1 + rand.Uint64N(1_000_000)
	}
	if err := runAll(ctx, *seed, *statements, *control); err != nil {
		fmt.Fprintln(os.Stderr, "alarms:", err)
		os.Exit(1)
	}
}

func runAll(ctx context.Context, seed uint64, statements, control int) error {
	fmt.Printf("seed %d\n", seed)
	configs := []config{{seed: seed, statements: statements}}
	if control > 0 {
		configs = append(configs, config{seed: seed, statements: control, isRaised: true})
	}
	var (
		results []*result
		failed  error
	)
	for _, c := range configs {
		r, err := run(ctx, c)
		failed = errors.Join(failed, err)
		if r == nil {
			break
		}
		results = append(results, r) // also of a run that was interrupted
		if problem := r.problem(); problem != "" {
			failed = errors.Join(failed, errors.New(problem))
		}
		printExamples(os.Stdout, r)
		if err != nil {
			break
		}
	}
	if len(results) == 0 {
		return failed
	}
	fmt.Printf("\nseed %d\n\n", seed)
	return errors.Join(printTable(os.Stdout, results), failed)
}

// printExamples prints some of the alarms.
func printExamples(out io.Writer, r *result) {
	for _, v := range verdicts() {
		for _, example := range r.examples[v] {
			fmt.Fprintf(out, "%s: %s\n", v, example)
		}
	}
}

// printTable prints the counts of runs beside each other, as Markdown that is aligned.
func printTable(out io.Writer, results []*result) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	line := func(name string, value func(*result) any) {
		fmt.Fprintf(w, "| %s", name)
		for _, r := range results {
			fmt.Fprintf(w, "\t| %v", value(r))
		}
		fmt.Fprintln(w, "\t|")
	}
	line("", func(r *result) any { return map[bool]string{false: "alarms", true: "raised"}[r.isRaised] })
	line("---", func(*result) any { return "---:" })
	line("seconds", func(r *result) any { return int(r.time.Seconds()) })
	for _, kind := range kinds {
		line("faults: "+string(kind), func(r *result) any { return r.faults[kind] })
	}
	line("take-overs of another lease", func(r *result) any { return r.takeOvers })
	line("**statements answered**", func(r *result) any { return fmt.Sprintf("**%d**", r.answers) })
	names := func(of func(*result) map[string]int) []string { return slices.Sorted(maps.Keys(of(results[0]))) }
	for _, name := range names(func(r *result) map[string]int { return r.ways }) {
		line("sent by "+name, func(r *result) any { return r.ways[name] })
	}
	for _, name := range names(func(r *result) map[string]int { return r.kinds }) {
		line(name, func(r *result) any { return r.kinds[name] })
	}
	line("shapes", func(r *result) any { return len(r.shapes) })
	line("fewest of a shape", func(r *result) any { return fewest(r.shapes) })
	for _, v := range verdicts() {
		line(string(v), func(r *result) any { return r.verdicts[v] })
	}
	line("**alarms**", func(r *result) any { return fmt.Sprintf("**%d**", r.alarms) })
	return w.Flush()
}

// fewest returns the smallest of some counts, 0 if there are none.
func fewest(counts map[string]int) int {
	if len(counts) == 0 {
		return 0
	}
	return slices.Min(slices.Collect(maps.Values(counts)))
}
