\set QUIET on
\set SHOW_CONTEXT never
\pset footer off
\set QUIET off
\warn '-- As the owner of the tables: three tables, of which the wall is to protect orders.'
CREATE TABLE customers (id int PRIMARY KEY);
CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customers ON DELETE CASCADE, status text NOT NULL);
CREATE FUNCTION pay(int) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS 'UPDATE orders SET status = ''paid'' WHERE id = $1';
\o /dev/null
SELECT fencing.register('orders', mode => 'lease');
SELECT fencing.wall('orders');
SELECT fencing.tombstones('orders');
\o

\warn
\warn '-- The rights of the application\'s role, and no more.'
CREATE ROLE app LOGIN;
GRANT USAGE ON SCHEMA fencing TO app;
GRANT SELECT ON fencing.registry, fencing.generation TO app;
GRANT SELECT ON SEQUENCE fencing.write_epoch TO app;
GRANT EXECUTE ON FUNCTION fencing.next_token() TO app;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders, customers TO app;

\warn
\warn '-- From here on as the application. A first holder draws a token and writes, a second one takes over.'
\set QUIET on
\connect -reuse-previous=on "user=app"
\set QUIET off
SELECT fencing.next_token();
INSERT INTO customers VALUES (1);
INSERT INTO orders (id, customer, status, last_token) VALUES (7, 1, 'new', 1);
SELECT fencing.next_token();
UPDATE orders SET status = 'packed', last_token = 2 WHERE id = 7 AND last_token <= 2;

\warn
\warn '-- The first holder wakes up: with its old token and the condition it writes nothing ...'
UPDATE orders SET status = 'lost', last_token = 1 WHERE id = 7 AND last_token <= 1;
\warn
\warn '-- ... and without the condition it is refused.'
UPDATE orders SET status = 'lost', last_token = 1 WHERE id = 7;
\warn SQLSTATE :SQLSTATE
\warn
\warn '-- Without a token.'
UPDATE orders SET status = 'lost' WHERE id = 7;
\warn SQLSTATE :SQLSTATE
INSERT INTO orders (id, customer, status) VALUES (8, 1, 'new');
\warn SQLSTATE :SQLSTATE
\warn
\warn '-- With a token that was never issued.'
UPDATE orders SET status = 'lost', last_token = 9223372036854775807 WHERE id = 7;
\warn SQLSTATE :SQLSTATE
\warn
\warn '-- Over the row, by an upsert and by MERGE.'
INSERT INTO orders (id, customer, status, last_token) VALUES (7, 1, 'lost', 1)
  ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token;
\warn SQLSTATE :SQLSTATE
MERGE INTO orders o USING (VALUES (7)) AS s(id) ON o.id = s.id WHEN MATCHED THEN UPDATE SET status = 'lost';
\warn SQLSTATE :SQLSTATE
\warn
\warn '-- By DELETE and INSERT: without a token, and with the old one.'
DELETE FROM orders WHERE id = 7;
\warn SQLSTATE :SQLSTATE
BEGIN;
SET LOCAL fencing.token = '1';
DELETE FROM orders WHERE id = 7;
\warn SQLSTATE :SQLSTATE
ROLLBACK;
\warn
\warn '-- By a function, though it runs as the owner of the table.'
SELECT pay(7);
\warn SQLSTATE :SQLSTATE
\warn
\warn '-- By a cascade.'
DELETE FROM customers WHERE id = 1;
\warn SQLSTATE :SQLSTATE
\warn
\warn '-- By taking the wall down.'
SET session_replication_role = 'replica';
\warn SQLSTATE :SQLSTATE
ALTER TABLE orders DISABLE TRIGGER ALL;
\warn SQLSTATE :SQLSTATE
SELECT fencing.wall('orders', 'off');
\warn SQLSTATE :SQLSTATE
SELECT setval('fencing.write_epoch', 9223372036854775807);
\warn SQLSTATE :SQLSTATE
\warn
\warn '-- By TRUNCATE: not granted to the application, and refused where it is.'
TRUNCATE orders;
\warn SQLSTATE :SQLSTATE
\warn '-- As a superuser:'
\set QUIET on
\connect -reuse-previous=on "user=postgres"
\set QUIET off
TRUNCATE orders;
\warn SQLSTATE :SQLSTATE
SET session_replication_role = 'replica';
UPDATE orders SET status = 'lost' WHERE id = 7;
\warn SQLSTATE :SQLSTATE
\set QUIET on
\connect -reuse-previous=on "user=app"
\set QUIET off
\warn
\warn '-- The row is what the second holder wrote.'
TABLE orders;
\warn
\warn '-- The second holder deletes it under its token; the first can\'t insert it again.'
DELETE FROM orders WHERE id = 7 AND (SELECT set_config('fencing.token', '2', true)) IS NOT NULL;
INSERT INTO orders (id, customer, status, last_token) VALUES (7, 1, 'lost', 1);
\warn SQLSTATE :SQLSTATE
