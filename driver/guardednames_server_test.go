package driver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// What goes by the name of a function that carries a guard isn't changed through the handle: other
// code would take the guard's word.
func TestNamesOfGuardedFunctions(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, textsSchema, `CREATE SCHEMA oth; CREATE SCHEMA aside; CREATE FUNCTION harmless(i int) RETURNS int LANGUAGE sql AS 'SELECT i'; CREATE FUNCTION oth.archive_fn(i int) RETURNS int LANGUAGE sql AS 'SELECT i'`,
		`CREATE FUNCTION run2(i int, q text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE q; RETURN i; END $$; CREATE FUNCTION aside.keep() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		`CREATE FUNCTION keep_fn() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET v = 'kept'; END $$; CREATE PROCEDURE steps() LANGUAGE sql AS 'SELECT 1'`,
		`CREATE SCHEMA other; CREATE FUNCTION other.keep_fn() RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE public.orders SET v = 'HIT'; END $$`)
	db, err := driver.Open(withParameter(dsn, "search_path=other,public"), driver.Protect("orders", rewrite.Lease), driver.WithGuardedFunctions("archive_fn", "keep_fn", "guarded.f"), driver.WithRefreshInterval(time.Hour))
	require.NoError(t, err)
	defer db.Close()
	for _, text := range []string{
		`ALTER FUNCTION run(text, int) RENAME TO archive_fn`, `ALTER FUNCTION harmless(int) RENAME TO archive_fn`, `ALTER ROUTINE harmless(int) RENAME TO archive_fn`, `ALTER PROCEDURE steps() RENAME TO archive_fn`,
		`CREATE AGGREGATE archive_fn(text) (SFUNC = run2, STYPE = int, INITCOND = '0')`, `CREATE AGGREGATE oth.archive_fn(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')`,
		`CREATE FUNCTION archive_fn() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `CREATE OR REPLACE FUNCTION keep_fn() RETURNS void LANGUAGE sql AS 'SELECT 1'`, `CREATE PROCEDURE archive_fn() LANGUAGE sql AS 'SELECT 1'`,
		`ALTER FUNCTION oth.archive_fn(int) SET SCHEMA public`, `ALTER FUNCTION keep_fn() RENAME TO other`, `ALTER FUNCTION keep_fn() SET search_path = oth`, `DROP FUNCTION keep_fn()`, `DROP ROUTINE IF EXISTS harmless, archive_fn`,
		`ALTER FUNCTION keep_fn() OWNER TO CURRENT_USER`, `ALTER SCHEMA aside RENAME TO guarded`,
		`SELECT 1; ALTER FUNCTION harmless(int) RENAME TO archive_fn; SELECT archive_fn(1)`,
		`SELECT keep_fn()`, `SELECT other.keep_fn()`, // the former may be the latter
	} {
		_, err := db.Exec(text)
		require.ErrorIs(t, err, rewrite.ErrRefused, text)
		require.ErrorContains(t, err, "WithGuardedFunctions", text)
	}
	for _, text := range []string{
		`SELECT public.keep_fn()`, `CREATE TABLE archive_fn (keep_fn int)`,
		`CREATE INDEX archive_fn_i ON archive_fn (keep_fn)`, `DROP TABLE archive_fn`, `ALTER FUNCTION harmless(int) RENAME TO harmless_2`,
	} {
		_, err := db.Exec(text)
		require.NoError(t, err, text)
	}
}

// A type of a protected table's column is a part of its structure.
func TestTypesOfColumns(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TYPE within AS ENUM ('a', 'b'); CREATE TYPE free AS ENUM ('a', 'b'); CREATE TYPE listed AS ENUM ('a', 'b'); CREATE TYPE based AS ENUM ('a', 'b')`,
		`CREATE TYPE pair AS (a int, w within); CREATE TYPE single AS (a int, b int); CREATE DOMAIN checked AS based CHECK (VALUE <> 'b'); CREATE TYPE ranged AS ENUM ('a', 'b'); CREATE TYPE span AS RANGE (SUBTYPE = ranged); CREATE TABLE rowtype (a int, b int)`,
		`CREATE TABLE orders (id bigint PRIMARY KEY, m mood, p pair, l listed[], c checked, s span, r rowtype, last_token bigint NOT NULL DEFAULT 0)`,
		`INSERT INTO orders VALUES (1, 'a', ROW(1, 'a'), ARRAY['a']::listed[], NULL, span('a', 'b'), ROW(1, 2))`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	for _, text := range []string{
		`ALTER TYPE mood RENAME VALUE 'a' TO 'HIT'`, `ALTER TYPE public.mood RENAME VALUE 'a' TO 'HIT'`, `ALTER TYPE within RENAME VALUE 'a' TO 'HIT'`, `ALTER TYPE listed RENAME VALUE 'a' TO 'HIT'`,
		`ALTER TYPE based RENAME VALUE 'a' TO 'HIT'`, `ALTER TYPE ranged RENAME VALUE 'a' TO 'HIT'`, `ALTER TYPE pair DROP ATTRIBUTE a`, `ALTER TYPE pair RENAME ATTRIBUTE a TO b`, `ALTER TABLE rowtype DROP COLUMN b`, `ALTER TYPE pair ADD ATTRIBUTE z int`,
	} {
		_, err := db.Exec(text)
		require.ErrorIs(t, err, rewrite.ErrRefused, text)
		require.ErrorContains(t, err, "of which a protected table has a column", text)
	}
	for _, text := range []string{
		`ALTER TYPE mood ADD VALUE 'c'`, `ALTER TYPE free RENAME VALUE 'a' TO 'z'`, `ALTER TYPE single DROP ATTRIBUTE a`, `ALTER TABLE rowtype ALTER COLUMN b SET STATISTICS 5`, `ALTER TYPE mood OWNER TO CURRENT_USER`,
	} {
		_, err := db.Exec(text)
		require.NoError(t, err, text)
	}
}
