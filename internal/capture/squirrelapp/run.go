package squirrelapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	sq "github.com/Masterminds/squirrel"

	"github.com/fencerow/fencerow/internal/capture/plain"
	"github.com/fencerow/fencerow/internal/capture/record"
)

// psql builds for PostgreSQL.
var psql = sq.StatementBuilder.PlaceholderFormat(sq.Dollar)

// Run captures squirrel.
func Run(ctx context.Context, s *record.Session) error {
	if err := s.Setup(ctx, plain.Schema); err != nil {
		return err
	}
	cached := sq.NewStmtCache(s.DB)
	a := app{s.DB}
	return s.Run(ctx,
		a.step("select", selects()...), a.step("select where", wheres()...), a.step("insert", inserts()...), a.step("upsert", upserts()...),
		a.step("update", updates()...), a.step("delete", deletes()...), a.step("case and subquery", expressions()...),
		record.Step{Op: "statement cache", Do: func(ctx context.Context) error {
			_, err := psql.Update("accounts").Set("owner", "cached").Where(sq.Eq{"id": 1}).RunWith(cached).ExecContext(ctx)
			return errors.Join(err, cached.Clear())
		}},
	)
}

type app struct{ db *sql.DB }

// step is an operation of one or more builders.
func (a app) step(op string, queries ...sq.Sqlizer) record.Step {
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

func (a app) exec(ctx context.Context, q sq.Sqlizer) error {
	query, args, err := q.ToSql()
	if err != nil {
		return err
	}
	_, err = a.db.ExecContext(ctx, query, args...)
	return err
}
