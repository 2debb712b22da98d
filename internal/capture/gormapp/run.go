package gormapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// now stands still, so that no statement tells when it was captured.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// app is a program's handle on its database.
type app struct{ db *gorm.DB }

// Run captures GORM.
func Run(ctx context.Context, s *record.Session) error {
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: s.DB}), &gorm.Config{
		NowFunc: func() time.Time { return now },
		Logger:  logger.Discard,
	})
	if err != nil {
		return err
	}
	a := app{db.WithContext(ctx)}
	return s.Run(ctx, slices.Concat(
		a.migrations(), a.creates(), a.associations(), a.reads(), a.preloads(), a.scopes(),
		a.updates(), a.upserts(), a.locks(), a.transactions(), a.raw(), a.prepared(), a.generics(), a.deletes(), a.drops(),
	)...)
}

// step is an operation of one or more chains, each with an error of its own.
func step(op string, do func() []*gorm.DB) record.Step {
	return record.Step{Op: op, Do: func(context.Context) error {
		var errs []error
		for i, tx := range do() {
			if tx.Error != nil {
				errs = append(errs, fmt.Errorf("chain %d: %w", i+1, tx.Error))
			}
		}
		return errors.Join(errs...)
	}}
}

// plain is an operation that returns an error.
func plain(op string, do func() error) record.Step {
	return record.Step{Op: op, Do: func(context.Context) error { return do() }}
}

// chains makes lists of chains shorter to write.
func chains(tx ...*gorm.DB) []*gorm.DB { return tx }

// ptr is for nullable fields.
func ptr[T any](v T) *T { return &v }
