// Command pgxsuite runs pgx's own test suite for database/sql (sql_test.go of
// its package stdlib) through fencerow's driver, to show that swapping the
// driver changes nothing else. The suite is that of the pgx version in go.mod:
// it is taken from the module cache and changed only where it opens a database.
// It runs through pgx alone, then through fencerow with more and more to check,
// each time on a fresh database.
//
//	go run ./internal/pgxsuite
//
// The exit status is 1 if a test fails that passes through pgx alone and isn't
// listed in skips.go, if a listed one would pass or fails for another reason than
// its own, or if a test fails through pgx alone: there is nothing to compare then.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/fencerow/fencerow/internal/localpg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the cleanup
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pgxsuite:", err)
		os.Exit(1)
	}
}

// run builds the suite, opens the server, and clears up.
func run(ctx context.Context) (err error) {
	s, err := find(ctx)
	if err != nil {
		return err
	}
	b, err := build(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	srv, err := localpg.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()

	tallies, err := runAll(ctx, b, srv, s.source)
	if err != nil {
		return err
	}
	fmt.Printf("pgx %s, PostgreSQL %s, %s: %d tests\n\n", s.version, srv.Version(), runtime.Version(), len(s.source.tests()))
	return report(os.Stdout, tallies, skips)
}

// runAll runs the suite through pgx, and through fencerow in each of the ways.
func runAll(ctx context.Context, b *binaries, srv *localpg.Server, suite *source) ([]tally, error) {
	dsn, err := database(ctx, srv, "plain")
	if err != nil {
		return nil, err
	}
	plain, err := execute(ctx, b.plain, b.dir, dsn, "-test.run="+pattern(suite.tests()...))
	if err != nil {
		return nil, err
	}
	if names := unknown(plain, skips); names != nil {
		return nil, fmt.Errorf("skips.go lists what is no test of the suite: %q", names)
	}
	tallies := []tally{baseline("pgx alone", plain)}
	for _, r := range runs {
		if dsn, err = database(ctx, srv, r.database); err != nil {
			return nil, err
		}
		if err := protect(ctx, dsn, r, suite.tables()); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		list := skipsOf(r.name, skips)
		got, err := runFencerow(ctx, b, dsn, plain.cases(), list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		tallies = append(tallies, compare(r.name, plain, got, list))
	}
	return tallies, nil
}

// runFencerow runs the suite through fencerow. The listed cases run too, to
// see them fail, each in a process of its own as some of them panic.
func runFencerow(ctx context.Context, b *binaries, dsn string, cases []string, list []skip) (results, error) {
	var names []string
	for _, s := range list {
		names = append(names, s.name)
	}
	all, err := execute(ctx, b.fencerow, b.dir, dsn, "-test.skip="+pattern(names...))
	if err != nil {
		return nil, err
	}
	for _, name := range cases {
		if _, ok := listed(list, name); !ok {
			continue
		}
		one, err := execute(ctx, b.fencerow, b.dir, dsn, "-test.run="+pattern(name))
		if err != nil {
			return nil, err
		}
		all[name] = result{one[name].outcome, one.output(name)}
	}
	return all, nil
}
