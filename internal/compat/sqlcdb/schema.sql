CREATE TABLE orders (
    id         bigserial PRIMARY KEY,
    status     text   NOT NULL DEFAULT '',
    last_token bigint NOT NULL DEFAULT 0
);
