package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/internal/chaos/worker"
	"github.com/fencerow/fencerow/migrations"
)

// tables are what the workers write. Each row counts its accepted writes, and
// a trigger records them in the transactions of the writes.
const tables = `
CREATE TABLE rows (id bigint PRIMARY KEY, op bigint NOT NULL DEFAULT 0, value bigint NOT NULL DEFAULT 0,
  seq bigint NOT NULL DEFAULT 0, resource text NOT NULL DEFAULT '', last_token bigint NOT NULL DEFAULT 0) WITH (fillfactor = 30);
CREATE TABLE strict_rows (LIKE rows INCLUDING ALL);
CREATE TABLE entries (op bigint PRIMARY KEY, resource text NOT NULL, last_token bigint NOT NULL DEFAULT 0);

CREATE SCHEMA chaos;
CREATE TABLE chaos.writes ("row" bigint, seq bigint, strict boolean, op bigint, old_value bigint, new_value bigint, old_token bigint, new_token bigint);
CREATE TABLE chaos.leases (seq bigserial, resource text, old_token bigint, new_token bigint);

CREATE FUNCTION chaos.count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.seq := OLD.seq + 1;
  RETURN NEW;
END $$;
CREATE FUNCTION chaos.write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.writes VALUES (NEW.id, NEW.seq, TG_ARGV[0]::boolean, NEW.op, OLD.value, NEW.value, OLD.last_token, NEW.last_token);
  RETURN NULL;
END $$;
CREATE FUNCTION chaos.lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.leases (resource, old_token, new_token) VALUES (NEW.resource, CASE TG_OP WHEN 'UPDATE' THEN OLD.token ELSE 0 END, NEW.token);
  RETURN NULL;
END $$;
`

const recordWrites = `
CREATE TRIGGER chaos_count BEFORE UPDATE ON rows FOR EACH ROW EXECUTE FUNCTION chaos.count();
CREATE TRIGGER chaos_count BEFORE UPDATE ON strict_rows FOR EACH ROW EXECUTE FUNCTION chaos.count();
CREATE TRIGGER chaos_write AFTER UPDATE ON rows FOR EACH ROW EXECUTE FUNCTION chaos.write('false');
CREATE TRIGGER chaos_write AFTER UPDATE ON strict_rows FOR EACH ROW EXECUTE FUNCTION chaos.write('true');
CREATE TRIGGER chaos_lease_taken AFTER INSERT ON fencing.lease FOR EACH ROW EXECUTE FUNCTION chaos.lease();
CREATE TRIGGER chaos_lease_replaced AFTER UPDATE ON fencing.lease FOR EACH ROW WHEN (OLD.token <> NEW.token) EXECUTE FUNCTION chaos.lease();
`

// bareNextval is fencing.next_token without what makes a token durable.
const bareNextval = `CREATE OR REPLACE FUNCTION fencing.next_token() RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN nextval('fencing.write_epoch');
END $$`

// setUp makes the database of a run.
func setUp(ctx context.Context, dsn string, kind Kind, rows worker.Config) (err error) {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, tables); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	for table, numbers := range map[string][]int64{"rows": rows.RowNumbers(false), "strict_rows": rows.RowNumbers(true)} {
		if _, err := conn.Exec(ctx, "INSERT INTO "+table+" (id) SELECT unnest($1::bigint[])", numbers); err != nil {
			return err
		}
	}
	for n := 1; n <= rows.Resources; n++ {
		if _, err := conn.Exec(ctx, "UPDATE rows SET resource = $1 WHERE id = ANY ($2)", worker.Resource(n), rows.RowsOf(n)); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, recordWrites); err != nil {
		return fmt.Errorf("record the writes: %w", err)
	}
	switch kind {
	case plain, report:
		return nil // no wall, and no registry
	case nextval:
		_, err = conn.Exec(ctx, bareNextval)
	case excluded:
		err = tokenBeforeLock(ctx, conn)
	}
	if err != nil {
		return err
	}
	return protect(ctx, dsn, kind)
}

// protect registers the tables, puts up their walls, and seals them.
func protect(ctx context.Context, dsn string, kind Kind) error {
	modes := []migrations.Table{{Name: "rows", Mode: migrations.Lease}, {Name: "entries", Mode: migrations.Lease}, {Name: "strict_rows", Mode: migrations.Strict}}
	if err := migrations.Register(ctx, dsn, modes...); err != nil {
		return err
	}
	for _, t := range modes {
		if err := migrations.Wall(ctx, dsn, t.Name, migrations.WallEnforce); err != nil {
			return err
		}
		if kind == sealed && t.Mode == migrations.Lease {
			if err := migrations.SealByColumn(ctx, dsn, t.Name, "resource"); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokenBeforeLock has fencing.take use a token that was drawn before the lease's
// row was locked.
func tokenBeforeLock(ctx context.Context, conn *pgx.Conn) error {
	var source string
	if err := conn.QueryRow(ctx, "SELECT pg_get_functiondef('fencing.take'::regproc)").Scan(&source); err != nil {
		return err
	}
	for _, change := range [][2]string{
		{"token = fencing.next_token(), expires_at", "token = EXCLUDED.token, expires_at"},
		{"x.expires_at < clock_timestamp() FOR UPDATE;", "false;"}, // nor is the row locked before
	} {
		if strings.Count(source, change[0]) != 1 {
			return fmt.Errorf("fencing.take doesn't say %q any more: change this control", change[0])
		}
		source = strings.Replace(source, change[0], change[1], 1)
	}
	_, err := conn.Exec(ctx, source)
	return err
}
