package goquapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/doug-martin/goqu/v9"
	_ "github.com/doug-martin/goqu/v9/dialect/postgres" // registers the dialect

	"github.com/fencerow/fencerow/internal/capture/plain"
	"github.com/fencerow/fencerow/internal/capture/record"
)

// dialect builds for PostgreSQL.
var dialect = goqu.Dialect("postgres")

// Run captures goqu.
func Run(ctx context.Context, s *record.Session) error {
	if err := s.Setup(ctx, plain.Schema); err != nil {
		return err
	}
	a := app{s.DB}
	return s.Run(ctx,
		a.step("select", selects()...), a.step("insert", inserts()...), a.step("upsert", upserts()...),
		a.step("update", updates()...), a.step("delete", deletes()...), a.step("bound", bound()...),
	)
}

type app struct{ db *sql.DB }

// builder is any of goqu's datasets.
type builder interface {
	ToSQL() (string, []any, error)
}

// step is an operation of one or more datasets.
func (a app) step(op string, queries ...builder) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, q := range queries {
			if err := a.exec(ctx, q); err != nil {
				errs = append(errs, fmt.Errorf("query %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}

func (a app) exec(ctx context.Context, q builder) error {
	query, args, err := q.ToSQL()
	if err != nil {
		return err
	}
	_, err = a.db.ExecContext(ctx, query, args...)
	return err
}
