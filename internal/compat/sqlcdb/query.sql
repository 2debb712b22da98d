-- name: CreateOrder :one
INSERT INTO orders (status, last_token) VALUES ($1, $2)
RETURNING id, status, last_token;

-- name: GetOrder :one
SELECT id, status, last_token FROM orders WHERE id = $1;

-- name: SetStatus :execrows
UPDATE orders SET status = $2 WHERE id = $1;

-- name: SetStatusGuarded :execrows
UPDATE orders SET status = $1, last_token = $2
WHERE id = $3 AND last_token < $2;

-- name: SetStatusReturning :one
UPDATE orders SET status = $2 WHERE id = $1
RETURNING id, status, last_token;

-- name: UpsertOrder :execrows
INSERT INTO orders (id, status) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status;

-- name: DeleteOrder :execrows
DELETE FROM orders WHERE id = $1;
