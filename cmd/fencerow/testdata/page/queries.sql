-- name: SetStatus :exec
UPDATE orders SET status = @status WHERE id = @id;

-- name: Archive :exec
-- fencerow:ignore FR111 nobody holds a lease on orders that are closed
DELETE FROM orders WHERE status = 'closed';
