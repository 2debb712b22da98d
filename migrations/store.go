package migrations

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// versionTable is where goose records the migrations that Up has run.
const versionTable = "fencing.goose_db_version"

// ensureVersionTable makes the version table, and the schema for it, which the
// first migration would make too late. goose would make the table itself, but
// tries again for seconds where a right is missing. db holds the lock.
func ensureVersionTable(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var schema, table bool
	err = tx.QueryRowContext(ctx, `SELECT pg_catalog.to_regnamespace('fencing') IS NOT NULL, pg_catalog.to_regclass('`+versionTable+`') IS NOT NULL`).Scan(&schema, &table)
	if err != nil || table {
		return err
	}
	// not IF NOT EXISTS, which asks for CREATE on the database in any case
	if !schema {
		if _, err := tx.ExecContext(ctx, `CREATE SCHEMA fencing`); err != nil {
			return err
		}
	}
	store, err := database.NewStore(goose.DialectPostgres, versionTable)
	if err != nil {
		return err
	}
	if err := store.CreateVersionTable(ctx, tx); err != nil {
		return err
	}
	if err := store.Insert(ctx, tx, database.InsertRequest{Version: 0}); err != nil {
		return err
	}
	return tx.Commit()
}

// dropVersionTable drops the version table and, if nothing else is left in it,
// the schema.
func dropVersionTable(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `DO $$
BEGIN
  DROP TABLE `+versionTable+`;
  DROP SCHEMA fencing;
EXCEPTION WHEN dependent_objects_still_exist THEN
  DROP TABLE `+versionTable+`;
END $$`)
	return err
}
