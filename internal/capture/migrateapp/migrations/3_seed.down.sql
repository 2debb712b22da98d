REVOKE SELECT ON orders FROM PUBLIC;
DROP INDEX IF EXISTS orders_user_id_idx;
DELETE FROM users WHERE email = 'ann@example.com';
