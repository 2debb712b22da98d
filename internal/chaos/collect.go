package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/chaos/history"
)

// readState reads the rows that have been written.
func readState(ctx context.Context, dsn string) (states []history.State, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return query[history.State](ctx, conn, "SELECT id, value, last_token FROM rows WHERE seq > 0 UNION ALL SELECT id, value, last_token FROM strict_rows WHERE seq > 0")
}

// collect reads what the database has recorded, when nobody writes any more:
// what killed workers have left under way is ended first.
func collect(ctx context.Context, dsn string, clock history.Clock, h *history.History) (err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := endOthers(ctx, conn); err != nil {
		return err
	}
	h.End = clock.Now()
	if h.Final, err = readState(ctx, dsn); err != nil {
		return err
	}
	if h.Writes, err = query[history.Write](ctx, conn, `SELECT "row", seq, strict, op, old_value, new_value, old_token, new_token FROM chaos.writes ORDER BY 1, 2`); err != nil {
		return err
	}
	if h.Leases, err = query[history.Lease](ctx, conn, "SELECT seq, resource, old_token, new_token FROM chaos.leases ORDER BY seq"); err != nil {
		return err
	}
	h.Entries, err = query[history.Entry](ctx, conn, "SELECT op, last_token FROM entries ORDER BY op")
	return err
}

// endOthers ends all other sessions and waits until they are gone.
func endOthers(ctx context.Context, conn *pgx.Conn) error {
	const others = " FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		var n int
		if err := conn.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid, 1000))"+others).Scan(&n); err != nil || n == 0 {
			return err
		}
	}
}

// awaitStandby waits until the standby has what the primary has now.
func awaitStandby(ctx context.Context, dsn string) (err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var lsn string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&lsn); err != nil {
		return err
	}
	for {
		var there bool
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE flush_lsn >= $1::text::pg_lsn)", lsn).Scan(&there)
		if err != nil || there {
			return err
		}
		if !sleep(ctx, pollEvery) {
			return fmt.Errorf("wait for the standby to catch up: %w", ctx.Err())
		}
	}
}

// pollEvery is how long to wait before asking again.
const pollEvery = 10 * time.Millisecond

func query[T any](ctx context.Context, conn *pgx.Conn, sql string) ([]T, error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
