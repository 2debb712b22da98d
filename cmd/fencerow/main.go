// Command fencerow checks SQL files for writes of protected tables without a
// proven guard, and installs, registers and examines what fencerow has in the
// database. docs/cli.md describes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the program with what the process has. A second signal ends it
// at once.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, newEnvironment(), os.Args[1:])
}

// The exit codes.
const (
	exitClean    = 0
	exitFindings = 1 // what was asked for is there, and not as it should be
	exitError    = 2
)

// environment is what the program has of the process.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	colour         bool // stdout is a terminal that may be sent colours
	progress       *progress
}

func newEnvironment() *environment {
	isTerminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	e := &environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	e.colour = isTerminal(os.Stdout) && wantsColour(os.Getenv)
	if isTerminal(os.Stderr) {
		e.progress = newProgress(os.Stderr)
		e.stdout = &clearing{e.progress, os.Stdout}
	}
	return e
}

// wantsColour heeds https://no-color.org.
func wantsColour(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// errFindings ends a command whose findings have been printed.
var errFindings = errors.New("there are findings")

// run runs the program and returns its exit code.
func run(ctx context.Context, env *environment, args []string) int {
	root := newRoot(env)
	root.SetArgs(behindFlags(args))
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitClean
	case errors.Is(err, errFindings):
		return exitFindings
	case ctx.Err() != nil:
		fmt.Fprintln(env.stderr, "fencerow: interrupted")
	default:
		fmt.Fprintln(env.stderr, "fencerow: "+forShell(err.Error()))
	}
	return exitError
}

// forShell says in commands what the packages say in Go.
func forShell(text string) string {
	return strings.NewReplacer(
		"migrations.Up(ctx, dsn)", "fencerow migrate up",
		"migrations.Up and migrations.Register", "fencerow migrate up and fencerow register",
		"migrations.Up", "fencerow migrate up",
		"migrations.Register", "fencerow register",
		"migrations.WallOff, migrations.WallReport, migrations.WallEnforce or migrations.WallAttested", "off, report, enforce or attested",
		"migrations.Strict", "strict",
		"migrations.Lease", "lease",
	).Replace(text)
}
