package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// takeovers measures how long a lease takes to be taken while writers of a
// sealed table are busy under the token of the last one.
func takeovers(ctx context.Context, dsn string, each time.Duration) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, `CREATE TABLE sealed (id int PRIMARY KEY, v int NOT NULL DEFAULT 0);
		SELECT fencing.register('sealed', 'lease'); INSERT INTO sealed SELECT i FROM generate_series(1, 1000) i;
		SELECT fencing.wall('sealed'); SELECT fencing.seal('sealed', 'r')`)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| writers\t| isolation\t| writes, per s\t| take-overs\t| p50, ms\t| p99, ms\t| max, ms\t|\n|---:\t|---\t|---:\t|---:\t|---:\t|---:\t|---:\t|")
	for _, writers := range []int{8, 48} {
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
			if err := takeover(ctx, w, conn, dsn, writers, level, each); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func takeover(ctx context.Context, w *tabwriter.Writer, conn *pgx.Conn, dsn string, writers int, level string, each time.Duration) error {
	const take = "SELECT token FROM fencing.take('r', '1 min', 'bench')"
	var token, writes atomic.Int64
	var now int64
	if err := conn.QueryRow(ctx, take).Scan(&now); err != nil {
		return err
	}
	token.Store(now)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	var failed error
	var once sync.Once
	for i := range writers {
		group.Go(func() {
			if err := writeUnder(ctx, dsn, level, i, &token, &writes); err != nil && ctx.Err() == nil {
				once.Do(func() { failed = err })
				stop()
			}
		})
	}
	time.Sleep(each / 10) // until they are all at it
	var took []time.Duration
	writes.Store(0)
	began := time.Now()
	for time.Since(began) < each && ctx.Err() == nil {
		if _, err := conn.Exec(ctx, "SELECT fencing.release('r', $1)", token.Load()); err != nil {
			return err
		}
		sent := time.Now()
		if err := conn.QueryRow(ctx, take).Scan(&now); err != nil {
			return err
		}
		took = append(took, time.Since(sent))
		token.Store(now)
		time.Sleep(20 * time.Millisecond)
	}
	rate := float64(writes.Load()) / time.Since(began).Seconds()
	if _, err := conn.Exec(ctx, "SELECT fencing.release('r', $1)", token.Load()); err != nil {
		return err
	}
	stop()
	group.Wait()
	if failed != nil {
		return failed
	}
	slices.Sort(took)
	at := func(share int) float64 {
		return float64(took[min(len(took)*share/100, len(took)-1)].Microseconds()) / 1000
	}
	fmt.Fprintf(w, "| %d\t| %s\t| %.0f\t| %d\t| %.0f\t| %.0f\t| %.0f\t|\n", writers, level, rate, len(took), at(50), at(99), at(100))
	return nil
}

// think is how long a writer's program takes after each statement.
const think = 5 * time.Millisecond

// writeUnder writes rows of its own until ctx ends, in transactions of two
// statements, under whatever is the newest token.
func writeUnder(ctx context.Context, dsn, level string, n int, token, writes *atomic.Int64) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(level)}, func(tx pgx.Tx) error {
			for i := range 2 {
				if _, err := tx.Exec(ctx, "UPDATE sealed SET v = v + 1, last_token = $1 WHERE id = $2", token.Load(), 20*n+i+1); err != nil {
					return err
				}
				time.Sleep(think)
			}
			return nil
		})
		var pg *pgconn.PgError
		switch {
		case err == nil:
			writes.Add(1)
		case errors.As(err, &pg) && (pg.Code == "FN001" || pg.Code == "40001"):
		default:
			return err
		}
	}
	return nil
}
