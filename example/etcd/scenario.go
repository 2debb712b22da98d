package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/tokenctx"
)

// Times to live of the workers' leases, in seconds. A's is short, as the run
// waits for its end, and long enough to lock on a busy machine.
const (
	ttlA = 3
	ttlB = 60
)

// play is the scenario: etcd decides who holds the lock, and PostgreSQL whose
// write counts. It returns an error unless all came out as told.
func play(ctx context.Context, out io.Writer, server *embed.Etcd, dsn string) (err error) {
	start := time.Now()
	say := func(who, format string, args ...any) {
		fmt.Fprintf(out, "%6.2fs  %-9s  %s\n", time.Since(start).Seconds(), who, fmt.Sprintf(format, args...))
	}
	fmt.Fprint(out, "Two workers rewrite one row under a lock of etcd's. One is paused while it holds it.\n\n")
	if err := protect(ctx, dsn); err != nil {
		return err
	}
	say("servers", `etcd and PostgreSQL are ready; row 1 holds "initial"`)
	a, err := newWorker("A", server, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := newWorker("B", server, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()

	ctxA, err := a.lock(ctx, ttlA)
	if err != nil {
		return fmt.Errorf("worker A locks: %w", err)
	}
	tokenA, _ := tokenctx.From(ctxA)
	say("worker A", "locks row 1; its key was created at revision %s, which is its token", tokenA)
	if err := a.write(ctxA, "written by A"); err != nil {
		return fmt.Errorf("worker A writes: %w", err)
	}
	say("worker A", `writes "written by A" with token %s: accepted`, tokenA)
	a.pause()
	say("worker A", "is PAUSED: nobody renews its lease of %d s", ttlA)

	say("worker B", "waits in line for the lock")
	ctxB, err := b.lock(ctx, ttlB) // until A's lease is over
	if err != nil {
		return fmt.Errorf("worker B locks: %w", err)
	}
	tokenB, _ := tokenctx.From(ctxB)
	say("etcd", "A's lease is over: gives the lock to B, whose token is %s", tokenB)
	if err := b.write(ctxB, "written by B"); err != nil {
		return fmt.Errorf("worker B writes: %w", err)
	}
	say("worker B", `writes "written by B" with token %s: accepted`, tokenB)

	say("worker A", "WAKES UP, and knows nothing of all this: it goes on where it was")
	err = a.write(ctxA, "written by A, late")
	var stale *driver.StaleError
	if !errors.As(err, &stale) {
		return fmt.Errorf("the late write of A should be stale, and ends with: %v", err) //nolint:errorlint // nil if the write succeeded
	}
	say("worker A", `writes "written by A, late" with token %s: REJECTED, the row carries token %d`, tokenA, stale.Current)

	var value string
	var token tokenctx.Token
	err = plain(ctx, dsn, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT value, last_token FROM protected_rows WHERE id = 1`).Scan(&value, &token)
	})
	if err != nil {
		return fmt.Errorf("read the final value: %w", err)
	}
	fmt.Fprintf(out, "\nfinal value, read over a plain connection: %q (token %s)\n", value, token)
	if value != "written by B" || token != tokenB {
		return fmt.Errorf(`the final value should be "written by B" with token %s`, tokenB)
	}
	return nil
}
