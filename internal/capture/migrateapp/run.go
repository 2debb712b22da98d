package migrateapp

import (
	"context"
	"database/sql"
	"embed"
	"errors"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/fencerow/fencerow/internal/capture/record"
)

//go:embed migrations
var files embed.FS

// Run captures golang-migrate. It sends a file as one text, unless it is told
// to split it.
func Run(ctx context.Context, s *record.Session) error {
	step := func(op string, config pgx.Config, do func(*migrate.Migrate) error) record.Step {
		return record.Step{Op: op, Do: func(context.Context) error { return with(s.NewPool(), config, do) }}
	}
	return s.Run(ctx,
		step("up and down", pgx.Config{}, cycle),
		step("statement by statement", pgx.Config{MultiStatementEnabled: true}, cycle),
		step("own table", pgx.Config{MigrationsTable: `"public"."app_versions"`, MigrationsTableQuoted: true}, cycle),
		step("drop", pgx.Config{}, (*migrate.Migrate).Drop),
	)
}

// with runs do with a migrator on a pool of its own, which it closes.
func with(db *sql.DB, config pgx.Config, do func(*migrate.Migrate) error) error {
	driver, err := pgx.WithInstance(db, &config)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	source, err := iofs.New(files, "migrations")
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	err = do(m)
	errSource, errDriver := m.Close()
	return errors.Join(err, errSource, errDriver)
}

// cycle applies all migrations, asks for the version, and takes them back.
func cycle(m *migrate.Migrate) error {
	if err := m.Up(); err != nil {
		return err
	}
	if _, _, err := m.Version(); err != nil {
		return err
	}
	return errors.Join(m.Steps(-1), m.Force(1), m.Down())
}
