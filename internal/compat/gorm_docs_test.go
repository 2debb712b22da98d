package compat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/tokenctx"
)

// The functions below are the snippets of docs/orm/gorm.md, word for word.

func gormHandle(dsn string) (*gorm.DB, error) {
	handle, err := driver.Open(dsn, driver.WithRewrite())
	if err != nil {
		return nil, err
	}
	return gorm.Open(postgres.New(postgres.Config{Conn: handle}), &gorm.Config{})
}

func gormWrite(ctx context.Context, db *gorm.DB, token tokenctx.Token) error {
	ctx = tokenctx.With(ctx, token)
	var o Order
	if err := db.WithContext(ctx).First(&o, 1).Error; err != nil {
		return err
	}
	o.Status = "paid"
	err := db.WithContext(ctx).Save(&o).Error // the token that o was read with is not trusted
	if errors.Is(err, driver.ErrStale) {
		return fmt.Errorf("another holder has taken over: %w", err)
	}
	return err
}

func migrate(dsn string, models ...any) error {
	plain, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer plain.Close()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: plain}), &gorm.Config{})
	if err != nil {
		return err
	}
	return db.AutoMigrate(models...)
}

func gormNested(ctx context.Context, db *gorm.DB) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		err := tx.Transaction(func(tx *gorm.DB) error {
			return tx.Model(&Order{ID: 1}).Update("status", "paid").Error
		})
		if err != nil && !errors.Is(err, driver.ErrStale) {
			return err
		}
		return tx.Model(&Order{ID: 2}).Update("status", "paid").Error // the inner one is rolled back to its savepoint
	})
}

func gormReplace(ctx context.Context, db *gorm.DB, items []Item) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return tx.Model(&Parent[Item]{ID: 1}).Association("Items").Replace(items)
	})
}
