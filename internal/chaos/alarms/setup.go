package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/migrations"
)

// table is what one holder writes.
type table struct {
	name     string
	resource string // of the lease
	isOwn    bool   // it takes the resource's token, and not the default one
	wall     migrations.WallLevel
	isSealed bool
}

// setting returns the name of the setting that has the token of who writes the table
// without fencerow.
func (t table) setting() string {
	if !t.isOwn {
		return "fencing.token"
	}
	return "fencing.token_" + t.resource
}

var tables = []table{
	{name: "open_orders", resource: "open", wall: migrations.WallOff},
	{name: "free_orders", resource: "free", isOwn: true, wall: migrations.WallOff},
	{name: "walled_orders", resource: "walled", wall: migrations.WallEnforce},
	{name: "attested_orders", resource: "attested", isOwn: true, wall: migrations.WallAttested},
	{name: "sealed_orders", resource: "sealed", isOwn: true, wall: migrations.WallEnforce, isSealed: true},
}

const schema = `CREATE TABLE %[1]s (id bigint PRIMARY KEY, code text UNIQUE, tenant int NOT NULL DEFAULT 1, number bigint NOT NULL,
		state text NOT NULL DEFAULT 'new', note text, UNIQUE (tenant, number)) WITH (fillfactor = 30);
	CREATE UNIQUE INDEX ON %[1]s (lower(code)); CREATE UNIQUE INDEX ON %[1]s (code, number) WHERE tenant = 1;`

// setUp makes the database.
func setUp(ctx context.Context, dsn string) (err error) {
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var b strings.Builder
	b.WriteString(`CREATE TABLE notes (id bigint PRIMARY KEY); CREATE TABLE outbox (id bigint);`)
	fmt.Fprintf(&b, `INSERT INTO notes SELECT generate_series(1, %d);`, rows)
	for _, t := range tables {
		fmt.Fprintf(&b, schema, t.name)
	}
	if _, err := conn.Exec(ctx, b.String()); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	for _, t := range tables {
		if err := protect(ctx, dsn, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// protect registers a table, puts its wall up, and seals it.
func protect(ctx context.Context, dsn string, t table) error {
	registered := migrations.Table{Name: t.name, Mode: migrations.Lease}
	if t.isOwn {
		registered.Resource = t.resource
	}
	if err := migrations.Register(ctx, dsn, registered); err != nil {
		return err
	}
	if err := migrations.Wall(ctx, dsn, t.name, t.wall); err != nil {
		return err
	}
	if t.isSealed {
		return migrations.Seal(ctx, dsn, t.name, t.resource)
	}
	return nil
}
