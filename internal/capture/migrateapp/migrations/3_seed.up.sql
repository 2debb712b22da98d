INSERT INTO users (email) VALUES ('ann@example.com') ON CONFLICT (email) DO NOTHING;
CREATE INDEX IF NOT EXISTS orders_user_id_idx ON orders (user_id);
GRANT SELECT ON orders TO PUBLIC;
