package sqlcdb

import (
	"context"

	"github.com/fencerow/fencerow/tokenctx"
)

const createOrder = `-- name: CreateOrder :one
INSERT INTO orders (status, last_token) VALUES ($1, $2)
RETURNING id, status, last_token
`

// CreateOrderParams are the arguments of CreateOrder.
type CreateOrderParams struct {
	Status    string
	LastToken tokenctx.Token
}

// CreateOrder runs the query of its name.
func (q *Queries) CreateOrder(ctx context.Context, arg CreateOrderParams) (Order, error) {
	row := q.db.QueryRowContext(ctx, createOrder, arg.Status, arg.LastToken)
	var i Order
	err := row.Scan(&i.ID, &i.Status, &i.LastToken)
	return i, err
}

const deleteOrder = `-- name: DeleteOrder :execrows
DELETE FROM orders WHERE id = $1
`

// DeleteOrder runs the query of its name.
func (q *Queries) DeleteOrder(ctx context.Context, id int64) (int64, error) {
	result, err := q.db.ExecContext(ctx, deleteOrder, id)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

const getOrder = `-- name: GetOrder :one
SELECT id, status, last_token FROM orders WHERE id = $1
`

// GetOrder runs the query of its name.
func (q *Queries) GetOrder(ctx context.Context, id int64) (Order, error) {
	row := q.db.QueryRowContext(ctx, getOrder, id)
	var i Order
	err := row.Scan(&i.ID, &i.Status, &i.LastToken)
	return i, err
}

const setStatus = `-- name: SetStatus :execrows
UPDATE orders SET status = $2 WHERE id = $1
`

// SetStatusParams are the arguments of SetStatus.
type SetStatusParams struct {
	ID     int64
	Status string
}

// SetStatus runs the query of its name.
func (q *Queries) SetStatus(ctx context.Context, arg SetStatusParams) (int64, error) {
	result, err := q.db.ExecContext(ctx, setStatus, arg.ID, arg.Status)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

const setStatusGuarded = `-- name: SetStatusGuarded :execrows
UPDATE orders SET status = $1, last_token = $2
WHERE id = $3 AND last_token < $2
`

// SetStatusGuardedParams are the arguments of SetStatusGuarded.
type SetStatusGuardedParams struct {
	Status    string
	LastToken tokenctx.Token
	ID        int64
}

// SetStatusGuarded runs the query of its name.
func (q *Queries) SetStatusGuarded(ctx context.Context, arg SetStatusGuardedParams) (int64, error) {
	result, err := q.db.ExecContext(ctx, setStatusGuarded, arg.Status, arg.LastToken, arg.ID)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

const setStatusReturning = `-- name: SetStatusReturning :one
UPDATE orders SET status = $2 WHERE id = $1
RETURNING id, status, last_token
`

// SetStatusReturningParams are the arguments of SetStatusReturning.
type SetStatusReturningParams struct {
	ID     int64
	Status string
}

// SetStatusReturning runs the query of its name.
func (q *Queries) SetStatusReturning(ctx context.Context, arg SetStatusReturningParams) (Order, error) {
	row := q.db.QueryRowContext(ctx, setStatusReturning, arg.ID, arg.Status)
	var i Order
	err := row.Scan(&i.ID, &i.Status, &i.LastToken)
	return i, err
}

const upsertOrder = `-- name: UpsertOrder :execrows
INSERT INTO orders (id, status) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status
`

// UpsertOrderParams are the arguments of UpsertOrder.
type UpsertOrderParams struct {
	ID     int64
	Status string
}

// UpsertOrder runs the query of its name.
func (q *Queries) UpsertOrder(ctx context.Context, arg UpsertOrderParams) (int64, error) {
	result, err := q.db.ExecContext(ctx, upsertOrder, arg.ID, arg.Status)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
