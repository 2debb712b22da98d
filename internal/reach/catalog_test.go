package reach

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The stamp changes with whatever the reading depends on, and with little else.
func TestStamp(t *testing.T) {
	setup := connected(t, attackSchema+`CREATE DOMAIN touched AS bigint; CREATE VIEW av AS SELECT region AS r FROM area; CREATE TYPE pair AS (a bigint, b int); CREATE TRIGGER tt AFTER UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION nop();
		CREATE FUNCTION set_database(q text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format(q, current_database()); END $$;
		CREATE FUNCTION et() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$`)
	before := stampOf(t, setup)
	for _, step := range []struct {
		sql     string
		changes bool
	}{
		{`ALTER TABLE area RENAME COLUMN region TO reg`, true},
		{`ALTER VIEW av RENAME COLUMN r TO rr`, true},
		{`ALTER TYPE pair ALTER ATTRIBUTE a TYPE touched`, true},
		{`ALTER TABLE plain ALTER v SET NOT NULL`, true},
		{`ALTER TABLE plain DISABLE TRIGGER tt`, true},
		{`CREATE TYPE rr AS RANGE (SUBTYPE = bigint)`, true},
		{`CREATE MATERIALIZED VIEW mv AS SELECT 1`, true},
		{`CREATE EVENT TRIGGER e1 ON ddl_command_end EXECUTE FUNCTION et()`, true},
		{`ALTER EVENT TRIGGER e1 DISABLE`, true},
		{`CREATE FOREIGN DATA WRAPPER fdw; CREATE SERVER far FOREIGN DATA WRAPPER fdw; CREATE FOREIGN TABLE away (id int) SERVER far OPTIONS (table_name 'area')`, true},
		{`ALTER FOREIGN TABLE away OPTIONS (SET table_name 'orders')`, true},
		{`ALTER TABLE plain ADD g text GENERATED ALWAYS AS (upper(v)) STORED`, true},
		{`ALTER TABLE area ADD a1 int, ADD a2 int`, true},
		{`ALTER TABLE area DROP a1; ALTER TABLE area ADD a1 int`, true}, // in another place
		{`CREATE SCHEMA far; CREATE TABLE far.orders (id int)`, true},
		{`CREATE VIEW settings AS SELECT * FROM pg_settings`, true},
		{`CREATE OPERATOR far.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = int8le)`, true},
		{
			`CREATE FUNCTION cmp(pair, pair) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 0'; CREATE OPERATOR FAMILY family USING btree; ALTER OPERATOR FAMILY family USING btree ADD FUNCTION 1 (pair, pair) cmp(pair, pair)`,
			true,
		},
		{`ALTER OPERATOR FAMILY family USING btree DROP FUNCTION 1 (pair, pair)`, true},
		{`ALTER OPERATOR FAMILY family USING btree ADD OPERATOR 1 < (text, text)`, true},
		{`CREATE STATISTICS st ON (upper(v)) FROM plain`, true},
		{`CREATE POLICY p ON plain USING (true)`, true},
		{`ALTER FOREIGN DATA WRAPPER fdw VALIDATOR postgresql_fdw_validator`, true},
		{`CREATE TYPE own`, false},
		{
			`CREATE FUNCTION own_in(cstring) RETURNS own IMMUTABLE STRICT LANGUAGE internal AS 'int4in'; CREATE FUNCTION own_out(own) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out'; CREATE FUNCTION own_send(own) RETURNS bytea LANGUAGE internal AS 'int4send'`,
			true,
		},
		{`CREATE TYPE own (INPUT = own_in, OUTPUT = own_out, LIKE = int4)`, true},
		{`ALTER TYPE own SET (SEND = own_send)`, true},
		{`CREATE TEMP TABLE made (id int, t text NOT NULL)`, false},
		{`ALTER TABLE made RENAME TO made_otherwise`, false},
		{`CREATE TRIGGER tt BEFORE UPDATE ON made_otherwise FOR EACH ROW EXECUTE FUNCTION nop()`, true},
		{`ALTER TABLE made_otherwise RENAME TO made`, true},
		{`CREATE TEMP TABLE defaulted (id int DEFAULT 1)`, true},
		{`ALTER TABLE defaulted RENAME TO defaulted_otherwise`, true},
		{`CREATE TEMP TABLE checked (id int CHECK (id > 0))`, true},
		{`ALTER TABLE checked RENAME TO checked_otherwise`, true},
		{`CREATE TEMP TABLE indexed (id int); CREATE INDEX ON indexed ((id + 1))`, true},
		{`ALTER TABLE indexed RENAME TO indexed_otherwise`, true},
		{`CREATE TEMP TABLE child () INHERITS (area)`, true},
		{`ALTER TABLE child RENAME TO child_otherwise`, true},
		{`CREATE TEMP VIEW tv AS SELECT id FROM area`, true},
		{`ALTER VIEW tv RENAME TO tv_otherwise`, true},
		{`ALTER VIEW tv_otherwise RENAME COLUMN id TO identity`, true},
		{`CREATE TYPE mood AS ENUM ('a')`, true},
		{`ALTER TYPE mood RENAME TO moods`, true},
		{`ALTER TYPE pair RENAME TO pairs`, true},
		{`CREATE SEQUENCE tokens`, true},
		{`ALTER SEQUENCE tokens RENAME TO tokens_otherwise`, true},
		{`ALTER SEQUENCE tokens_otherwise SET SCHEMA far`, true},
		{`ALTER SEQUENCE far.tokens_otherwise OWNED BY far.orders.id`, true},
		{`SELECT nextval('far.tokens_otherwise'); SELECT setval('far.tokens_otherwise', 9); TRUNCATE far.orders RESTART IDENTITY`, false},
		{`ALTER SEQUENCE far.tokens_otherwise OWNED BY NONE`, true},
		{`ALTER EXTENSION plpgsql ADD FUNCTION nop()`, true},
		{`ALTER EXTENSION plpgsql DROP FUNCTION nop()`, true},
		{`ALTER LANGUAGE plpgsql RENAME TO other`, true},
		{`ALTER LANGUAGE other RENAME TO plpgsql`, true},
		{`SELECT set_database('ALTER DATABASE %I SET work_mem = 9999')`, false},
		{`INSERT INTO plain VALUES (1, 'x'); ANALYZE plain; VACUUM plain`, false},
	} {
		for _, sql := range strings.Split(step.sql, ";") {
			_, err := setup.Exec(t.Context(), sql)
			require.NoError(t, err, sql)
		}
		after := stampOf(t, setup)
		require.Equal(t, step.changes, before != after, step.sql)
		before = after
	}
}

// A role that may not read the catalog is told so.
func TestReadingWithoutRights(t *testing.T) {
	session := connected(t, attackSchema+`CREATE ROLE closure_poor; REVOKE ALL ON pg_catalog.pg_proc FROM PUBLIC`)
	defer session.Exec(context.Background(), `RESET ROLE; DROP ROLE closure_poor`)
	_, err := session.Exec(t.Context(), `SET ROLE closure_poor`)
	require.NoError(t, err)
	_, err = Read(t.Context(), session, closureTables()[:1])
	require.ErrorContains(t, err, "permission denied for table pg_proc")
	require.ErrorContains(t, err, "grant this role SELECT")
}
