package gooseapp

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/fencerow/fencerow/internal/capture/record"
)

//go:embed migrations
var files embed.FS

// Run captures goose.
func Run(ctx context.Context, s *record.Session) error {
	session, err1 := lock.NewPostgresSessionLocker()
	table, err2 := lock.NewPostgresTableLocker()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return s.Run(ctx,
		record.Step{Op: "up and down", Do: func(ctx context.Context) error { return cycle(ctx, s.DB) }},
		record.Step{Op: "session lock", Do: func(ctx context.Context) error { return cycle(ctx, s.DB, goose.WithSessionLocker(session)) }},
		record.Step{Op: "table lock", Do: func(ctx context.Context) error { return cycle(ctx, s.DB, goose.WithLocker(table)) }},
		record.Step{Op: "own table", Do: func(ctx context.Context) error { return cycle(ctx, s.DB, goose.WithTableName("app_versions")) }},
	)
}

// cycle applies all migrations, asks what is applied, and takes them back.
func cycle(ctx context.Context, db *sql.DB, opts ...goose.ProviderOption) error {
	dir, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	// Closing the provider would close the session's pool.
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, opts...)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	if err := ask(ctx, p); err != nil {
		return err
	}
	_, err = p.DownTo(ctx, 0)
	return err
}

// ask asks what is applied.
func ask(ctx context.Context, p *goose.Provider) error {
	if _, err := p.Status(ctx); err != nil {
		return err
	}
	if _, err := p.HasPending(ctx); err != nil {
		return err
	}
	_, _, err := p.GetVersions(ctx)
	return err
}
