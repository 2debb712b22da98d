package bunapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// now stands still, so that no statement tells when it was captured.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type app struct{ db *bun.DB }

// Run captures bun.
func Run(ctx context.Context, s *record.Session) error {
	db := bun.NewDB(s.DB, pgdialect.New())
	db.RegisterModel((*postTag)(nil))
	a := app{db}
	return s.Run(ctx, slices.Concat(
		a.schema(), a.inserts(), a.selects(), a.relations(), a.updates(), a.upserts(), a.merges(),
		a.transactions(), a.raw(), a.deletes(), a.schemaChanges(), a.migrations(),
	)...)
}

// executer is any of bun's queries.
type executer interface {
	Exec(ctx context.Context, dest ...any) (sql.Result, error)
}

// exec is an operation of one or more queries.
func exec(op string, queries func() []executer) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, q := range queries() {
			if _, err := q.Exec(ctx); err != nil {
				errs = append(errs, fmt.Errorf("query %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}

// scan is an operation that reads into the models of its queries.
func scan(op string, queries func() []*bun.SelectQuery) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, q := range queries() {
			if err := q.Scan(ctx); err != nil && !errors.Is(err, sql.ErrNoRows) {
				errs = append(errs, fmt.Errorf("query %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}
