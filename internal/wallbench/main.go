// Command wallbench measures what the wall of package migrations costs. It
// starts a server of its own that syncs to disk, runs the same statements by
// pgbench on tables without a wall and with one, in turns, and prints a table:
// the rate without a wall, and that with each as a share of it.
//
//	go run ./internal/wallbench [-rounds 5] [-scale 1]
//
// With -takeovers 20s it measures something else: how long it takes to take the
// lease of a sealed table whose writers are busy.
//
// It needs a pgbench beside the server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
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
	takes := flag.Duration("takeovers", 0, "measure instead, for that long each, how long busy writers of a sealed table keep others from taking its lease")
	flag.Parse()
	if err := run(ctx, *rounds, *scale, *takes); err != nil {
		fmt.Fprintln(os.Stderr, "wallbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, scale float64, takes time.Duration) (err error) {
	// fsync as in earnest; no checkpoint and no vacuum but those between measurements.
	srv, err := localpg.Start(ctx, localpg.WithSetting("fsync", "on"), localpg.WithSetting("shared_buffers", "256MB"),
		localpg.WithSetting("max_wal_size", "8GB"), localpg.WithSetting("checkpoint_timeout", "1h"), localpg.WithSetting("autovacuum", "off"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	pgbench, ok := srv.Client("pgbench")
	if !ok {
		return fmt.Errorf("no pgbench at %s: set FENCEROW_PG_BIN to the bin directory of a server that comes with one, such as that of the package postgresql in Debian", pgbench)
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
	return b.print()
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
				shares := make([]float64, len(rates[0]))
				for k := range shares {
					shares[k] = rates[j+1][k] / rates[0][k]
				}
				fmt.Fprintf(w, "\t| %.2f", median(shares))
			}
			fmt.Fprintln(w, "\t|")
		}
	}
	return w.Flush()
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
