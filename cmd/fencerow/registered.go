package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fencerow/fencerow/migrations"
)

// registered looks up how tables are registered, nil for those that aren't. It
// is for the words of a message: what fails here fails again where it counts.
func registered(ctx context.Context, dsn string, tables []migrations.Table) []*migrations.Table {
	out := make([]*migrations.Table, len(tables))
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return out
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for i, t := range tables {
		var mode, resource string
		const query = `SELECT mode, COALESCE(resource, '') FROM fencing.registry WHERE relid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)`
		if conn.QueryRow(ctx, query, t.Name).Scan(&mode, &resource) == nil {
			out[i] = &migrations.Table{Name: t.Name, Mode: migrations.Mode(mode), Resource: resource}
		}
	}
	return out
}

// registration says what a registration changed.
func registration(before *migrations.Table, now migrations.Table) string {
	resource := func(name string) string {
		if name == "" {
			return "the default token"
		}
		return fmt.Sprintf("resource %q", name)
	}
	var changes []string
	if before != nil && before.Mode != now.Mode {
		changes = append(changes, fmt.Sprintf("from %s to %s", before.Mode, now.Mode))
	}
	if before != nil && before.Resource != now.Resource {
		changes = append(changes, fmt.Sprintf("from %s to %s", resource(before.Resource), resource(now.Resource)))
	}
	if len(changes) > 0 {
		return fmt.Sprintf("changed %s %s", now.Name, strings.Join(changes, " and "))
	}
	return fmt.Sprintf("registered %s, mode %s", now.Name, now.Mode)
}
