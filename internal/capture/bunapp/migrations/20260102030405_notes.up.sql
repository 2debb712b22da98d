CREATE TABLE notes (id bigserial PRIMARY KEY, body text NOT NULL);

--bun:split

CREATE INDEX notes_body_idx ON notes (body);
