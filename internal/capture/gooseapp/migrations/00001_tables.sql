-- +goose Up
CREATE TABLE users (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL UNIQUE
);
CREATE TABLE accounts (
    id      bigserial PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    balance bigint NOT NULL DEFAULT 0 CHECK (balance >= 0)
);
CREATE TYPE order_status AS ENUM ('pending', 'paid');

-- +goose Down
DROP TYPE order_status;
DROP TABLE accounts;
DROP TABLE users;
