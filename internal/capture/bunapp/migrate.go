package bunapp

import (
	"context"
	"embed"
	"errors"

	"github.com/uptrace/bun/migrate"

	"github.com/fencerow/fencerow/internal/capture/record"
)

//go:embed migrations
var files embed.FS

// migrations uses bun's own bookkeeping.
func (a app) migrations() []record.Step {
	return []record.Step{{Op: "migrations", Do: func(ctx context.Context) error {
		migrations := migrate.NewMigrations()
		if err := migrations.Discover(files); err != nil {
			return err
		}
		m := migrate.NewMigrator(a.db, migrations)
		err := errors.Join(m.Init(ctx), m.Lock(ctx))
		_, err1 := m.Migrate(ctx)
		_, err2 := m.MigrationsWithStatus(ctx)
		_, err3 := m.Rollback(ctx)
		return errors.Join(err, err1, err2, err3, m.Unlock(ctx), m.Reset(ctx))
	}}}
}
