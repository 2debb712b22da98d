package compat

import (
	"context"
	"database/sql"
	"testing"

	"github.com/fencerow/fencerow/internal/compat/sqlcdb"
	"github.com/fencerow/fencerow/tokenctx"
)

// sqlcOps are the generated queries.
func sqlcOps(_ *testing.T, e *env) []op {
	q := sqlcdb.New(e.db)
	mine := rows{"o1": "mine 8"}
	read := func(id int64, err error) op {
		return op{name: "first", kind: reads, affected: untold, err: err, do: func(ctx context.Context) (int64, error) {
			_, err := q.GetOrder(ctx, id)
			return untold, err
		}}
	}
	guarded := func(ctx context.Context, q *sqlcdb.Queries, id int64) (int64, error) {
		token, _ := tokenctx.From(ctx)
		return q.SetStatusGuarded(ctx, sqlcdb.SetStatusGuardedParams{Status: "mine", LastToken: token, ID: id})
	}
	return []op{
		{name: "create, returning", kind: inserts, changes: rows{"o4": "mine 8"}, affected: untold, do: func(ctx context.Context) (int64, error) {
			_, err := q.CreateOrder(ctx, sqlcdb.CreateOrderParams{Status: "mine"})
			return untold, err
		}},
		read(1, nil),
		read(77, sql.ErrNoRows).of(func(o *op) { o.name = "first, no such row" }),
		{name: "update", changes: mine, affected: 1, do: func(ctx context.Context) (int64, error) {
			return q.SetStatus(ctx, sqlcdb.SetStatusParams{ID: 1, Status: "mine"})
		}},
		{name: "update, no such row", kind: inserts, do: func(ctx context.Context) (int64, error) {
			return q.SetStatus(ctx, sqlcdb.SetStatusParams{ID: 77, Status: "mine"})
		}},
		{name: "update, returning", changes: mine, affected: untold, do: func(ctx context.Context) (int64, error) {
			_, err := q.SetStatusReturning(ctx, sqlcdb.SetStatusReturningParams{ID: 1, Status: "mine"})
			return untold, err
		}},
		{name: "raw SQL, guarded by hand", changes: mine, affected: 1, do: func(ctx context.Context) (int64, error) { return guarded(ctx, q, 1) }},
		{name: "upsert", changes: mine, affected: 1, do: func(ctx context.Context) (int64, error) {
			return q.UpsertOrder(ctx, sqlcdb.UpsertOrderParams{ID: 1, Status: "mine"})
		}},
		{name: "delete", changes: rows{"o2": ""}, affected: 1, meets: []string{"o2"}, do: func(ctx context.Context) (int64, error) { return q.DeleteOrder(ctx, 2) }},
		{name: "transaction", changes: rows{"o1": "mine 8", "o2": "mine 8"}, affected: untold, do: func(ctx context.Context) (int64, error) {
			tx, err := e.db.BeginTx(ctx, nil)
			if err != nil {
				return untold, err
			}
			defer tx.Rollback()
			for _, id := range []int64{2, 1} {
				if _, err := guarded(ctx, q.WithTx(tx), id); err != nil {
					return untold, err
				}
			}
			return untold, tx.Commit()
		}},
	}
}
