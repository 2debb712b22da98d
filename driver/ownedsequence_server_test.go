package driver_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
)

// A sequence that tokens come from is neither dropped nor reset with the table of the column that
// it belongs to.
func TestOwnersOfSequences(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0); CREATE TABLE plain (id bigserial, v text); CREATE SCHEMA app; CREATE SCHEMA free; CREATE TABLE app.own (id bigserial)`,
		`CREATE TABLE above (id bigint, note text) PARTITION BY LIST (note); CREATE TABLE own (id bigint GENERATED ALWAYS AS IDENTITY, note text); CREATE TABLE above_1 (id bigserial, note text); ALTER TABLE above ATTACH PARTITION above_1 DEFAULT`,
		`CREATE TABLE jobs (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)`,
		`CREATE FUNCTION drops() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DROP TABLE own; CREATE TABLE own (id bigserial); END $$; CREATE FUNCTION drops_above() RETURNS void LANGUAGE sql AS 'DROP TABLE above'`,
		`CREATE FUNCTION drops_other() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DROP TABLE plain; END $$; CREATE FUNCTION drops_made(t text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('DROP TABLE %I', t); END $$`,
		`SELECT fencing.register('orders', 'lease', issued_by => 'own_id_seq'), fencing.register('jobs', 'lease', issued_by => 'above_1_id_seq')`)
	run(t, dsn, `SELECT setval('own_id_seq', 1000), setval('above_1_id_seq', 1000)`)
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	defer db.Close()
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(context.Background())

	for _, sql := range []string{
		`DROP TABLE own`, `DROP TABLE IF EXISTS public.own CASCADE`, `DROP TABLE plain, own`, `DROP TABLE above`, `DROP TABLE above_1`,
		`ALTER TABLE own DROP COLUMN id`, `ALTER TABLE own ADD x int, DROP IF EXISTS id CASCADE`, `ALTER TABLE own ALTER id DROP IDENTITY`, `ALTER TABLE own ALTER COLUMN id RESTART`, `ALTER TABLE own ALTER id SET START 1 RESTART`,
		`ALTER TABLE above DROP COLUMN id CASCADE`, `DROP SCHEMA public CASCADE`,
		`ALTER TABLE own RENAME TO gone; DROP TABLE gone`, `ALTER TABLE own SET SCHEMA free; DROP TABLE free.own`, `ALTER TABLE own RENAME id TO x; ALTER TABLE own DROP x`,
		`CREATE TABLE parent (); ALTER TABLE own INHERIT parent; DROP TABLE parent CASCADE`, `DO $$ BEGIN DROP TABLE own; END $$`, `DO $$ BEGIN ALTER TABLE public.own DROP id; END $$`, `DO $$ BEGIN EXECUTE 'DROP TABLE own'; END $$`,
		`SELECT drops()`, `SELECT drops_above()`, `SELECT drops_made('own')`,
	} {
		_, err := db.ExecContext(t.Context(), sql)
		require.ErrorIs(t, err, rewrite.ErrRefused, sql)

		tx, err := plain.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
		var lost bool
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT count(*) < 2 OR bool_or(COALESCE(s.last_value, 1) < 1000) FROM pg_sequences s WHERE sequencename IN ('own_id_seq', 'above_1_id_seq') AND schemaname = 'public'`).Scan(&lost), sql)
		require.True(t, lost, "the bypass is real: %s", sql)
		require.NoError(t, tx.Rollback(t.Context()))
	}
	for _, sql := range []string{
		`DROP TABLE plain`, `DROP TABLE app.own`, `ALTER TABLE app.own DROP id`, `ALTER TABLE own DROP COLUMN note`, `ALTER TABLE own ADD COLUMN more text, ALTER note SET DEFAULT ''`, `ALTER TABLE own RENAME note TO n`,
		`CREATE INDEX ON own (note)`, `INSERT INTO own DEFAULT VALUES`, `TRUNCATE own`, `ALTER TABLE own SET (fillfactor = 50)`, `SELECT drops_other()`, `DO $$ BEGIN DROP TABLE plain; END $$`, `DO $$ BEGIN INSERT INTO own DEFAULT VALUES; END $$`,
		`CREATE TEMP TABLE tmp (id bigserial); DROP TABLE tmp`,
	} {
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), sql)
		require.NoError(t, err, sql)
		require.NoError(t, tx.Rollback())
	}
}
