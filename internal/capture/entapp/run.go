package entapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/fencerow/fencerow/internal/capture/record"
)

// now stands still, as in the other packages.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type app struct{ drv *entsql.Driver }

// Run captures ent.
func Run(ctx context.Context, s *record.Session) error {
	a := app{entsql.OpenDB(dialect.Postgres, s.DB)}
	return s.Run(ctx, slices.Concat(a.migrations(), a.creates(), a.queries(), a.edges(), a.updates(), a.builders(), a.transactions(), a.deletes())...)
}

// querier is any of ent's builders.
type querier interface{ Query() (string, []any) }

// build is an operation of one or more builders.
func (a app) build(op string, queries func(b *entsql.DialectBuilder) []querier) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, q := range queries(entsql.Dialect(dialect.Postgres)) {
			if err := a.exec(ctx, q); err != nil {
				errs = append(errs, fmt.Errorf("query %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}

func (a app) exec(ctx context.Context, q querier) error {
	query, args := q.Query()
	return a.drv.Exec(ctx, query, args, nil)
}

// all is an operation of several calls.
func all(op string, calls ...func(ctx context.Context) error) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, call := range calls {
			if err := call(ctx); err != nil {
				errs = append(errs, fmt.Errorf("call %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}
