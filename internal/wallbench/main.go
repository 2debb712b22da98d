// Command wallbench measures what the wall of package migrations costs. It
// starts a server of its own that syncs to disk, runs the same statements by
// pgbench on tables without a wall and with one, in turns, and prints a table:
// the rate without a wall, and that with each as a share of it.
//
//	go run ./internal/wallbench [-rounds 5] [-scale 1] [-targets]
//
// Below the table it says what the plain walls are meant to reach, and whether
// they do; with -targets it measures that alone. With -takeovers 20s it measures
// something else: how long it takes to take the lease of a sealed table whose
// writers are busy.
//
// It needs a pgbench: the one beside the server, that of PATH, or the newest
// that is installed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	rounds := flag.Int("rounds", 5, "how often each measurement is taken; the median of the shares counts")
	scale := flag.Float64("scale", 1, "how many transactions a measurement has, as a multiple of the usual number")
	only := flag.Bool("targets", false, "measure those transactions alone that have a target")
	takes := flag.Duration("takeovers", 0, "measure instead, for that long each, how long busy writers of a sealed table keep others from taking its lease")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/wallbench [flags]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *scale <= 0 || *takes < 0 {
		fmt.Fprintln(os.Stderr, "wallbench: there are only flags; -rounds is at least 1, and -scale is above 0")
		os.Exit(2)
	}
	if err := run(ctx, *rounds, *scale, *only, *takes); err != nil {
		fmt.Fprintln(os.Stderr, "wallbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, scale float64, only bool, takes time.Duration) (err error) {
	// fsync as in earnest; no checkpoint and no vacuum but those between measurements.
	srv, err := localpg.Start(ctx, localpg.WithSetting("fsync", "on"), localpg.WithSetting("shared_buffers", "256MB"),
		localpg.WithSetting("max_wal_size", "8GB"), localpg.WithSetting("checkpoint_timeout", "1h"), localpg.WithSetting("autovacuum", "off"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	pgbench, err := findPgbench(srv)
	if err != nil {
		return err
	}
	if only {
		ops = slices.DeleteFunc(ops, func(o op) bool { return !slices.ContainsFunc(targets, func(t target) bool { return t.op == o.name }) })
	}
	if err := migrations.Up(ctx, srv.DSN("")); err != nil {
		return err
	}
	if takes > 0 {
		return takeovers(ctx, srv.DSN(""), takes)
	}
	conn, err := pgx.Connect(ctx, srv.DSN(""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, w := range walls {
		if err := w.create(ctx, conn); err != nil {
			return fmt.Errorf("make table %s: %w", w.table, err)
		}
	}
	b := &bench{pgbench: pgbench, dsn: srv.DSN(""), conn: conn, scale: scale}
	fmt.Printf("PostgreSQL %s, %d CPUs, %d clients, %d rounds\n\n", srv.Version(), runtime.NumCPU(), clients, rounds)
	for range rounds {
		if err := b.round(ctx); err != nil {
			return err
		}
	}
	if err := b.check(ctx); err != nil {
		return err
	}
	if err := b.print(); err != nil {
		return err
	}
	return b.printTargets()
}

// findPgbench finds pgbench beside the server, or else elsewhere.
// It is a client like any other, and an older one does.
func findPgbench(srv *localpg.Server) (string, error) {
	if path, ok := srv.Client("pgbench"); ok {
		return path, nil
	}
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench") // the pattern is well-formed
	if len(found) == 0 {
		return "", errors.New("no pgbench found: put one into PATH, such as that of the package postgresql in Debian")
	}
	major := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for a name that is none
		return n
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(major(a), major(b)) }), nil
}

// print writes the table, as Markdown.
func (b *bench) print() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprint(w, "| transaction\t| synchronous_commit\t| no wall, per s")
	for _, wall := range walls[1:] {
		fmt.Fprintf(w, "\t| %s", wall.name)
	}
	fmt.Fprint(w, "\t|\n|---\t|---\t|---:")
	for range walls[1:] {
		fmt.Fprint(w, "\t|---:")
	}
	fmt.Fprintln(w, "\t|")
	for _, commit := range commits {
		for i, op := range ops {
			rates := b.rates[measure{i, commit}]
			fmt.Fprintf(w, "| %s\t| %s\t| %.0f", op.name, commit, median(rates[0]))
			for j := range walls[1:] {
				fmt.Fprintf(w, "\t| %.2f", share(rates, j+1))
			}
			fmt.Fprintln(w, "\t|")
		}
	}
	return w.Flush()
}

// target is the share that the plain walls are to reach.
type target struct {
	op, commit string
	share      float64
}

var targets = []target{{"UPDATE of 1 row", "off", 0.85}, {"UPDATE of 1 row", "on", 0.9}}

func (b *bench) printTargets() error {
	for _, t := range targets {
		i := slices.IndexFunc(ops, func(o op) bool { return o.name == t.op })
		if i < 0 {
			continue // not measured
		}
		for j, wall := range walls {
			if wall.name != "strict" && wall.name != "lease" {
				continue
			}
			got, verdict := share(b.rates[measure{i, t.commit}], j), "met"
			if got < t.share {
				verdict = "not met"
			}
			if _, err := fmt.Printf("\n%s, %s, synchronous_commit %s: target %.2f, measured %.3f, %s", t.op, wall.name, t.commit, t.share, got, verdict); err != nil {
				return err
			}
		}
	}
	fmt.Println()
	return nil
}

// share is the median of the wall's rates as shares of those without a wall.
func share(rates [][]float64, wall int) float64 {
	shares := make([]float64, len(rates[0]))
	for k := range shares {
		shares[k] = rates[wall][k] / rates[0][k]
	}
	return median(shares)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
