ALTER TABLE orders ADD COLUMN IF NOT EXISTS status text;
UPDATE orders SET status = 'pending' WHERE status IS NULL;
ALTER TABLE orders ALTER COLUMN status SET NOT NULL;
