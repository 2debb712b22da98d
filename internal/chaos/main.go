// Command chaos contends for leases from many processes and writes through
// fencerow, while it stops and kills them, cuts their connections, kills
// PostgreSQL and promotes its standby. Then it checks that all that was
// promised was kept. docs/chaos.md says what is checked. It needs a Unix.
//
//	go run ./internal/chaos                          # everything, controls included
//	go run ./internal/chaos -runs async -duration 1m -seed 7
//	go run ./internal/chaos -runs async -duration 1m -seed 7 -schedule   # only says what it would do
//	go run ./internal/chaos -check DIR               # checks a history that was kept
//
// The exit code is 1 if something was violated, or a run had too little of what
// it is about, or a control, which has a fault on purpose, passed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fencerow/fencerow/internal/chaos/check"
	"github.com/fencerow/fencerow/internal/chaos/history"
	"github.com/fencerow/fencerow/internal/chaos/schedule"
	"github.com/fencerow/fencerow/internal/chaos/worker"
)

func main() {
	worker.MainIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	var o options
	flag.StringVar(&o.runs, "runs", "async,sync,sealed,wall,plain,report,nextval,excluded,unsealed", "the runs, by comma; those from plain on are controls")
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "of the runs async, sync and sealed, together")
	flag.DurationVar(&o.other, "other", 40*time.Second, "of each other run")
	flag.Uint64Var(&o.seed, "seed", 0, "of the schedule; 0 chooses one")
	flag.IntVar(&o.workers, "workers", 6, "processes")
	flag.BoolVar(&o.schedule, "schedule", false, "print what the nemesis would do, and end")
	flag.BoolVar(&o.verbose, "v", false, "say what the nemesis does")
	flag.BoolVar(&o.keep, "keep", false, "keep the histories, also those of runs that pass")
	flag.StringVar(&o.check, "check", "", "check the history in this directory, and end")
	flag.Parse()
	if err := o.main(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// options are those of the command line.
type options struct {
	runs              string
	duration, other   time.Duration
	seed              uint64
	workers           int
	schedule, verbose bool
	keep              bool
	check             string
}

func (o options) main(ctx context.Context) error {
	if o.check != "" {
		return recheck(o.check)
	}
	if o.seed == 0 {
		o.seed = 1 + rand.Uint64N(1_000_000)
	}
	configs, err := o.configs()
	if err != nil {
		return err
	}
	fmt.Printf("seed %d\n", o.seed)
	if o.schedule {
		printSchedule(configs[0])
		return nil
	}
	return o.runAll(ctx, configs)
}

// configs are the runs that are asked for.
func (o options) configs() ([]Config, error) {
	var configs []Config
	parts := 0
	for _, name := range strings.Split(o.runs, ",") {
		kind := Kind(name)
		if !slices.Contains(kinds(), kind) {
			return nil, fmt.Errorf("there is no run %q: choose of %v", name, kinds())
		}
		if kind.main() {
			parts++
		}
		configs = append(configs, Config{Kind: kind, Seed: o.seed, Workers: o.workers, Say: o.say})
	}
	for i := range configs {
		c := &configs[i]
		c.Duration = o.other
		if c.Kind.main() {
			c.Duration = o.duration / time.Duration(parts)
		}
		c.Limit = 2 * c.Duration
	}
	return configs, nil
}

func (o options) say(format string, args ...any) {
	if o.verbose {
		fmt.Printf(format+"\n", args...)
	}
}

func printSchedule(c Config) {
	for e := range schedule.Of(c.schedule()) {
		if e.At > c.Duration {
			return
		}
		fmt.Println(e)
	}
}

// runAll runs one after the other, prints the table and says what failed.
func (o options) runAll(ctx context.Context, configs []Config) error {
	var (
		results []*Result
		failed  error
	)
	for _, c := range configs {
		fmt.Printf("%s: %v with %d workers\n", c.Kind, c.Duration, c.Workers)
		r, err := run(ctx, c)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.Kind, err))
			break
		}
		results = append(results, r)
		printViolations(os.Stdout, r)
		problem := r.Problem()
		if problem != "" {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", c.Kind, problem))
		}
		if problem != "" || o.keep {
			dir, err := keep(r)
			fmt.Printf("the history is in %s; check it again with -check\n", dir)
			failed = errors.Join(failed, err)
		}
	}
	fmt.Printf("\nseed %d\n\n", configs[0].Seed)
	return errors.Join(printTable(os.Stdout, results), failed)
}

// keep writes the history of a run that failed where it can be found.
func keep(r *Result) (dir string, err error) {
	dir, err = os.MkdirTemp("", "fencerow-chaos-"+string(r.Config.Kind)+"-")
	if err == nil {
		err = r.History.Save(dir)
	}
	if err != nil {
		err = fmt.Errorf("keep the history: %w", err)
	}
	return dir, err
}

// recheck checks a history that was kept.
func recheck(dir string) error {
	h, err := history.Load(dir)
	if err != nil {
		return err
	}
	kind := asynchronous
	if h.Sync {
		kind = synchronous
	}
	r := &Result{Config: Config{Kind: kind}, History: h, Counts: check.Count(h), Violations: check.All(h)}
	printViolations(os.Stdout, r)
	if err := printTable(os.Stdout, []*Result{r}); err != nil {
		return err
	}
	if problem := r.Problem(); problem != "" {
		return errors.New(problem)
	}
	return nil
}
