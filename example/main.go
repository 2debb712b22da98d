//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencerow/fencerow/internal/localpg"
)

const usage = `usage: go run ./example [-unsafe] [-wait]

Two workers, A and B, are to rewrite one row; a lock says whose turn it is. A is
frozen in the middle of its work (SIGSTOP), the lock goes to B, B writes the
row, and A wakes up (SIGCONT) and writes, too. With every lock comes a token, a
number larger than all before; fencerow lets no write reach the row unless it
compares tokens, so A's late write is rejected and B's stays.

  -unsafe  the same run with a plain driver: A's late write destroys B's
  -wait    wait for Enter while A is frozen, to look around with psql

It starts a PostgreSQL of its own, and removes it at the end. To use a running
one, set FENCEROW_DATABASE_URL: tables protected_rows (unprotected_rows with
-unsafe) and schema fencing are made in that database, and stay there.

The exit status is 0 if all came out as told, else 1.
`

func main() {
	if name := os.Getenv(envWorker); name != "" {
		fmt.Fprintf(os.Stderr, "worker %s: %v\n", name, serve(name))
		os.Exit(1)
	}
	flags := flag.NewFlagSet("example", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	unsafe := flags.Bool("unsafe", false, "")
	wait := flags.Bool("wait", false, "")
	err := flags.Parse(os.Args[1:])
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("it takes no arguments but flags, and there is %q", flags.Arg(0))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "example: %v; -h explains\n", err)
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the cleanup
	// Without this a closed pipe (example | head) would end us before the cleanup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	if err := run(ctx, *unsafe, *wait); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run opens the server, plays, and clears up.
func run(ctx context.Context, unsafe, wait bool) error {
	t := &timeline{out: os.Stdout, start: time.Now()}
	t.note("Two workers rewrite one row, and a lock says whose turn it is. One is paused while it holds it.")
	if unsafe {
		t.note("Nothing but the lock protects the row.\n")
	} else {
		t.note("Each lock comes with a token, larger than all before. A write must carry its token, and counts only if the row has no newer one.\n")
	}
	t.say("database", "starts")
	server, err := localpg.Open(ctx)
	if err != nil {
		return interrupted(ctx, err)
	}
	s := &scenario{timeline: t, dsn: server.DSN(""), look: func(context.Context) error { return nil }}
	patience := time.Minute // each step takes milliseconds
	if wait {
		patience = 24 * time.Hour
		s.look = func(ctx context.Context) error { return lookAround(ctx, t, server) }
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = interrupted(ctx, s.stage(limited, server.Version(), unsafe))
	return errors.Join(err, server.Stop())
}

// interrupted is err, unless that is only what a signal has made of the run.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// stage prepares the table, starts the workers, and plays.
func (s *scenario) stage(ctx context.Context, version string, unsafe bool) error {
	play, prepare := s.fenced, protect
	if unsafe {
		play, prepare = s.unfenced, leaveUnprotected
	}
	if err := prepare(ctx, s.dsn); err != nil {
		return err
	}
	s.say("database", "PostgreSQL %s is ready; row 1 holds %q", version, initial)

	var err error
	if s.a, err = startWorker(ctx, "A", s.dsn, unsafe); err != nil {
		return err
	}
	defer s.a.end()
	if s.b, err = startWorker(ctx, "B", s.dsn, unsafe); err != nil {
		return err
	}
	defer s.b.end()
	s.say("scheduler", "starts worker A (process %d) and worker B (process %d)", s.a.pid, s.b.pid)
	return play(ctx)
}

// lookAround waits for the Enter key.
func lookAround(ctx context.Context, t *timeline, server *localpg.Server) error {
	fmt.Fprintln(t.out)
	if server.DataDir() != "" { // in another server's connection string there may be a password
		fmt.Fprintf(t.out, "    psql '%s'\n", server.DSN(""))
	}
	fmt.Fprint(t.out, "    press Enter to go on\n\n")
	pressed := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(pressed)
	}()
	select {
	case <-pressed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
