package compat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/tokenctx"
)

// The functions below are the snippets of docs/orm/bun.md, word for word.

func bunHandle(dsn string) (*bun.DB, error) {
	handle, err := driver.Open(dsn, driver.WithRewrite())
	if err != nil {
		return nil, err
	}
	return bun.NewDB(handle, pgdialect.New()), nil
}

func bunWrite(ctx context.Context, db *bun.DB, token tokenctx.Token) error {
	ctx = tokenctx.With(ctx, token)
	o := &BunOrder{ID: 1}
	if err := db.NewSelect().Model(o).WherePK().Scan(ctx); err != nil {
		return err
	}
	o.Status = "paid"
	_, err := db.NewUpdate().Model(o).WherePK().Exec(ctx) // the token that o was read with is not trusted
	if errors.Is(err, driver.ErrStale) {
		return fmt.Errorf("another holder has taken over: %w", err)
	}
	return err
}

func bunMerge(ctx context.Context, db *bun.DB, list []BunOrder) error {
	_, err := db.NewInsert().Model(&list). // instead of NewMerge
						On("CONFLICT (id) DO UPDATE").
						Set("status = EXCLUDED.status").
						Exec(ctx)
	return err
}

func bunMigrate(ctx context.Context, dsn string) error {
	plain, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer plain.Close()
	db := bun.NewDB(plain, pgdialect.New())
	_, err = db.NewAddColumn().Model((*BunOrder)(nil)).ColumnExpr("note text").Exec(ctx)
	return err
}
