package compat

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/fencerow/fencerow/tokenctx"
)

// sqlx learns how placeholders are written.
func init() { sqlx.BindDriver("fencerow", sqlx.DOLLAR) }

// SqlxOrder is a row of orders.
type SqlxOrder struct {
	ID        int64  `db:"id"`
	Status    string `db:"status"`
	LastToken int64  `db:"last_token"`
}

// sqlxOps are what programs do with sqlx.
func sqlxOps(_ *testing.T, e *env) []op {
	db := sqlx.NewDb(e.db, "fencerow")
	mine := rows{"o1": "mine 8"}
	one := SqlxOrder{ID: 1, Status: "mine", LastToken: forged}
	named := func(name, query string, arg any) op {
		return op{name: name, changes: mine, affected: 1, do: func(ctx context.Context) (int64, error) { return counted(db.NamedExecContext(ctx, query, arg)) }}
	}
	get := func(name string, id int, query string, err error) op {
		return op{name: name, changes: mine, affected: untold, err: err, do: func(ctx context.Context) (int64, error) {
			return untold, db.GetContext(ctx, &SqlxOrder{}, query, id)
		}}
	}
	const read, returning = "SELECT id, status, last_token FROM orders WHERE id = $1", "UPDATE orders SET status = 'mine' WHERE id = $1 RETURNING id, status, last_token"
	return []op{
		named("create", "INSERT INTO orders (status) VALUES (:status)", one).ofKind(inserts, rows{"o4": "mine 8"}, 1),
		named("create, bulk", "INSERT INTO orders (status, last_token) VALUES (:status, :last_token)", []SqlxOrder{one, one}).
			ofKind(inserts, rows{"o4": "mine 8", "o5": "mine 8"}, 2),
		get("first", 1, read, nil).of(func(o *op) { o.kind, o.changes = reads, nil }),
		get("first, no such row", 77, read, sql.ErrNoRows).of(func(o *op) { o.kind, o.changes = reads, nil }),
		named("update", "UPDATE orders SET status = :status WHERE id = :id", one),
		named("update, by a map", "UPDATE orders SET status = :status WHERE id = :id", map[string]any{"status": "mine", "id": 1}),
		named("update, by a model", "UPDATE orders SET status = :status, last_token = :last_token WHERE id = :id", one),
		get("update, returning", 1, returning, nil),
		get("update, no such row", 77, returning, sql.ErrNoRows).of(func(o *op) { o.kind, o.changes = inserts, nil }),
		{name: "update, many", changes: rows{"o1": "mine 8", "o2": "mine 8"}, affected: 2, meets: []string{"o1", "o2"}, do: func(ctx context.Context) (int64, error) {
			query, args, err := sqlx.In("UPDATE orders SET status = ? WHERE id IN (?)", "mine", []int{1, 2})
			if err != nil {
				return 0, err
			}
			return counted(db.ExecContext(ctx, db.Rebind(query), args...))
		}},
		named("upsert", "INSERT INTO orders (id, status) VALUES (:id, :status) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status", one),
		named("delete", "DELETE FROM orders WHERE id = :id", map[string]any{"id": 2}).ofKind(compares, rows{"o2": ""}, 1).of(meeting("o2")),
		{name: "raw SQL, prepared", changes: mine, affected: 1, do: func(ctx context.Context) (int64, error) {
			stmt, err := db.PrepareNamedContext(ctx, "UPDATE orders SET status = :status WHERE id = :id")
			if err != nil {
				return 0, err
			}
			defer stmt.Close()
			return counted(stmt.ExecContext(ctx, one))
		}},
		{name: "raw SQL, guarded by hand", fenced: true, changes: mine, affected: 1, do: func(ctx context.Context) (int64, error) {
			return counted(db.ExecContext(ctx, "UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token < $2", "mine", tokenctx.Arg, 1))
		}},
		{name: "transaction", changes: rows{"o1": "mine 8", "o2": "mine 8"}, affected: untold, do: func(ctx context.Context) (int64, error) {
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return untold, err
			}
			defer tx.Rollback()
			for _, id := range []int{2, 1} {
				if _, err := tx.NamedExecContext(ctx, "UPDATE orders SET status = :status WHERE id = :id", SqlxOrder{ID: int64(id), Status: "mine"}); err != nil {
					return untold, err
				}
			}
			return untold, tx.Commit()
		}},
	}
}
