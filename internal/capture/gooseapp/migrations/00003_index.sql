-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS accounts_user_id_idx ON accounts (user_id);
ALTER TYPE order_status ADD VALUE IF NOT EXISTS 'shipped';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS accounts_user_id_idx;
