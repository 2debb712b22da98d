-- +goose Up
INSERT INTO users (email) VALUES ('ann@example.com'), ('bob@example.com') ON CONFLICT DO NOTHING;
INSERT INTO accounts (user_id, balance) SELECT id, 100 FROM users;
UPDATE accounts SET balance = balance + 1 WHERE balance < 1000;
ALTER TABLE accounts ADD COLUMN currency text;
UPDATE accounts SET currency = 'EUR';
ALTER TABLE accounts ALTER COLUMN currency SET NOT NULL, ALTER COLUMN currency SET DEFAULT 'EUR';
CREATE VIEW rich AS SELECT * FROM accounts WHERE balance > 1000;

-- +goose Down
DROP VIEW rich;
ALTER TABLE accounts DROP COLUMN currency;
DELETE FROM users;
