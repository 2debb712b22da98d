package compat

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/compat/sqlcdb"
	"github.com/fencerow/fencerow/tokenctx"
)

// The functions below are the snippets of docs/orm/sqlx.md, sqlc.md and ent.md,
// word for word.

func sqlxHandle(dsn string) (*sqlx.DB, error) {
	handle, err := driver.Open(dsn, driver.WithRewrite())
	if err != nil {
		return nil, err
	}
	sqlx.BindDriver("fencerow", sqlx.DOLLAR)
	return sqlx.NewDb(handle, "fencerow"), nil
}

func sqlxWrite(ctx context.Context, db *sqlx.DB, o SqlxOrder) error {
	_, err := db.NamedExecContext(ctx, `UPDATE orders SET status = :status WHERE id = :id`, o)
	return err
}

func sqlxWriteGuarded(ctx context.Context, db *sqlx.DB, o SqlxOrder) error {
	_, err := db.ExecContext(ctx, `UPDATE orders SET status = $1, last_token = $2
		WHERE id = $3 AND last_token <= $2`, o.Status, tokenctx.Arg, o.ID)
	return err
}

func sqlcHandle(dsn string) (*sql.DB, *sqlcdb.Queries, error) {
	handle, err := driver.Open(dsn, driver.WithRewrite())
	if err != nil {
		return nil, nil, err
	}
	return handle, sqlcdb.New(handle), nil
}

func sqlcWrite(ctx context.Context, q *sqlcdb.Queries, token tokenctx.Token) error {
	ctx = tokenctx.With(ctx, token)
	_, err := q.SetStatus(ctx, sqlcdb.SetStatusParams{ID: 1, Status: "paid"})
	if err != nil {
		return err
	}
	_, err = q.SetStatusGuarded(ctx, sqlcdb.SetStatusGuardedParams{ID: 2, Status: "paid", LastToken: token})
	return err
}

func entDriver(dsn string) (dialect.Driver, error) {
	handle, err := driver.Open(dsn, driver.WithRewrite())
	if err != nil {
		return nil, err
	}
	return entsql.OpenDB(dialect.Postgres, handle), nil // for the generated ent.NewClient(ent.Driver(drv))
}
