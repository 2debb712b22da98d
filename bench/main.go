// Command bench measures fencerow beside what it competes with, and prints how
// it stands to its targets: raw is pgx's stdlib, or in the process a driver that
// does nothing; sqlmw and otelsql wrap the same driver and do nothing more.
//
//	go run ./bench [-rounds 5] [-benchtime 200ms] [-pairs 24] [-only regexp] [-skip-socket] [-out dir]
//
// It compiles the benchmarks of this directory once and runs them in rounds, so
// that what else the machine does falls on all rivals. Differences and ratios are
// taken within a round, and the median of the rounds counts. The output of each
// group is kept in a file for benchstat, in bench/results by default. One
// benchmark alone is run as usual:
//
//	cd bench && go test -run '^$' -bench InProcess/exec/guarded
//
// The socket groups need a PostgreSQL server, which package localpg finds or
// starts. Where there is a taskset, they are also run on one core, which shows
// less of a difference between placements of processes, and more of one between
// drivers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
)

// options are the flags of the command.
type options struct {
	rounds    int
	benchtime string
	pairs     int
	only      *regexp.Regexp
	socket    bool
	out       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures, and writes the tables.
func run(ctx context.Context, o *options, w io.Writer) error {
	r, err := newRunner(ctx, o)
	if err != nil {
		return err
	}
	defer r.close()
	for round := range o.rounds {
		for _, g := range r.groups {
			if g.once && round > 0 {
				continue
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, o.rounds, g.name)
			if err := r.measure(ctx, g); err != nil {
				return err
			}
		}
	}
	found, err := r.samples()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s/%s, %s, %d CPUs, %d rounds; raw output in %s\n", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), o.rounds, o.out)
	return printAll(w, found)
}

func parseFlags(args []string, w io.Writer) (*options, error) {
	var o options
	var only string
	var skipSocket bool
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.IntVar(&o.rounds, "rounds", 5, "how often each benchmark is run; the median counts")
	flags.StringVar(&o.benchtime, "benchtime", "200ms", "how long each benchmark in the process runs in a round")
	flags.IntVar(&o.pairs, "pairs", 24, "how many pairs of blocks each socket benchmark has in a round")
	flags.StringVar(&only, "only", "", "a regular expression; only the groups that match it are run: "+groupNames)
	flags.BoolVar(&skipSocket, "skip-socket", false, "leave out what needs a server")
	flags.StringVar(&o.out, "out", "", "the directory for the raw output (default bench/results)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q: there are only flags", flags.Arg(0))
	}
	if o.rounds < 1 || o.pairs < 1 {
		return nil, fmt.Errorf("-rounds %d -pairs %d: give numbers of at least 1", o.rounds, o.pairs)
	}
	var err error
	if o.only, err = regexp.Compile(only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	o.socket = !skipSocket
	return &o, nil
}
