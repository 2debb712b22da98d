ALTER TABLE notes ADD COLUMN views integer NOT NULL DEFAULT 0;
UPDATE notes SET views = 1 WHERE views = 0;
