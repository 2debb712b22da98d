//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/migrations"
)

// initial is the row's value before anybody works on it.
const initial = "initial"

// protect makes the protected table with its row. It may run again on a
// database that has them: the row keeps the last token of the run before, and
// the tokens of this one are larger.
func protect(ctx context.Context, dsn string) error {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	if err := execute(ctx, dsn, `CREATE TABLE IF NOT EXISTS protected_rows (id bigint PRIMARY KEY, value text)`); err != nil {
		return err
	}
	// Strict, as a token is drawn for each write. A worker that writes several
	// times under one token needs migrations.Lease, and "last_token <= $2".
	err := migrations.Register(ctx, dsn, migrations.Table{Name: "protected_rows", Mode: migrations.Strict})
	if err != nil {
		return err
	}
	return execute(ctx, dsn, `INSERT INTO protected_rows (id, value) VALUES (1, $1)
		ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value`, initial)
}

// leaveUnprotected makes the table of the unsafe run, which nobody checks.
func leaveUnprotected(ctx context.Context, dsn string) error {
	if err := execute(ctx, dsn, `CREATE TABLE IF NOT EXISTS unprotected_rows (id bigint PRIMARY KEY, value text)`); err != nil {
		return err
	}
	return execute(ctx, dsn, `INSERT INTO unprotected_rows (id, value) VALUES (1, $1)
		ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value`, initial)
}

// execute runs a statement over a plain connection.
func execute(ctx context.Context, dsn, sql string, args ...any) error {
	return plain(ctx, dsn, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

// read reads one row over a plain connection.
func read(ctx context.Context, dsn, sql string, into ...any) error {
	return plain(ctx, dsn, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(into...) })
}

// plain opens a connection that has nothing of fencerow.
func plain(ctx context.Context, dsn string, use func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return use(conn)
}
