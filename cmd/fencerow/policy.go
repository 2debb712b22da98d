package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencerow/fencerow/rewrite"
)

// policy protects the tables of the database that --database-url names, else
// those of the configuration, else those of the database in the environment.
func (o *options) policy(ctx context.Context, c *config) (*rewrite.Policy, error) {
	if o.databaseURL == "" && len(c.Tables) > 0 {
		return c.policy()
	}
	dsn, err := o.database()
	if err != nil {
		where := "write tables into " + configName
		if c.path != "" {
			where = "write tables into " + c.path
		}
		return nil, fmt.Errorf("no protected tables: %s, or have the database's registry read with --database-url or %s", where, databaseVariable)
	}
	o.env.progress.start("fencerow: reading the registry")
	defer o.env.progress.stop()
	return registryPolicy(ctx, dsn)
}

func (c *config) policy() (*rewrite.Policy, error) {
	var tables []rewrite.Table
	for i, t := range c.Tables {
		table, err := t.table()
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", c.path, c.lines[i], err)
		}
		tables = append(tables, table)
	}
	p, err := rewrite.NewPolicy(tables...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	return p, nil
}

// registryTables are the registered tables, under the names they have now, and
// then under those they were registered with.
const registryTables = `SELECT n.nspname::text, c.relname::text, r.token_column::text, r.mode, COALESCE(r.resource, '')
  FROM fencing.registry r
  JOIN pg_catalog.pg_class c ON c.oid = r.relid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 UNION ALL
SELECT schema_name::text, table_name::text, token_column::text, mode, COALESCE(resource, '')
  FROM fencing.registry`

func registryPolicy(ctx context.Context, dsn string) (*rewrite.Policy, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, connectError(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, registryTables)
	if err != nil {
		return nil, registryError(err)
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t rewrite.Table, err error) {
		var mode string
		if err := row.Scan(&t.Schema, &t.Name, &t.TokenColumn, &mode, &t.Resource); err != nil {
			return t, err
		}
		t.Mode, err = rewrite.ParseMode(mode)
		return t, err
	})
	switch {
	case err != nil:
		return nil, registryError(err)
	case len(tables) == 0:
		return nil, errors.New("no table is registered in the database: run fencerow register TABLE --mode strict|lease, or write tables into " + configName)
	}
	seen := map[rewrite.Name]bool{}
	tables = slices.DeleteFunc(tables, func(t rewrite.Table) bool {
		name := rewrite.Name{Schema: t.Schema, Name: t.Name}
		was := seen[name]
		seen[name] = true
		return was
	})
	p, err := rewrite.NewPolicy(tables...)
	if err != nil {
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	return p, nil
}

func registryError(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "42P01", "3F000": // undefined_table, invalid_schema_name
			return errors.New("schema fencing is not installed in the database: run fencerow migrate up and fencerow register, or write tables into " + configName)
		case "42501": // insufficient_privilege
			return fmt.Errorf("read the registry: %s: the role needs USAGE on schema fencing and SELECT on fencing.registry", pg.Message)
		}
	}
	return fmt.Errorf("read the registry: %w", err)
}

// connectError leaves out what pgx says of a connection string that can't be
// parsed: it may quote the password.
func connectError(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("the connection string can't be read (not shown: it may hold a password): write it as postgres://user@host:5432/database or as host=localhost user=app dbname=shop")
	}
	return fmt.Errorf("%w: see that the server is there and takes this role", err)
}
