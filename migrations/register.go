package migrations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/mode"
)

// Mode says what counts as new enough on a table: [Strict] or [Lease], the same as
// rewrite.Mode. It has no default: the wrong one either refuses a holder's second
// write or lets a replay through.
type Mode = mode.Mode

const (
	// Strict takes a write only if last_token < T: one accepted write per token
	// and row. For tokens drawn for each write.
	Strict = mode.Strict

	// Lease takes a write if last_token <= T: the holder of a lease writes as
	// often as it likes under its one token.
	Lease = mode.Lease
)

// Table is a table to protect.
type Table struct {
	// Name is written as in SQL: "orders", "app.orders", `"Orders"`. Without a
	// schema it is looked up on the search path of the DSN's role. A
	// partitioned table is protected with its partitions.
	Name string

	// Mode must be given.
	Mode Mode

	// TokenColumn is the bare name of the column that keeps the last accepted
	// token; empty means last_token. The column is added if it is missing; one
	// that is there must be bigint and NOT NULL, with the default 0 or none,
	// neither identity nor generated.
	TokenColumn string

	// Resource names the lock whose token the table takes, and only that; see
	// tokenctx.WithResource. Empty means the context's default token.
	Resource string
}

// Register protects tables, all of them or, on an error, none. A table that is
// registered already takes on the mode and the resource given now; calling
// Register twice with the same tables changes nothing. Its token column stays:
// another one would start at 0 and forget every token.
//
// A table that was dropped and made again, restored, or put in the place of a
// registered one by renaming takes over what that one had: the wall, tombstones
// and seal, the driver's level and rewriting. For a wall the role must own the
// table. What doesn't fit the new table is refused; [Unregister] it to start
// afresh.
//
// Adding a token column takes an ACCESS EXCLUSIVE lock on the table for a
// moment, without rewriting it, and so waits for the transactions that use the
// table; set lock_timeout in the DSN to give up instead. See
// https://www.postgresql.org/docs/current/sql-altertable.html.
//
// Without [Up] the error is [ErrNotInstalled]. The server's refusals (views,
// partitions, temporary and system tables, an unfit token column) come with its
// hint and unwrap to [*pgconn.PgError].
func Register(ctx context.Context, dsn string, tables ...Table) error {
	seen := make(map[string]Table, len(tables))
	for _, t := range tables {
		if err := t.check(); err != nil {
			return err
		}
		if other, ok := seen[t.Name]; ok && other != t {
			return fmt.Errorf("register %s: it is given twice, and not alike: give it once", t.Name)
		}
		seen[t.Name] = t
	}
	if len(tables) == 0 {
		return nil
	}
	conn, err := connect(ctx, "register "+tables[0].Name, dsn)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	if err := requireInstalled(ctx, conn, "register "+tables[0].Name); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, t := range tables {
			column := t.TokenColumn
			if column == "" {
				column = "last_token"
			}
			var resource *string
			if t.Resource != "" {
				resource = &t.Resource
			}
			// no operators and no bare names: the search path is the role's own
			_, err := tx.Exec(ctx, `SELECT fencing.register($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.text, $3::pg_catalog.text::pg_catalog.name, $4::pg_catalog.text)`,
				t.Name, string(t.Mode), column, resource)
			if err != nil {
				return registryError("register", t.Name, "create the table first, or write its name with its schema", err)
			}
		}
		return nil
	})
}

// Unregister ends the protection of a table, and takes off its [Wall], for
// which the role must own the table. Its token column and the values in it
// stay, so that a later [Register] goes on from them. A table that is not
// registered is left as it is.
//
// Without [Up] the error is [ErrNotInstalled].
func Unregister(ctx context.Context, dsn, name string) error {
	if err := checkName("unregister", name); err != nil {
		return err
	}
	conn, err := connect(ctx, "unregister "+name, dsn)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	if err := requireInstalled(ctx, conn, "unregister "+name); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT fencing.unregister($1::pg_catalog.text::pg_catalog.regclass)`, name); err != nil {
		return registryError("unregister", name, "correct the name, or write it with its schema; if the table was dropped for good, delete its row from fencing.registry", err)
	}
	return nil
}

// check finds what can be said without a connection.
func (t Table) check() error {
	if err := checkName("register", t.Name); err != nil {
		return err
	}
	switch t.Mode {
	case Strict, Lease:
		return nil
	case "":
		return fmt.Errorf("register %s: no mode given: choose migrations.Strict (one accepted write per token and row) or migrations.Lease (a holder writes as often as it likes under one token)", t.Name)
	}
	return fmt.Errorf("register %s: unknown mode %q: choose migrations.Strict or migrations.Lease", t.Name, string(t.Mode))
}

// checkName keeps out what PostgreSQL takes for an oid and not for a name; see
// https://www.postgresql.org/docs/current/datatype-oid.html.
func checkName(op, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return fmt.Errorf(`%s: a table without a name: give it as in SQL, "orders" or "app.orders"`, op)
	case strings.Trim(name, " 0123456789-") == "":
		return fmt.Errorf("%s %s: that is a number, not a name: write a table of that name in double quotes", op, name)
	}
	return nil
}

// registryRights are what the functions that write the registry need.
const registryRights = "own the table and schema fencing, or be granted USAGE on schema fencing, SELECT, INSERT, UPDATE, DELETE on fencing.registry and EXECUTE on the functions of schema fencing"

// requireInstalled looks for the functions first: the SQLSTATE of a call can't
// tell a missing schema fencing from a missing schema of the table.
func requireInstalled(ctx context.Context, conn *pgx.Conn, op string) error {
	var ok bool
	err := conn.QueryRow(ctx, `SELECT pg_catalog.to_regprocedure('fencing.register(pg_catalog.regclass, pg_catalog.text, pg_catalog.name, pg_catalog.text, pg_catalog.regclass)') IS NOT NULL`).Scan(&ok)
	if err != nil {
		return opError(op, registryRights, err)
	}
	if !ok {
		return fmt.Errorf("%s: %w: run migrations.Up(ctx, dsn) first", op, ErrNotInstalled)
	}
	return nil
}

// callOn calls a function of schema fencing on a table.
func callOn(ctx context.Context, dsn, op, table, sql string, args ...any) error {
	if err := checkName(op, table); err != nil {
		return err
	}
	conn, err := connect(ctx, op+" "+table, dsn)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	if err := requireInstalled(ctx, conn, op+" "+table); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql, args...)
	switch {
	case isState(err, undefinedFunction):
		return functionMissing(op+" "+table, err)
	case err != nil:
		return registryError(op, table, "correct the name, or write it with its schema", err)
	}
	return nil
}

// registryError is a failed call of a function that writes the registry.
// missing is what to do if there is no such table.
func registryError(op, table, missing string, err error) error {
	wrapped := opError(op+" "+table, registryRights, err)
	var e *serverError
	if errors.As(wrapped, &e) && e.advice == "" && isState(err, undefinedTable, invalidSchemaName) {
		e.advice = missing
	}
	return wrapped
}
