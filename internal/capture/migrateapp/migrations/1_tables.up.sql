BEGIN;

CREATE TABLE IF NOT EXISTS users (
    id    serial PRIMARY KEY,
    email varchar(255) UNIQUE NOT NULL
);
CREATE TABLE orders (
    id      bigserial PRIMARY KEY,
    user_id integer NOT NULL REFERENCES users ON DELETE CASCADE,
    total   numeric(10, 2) NOT NULL DEFAULT 0
);

COMMIT;
