package sqlxapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fencerow/fencerow/internal/capture/plain"
	"github.com/fencerow/fencerow/internal/capture/record"
)

// now stands still, as in the other packages.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type app struct{ db *sqlx.DB }

// Run captures sqlx.
func Run(ctx context.Context, s *record.Session) error {
	a := app{sqlx.NewDb(s.DB, "pgx")}
	return s.Run(ctx, slices.Concat(a.schema(), a.named(), a.reads(), a.writes(), a.transactions(), a.ddl())...)
}

type user struct {
	ID        int64     `db:"id"`
	Name      string    `db:"name"`
	Email     string    `db:"email"`
	Age       *int      `db:"age"`
	Active    bool      `db:"active"`
	CreatedAt time.Time `db:"created_at"`
}

type account struct {
	ID      int64  `db:"id"`
	Owner   string `db:"owner"`
	Balance int64  `db:"balance"`
	Version int64  `db:"version"`
}

func (a app) schema() []record.Step {
	return []record.Step{
		{Op: "ping", Do: a.db.PingContext},
		a.execs("schema", plain.Schema), // one text of many statements
	}
}

// execs is an operation of statements without arguments.
func (a app) execs(op string, queries ...string) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, query := range queries {
			if _, err := a.db.ExecContext(ctx, query); err != nil {
				errs = append(errs, fmt.Errorf("statement %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}

// call is a statement with its arguments.
type call struct {
	query string
	args  []any
}

// q makes a call.
func q(query string, args ...any) call { return call{query, args} }

// exec is an operation of statements that return nothing.
func (a app) exec(op string, calls ...call) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, c := range calls {
			if _, err := a.db.ExecContext(ctx, c.query, c.args...); err != nil {
				errs = append(errs, fmt.Errorf("call %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}

// query is an operation of statements whose rows are read.
func (a app) query(op string, calls ...call) record.Step {
	return record.Step{Op: op, Do: func(ctx context.Context) error {
		var errs []error
		for i, c := range calls {
			if err := a.readAll(ctx, c); err != nil {
				errs = append(errs, fmt.Errorf("call %d: %w", i+1, err))
			}
		}
		return errors.Join(errs...)
	}}
}

func (a app) readAll(ctx context.Context, c call) error {
	rows, err := a.db.QueryxContext(ctx, c.query, c.args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := rows.MapScan(map[string]any{}); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
