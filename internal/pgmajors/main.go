// Command pgmajors runs a command once on each major version of PostgreSQL
// beside the installed one, with FENCEROW_PG_BIN naming its server. The servers
// are those that package pgdownload pins; they are fetched when first needed, and
// kept where localpg keeps them.
//
//	go run ./internal/pgmajors [-majors 16,18] -- go test ./driver
//
// The exit status is 1 if the command fails on one of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/internal/pgdownload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the command
	majors := flag.String("majors", "", "the major versions, such as 16,18 (default all)")
	flag.Parse()
	if err := run(ctx, *majors, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pgmajors:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, majors string, command []string) error {
	if len(command) == 0 {
		return errors.New("no command given: name one after --, such as go test ./driver")
	}
	chosen, err := choose(majors)
	if err != nil {
		return err
	}
	return runAll(ctx, os.Stdout, chosen, localpg.Download, command)
}

// choose returns the releases of the majors, which a comma separates, or all.
func choose(majors string) ([]pgdownload.Release, error) {
	if majors == "" {
		return pgdownload.Releases, nil
	}
	var chosen []pgdownload.Release
	for major := range strings.SplitSeq(majors, ",") {
		i := slices.IndexFunc(pgdownload.Releases, func(r pgdownload.Release) bool { return r.Major() == major })
		if i < 0 {
			return nil, fmt.Errorf("no server of PostgreSQL %q is pinned: add one to internal/pgdownload/pins.go", major)
		}
		chosen = append(chosen, pgdownload.Releases[i])
	}
	return chosen, nil
}

// outcome is how the command ended on one release.
type outcome struct {
	pgdownload.Release
	err  error
	took time.Duration
}

// runAll runs the command on each release, also after one has failed, and ends
// with a table.
func runAll(ctx context.Context, w io.Writer, chosen []pgdownload.Release, server func(context.Context, pgdownload.Release) (string, error), command []string) error {
	var outcomes []outcome
	for _, r := range chosen {
		fmt.Fprintf(w, "--- PostgreSQL %s\n", r.Major())
		start := time.Now()
		bin, err := server(ctx, r)
		if err == nil {
			start = time.Now()
			err = execute(ctx, w, bin, command)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		outcomes = append(outcomes, outcome{r, err, time.Since(start)})
	}
	return table(w, outcomes)
}

// execute runs the command with the server in bin. FENCEROW_DATABASE_URL would
// lead it to another.
func execute(ctx context.Context, w io.Writer, bin string, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FENCEROW_DATABASE_URL=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "FENCEROW_PG_BIN="+bin)
	cmd.Stdout, cmd.Stderr = w, w
	// go test stops its tests, and they their servers
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd.Run()
}

// table writes how each release fared. The error says which have failed.
func table(w io.Writer, outcomes []outcome) error {
	var failed []string
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range outcomes {
		result := "ok"
		if o.err != nil {
			result = "failed: " + strings.ReplaceAll(o.err.Error(), "\n", " ")
			failed = append(failed, o.Major())
		}
		fmt.Fprintf(tw, "PostgreSQL %s\t%s\t%s\t%s\n", o.Major(), o.Version, o.took.Round(time.Second), result)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("failed on PostgreSQL %s", strings.Join(failed, ", "))
	}
	return nil
}
