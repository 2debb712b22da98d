package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// noManifest stands for the manifest in the file that the manifest is read from.
const noManifest = "  ('', '', '', '')"

// readManifest runs the file that build makes without a manifest in an empty
// database, and returns what is in the schema then, as rows of VALUES. Of
// function fencing.doctor_manifest, which differs from the final one, it says
// nothing.
func readManifest(ctx context.Context, dsn string, file []byte) (string, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	up, _, _ := strings.Cut(string(file), "\n-- +goose Down\n")
	if _, err := conn.Exec(ctx, "BEGIN;"+up+";COMMIT"); err != nil {
		return "", fmt.Errorf("install the schema: %w", err)
	}
	rows, err := conn.Query(ctx, `SELECT format('  (%L, %L, %L, %L)', o.kind, o.parent, o.object, o.definition) AS line
		FROM fencing.doctor_objects() o ORDER BY o.kind COLLATE "C", o.parent COLLATE "C", o.object COLLATE "C"`)
	if err != nil {
		return "", fmt.Errorf("read the objects: %w", err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("read the objects: %w", err)
	}
	return strings.Join(lines, ",\n"), nil
}
