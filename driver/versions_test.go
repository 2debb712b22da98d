package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// newerSchema is what migrations of a later version may add: columns, tables and
// functions that this version doesn't know, and a level of the wall.
const newerSchema = `ALTER TABLE fencing.registry ADD audience text NOT NULL DEFAULT 'all', ADD policy jsonb;
	ALTER TABLE fencing.generation ADD reason text;
	CREATE TABLE fencing.quota (resource text PRIMARY KEY, writes bigint);
	CREATE FUNCTION fencing.quota(name, bigint) RETURNS void LANGUAGE sql AS '';
	ALTER TABLE fencing.registry DROP CONSTRAINT registry_wall_level_check;
	UPDATE fencing.registry SET wall_level = 'witnessed' WHERE table_name = 'jobs';
	INSERT INTO fencing.goose_db_version (version_id, is_applied) VALUES (2, true)`

// olderSchema takes away what a driver can do without, as a schema has it that an
// earlier version has made: columns of the registry, and what it allows.
const olderSchema = `ALTER TABLE fencing.registry DROP COLUMN wall_level CASCADE, DROP COLUMN driver_rewrite CASCADE,
		DROP COLUMN seal_resource CASCADE, DROP COLUMN seal_column CASCADE, DROP COLUMN tombstones CASCADE;
	DROP FUNCTION fencing.allowed_functions() CASCADE`

// The driver protects the registered tables on a schema of a later version, and on an
// earlier one that has what it reads: a handle that is open, and a new one.
func TestSchemaOfAnotherVersion(t *testing.T) {
	for name, change := range map[string]string{"newer": newerSchema, "older": olderSchema} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := registered(t)
			run(t, dsn, `CREATE TABLE later (id bigint PRIMARY KEY, status text)`, `SELECT setval('fencing.write_epoch', 100)`)
			for _, table := range []string{"orders", "jobs"} {
				require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: table, Mode: migrations.Lease}))
			}
			var log eventLog
			open, err := driver.Open(dsn, driver.WithRefreshInterval(shortInterval), log.option())
			require.NoError(t, err)
			defer open.Close()
			require.NoError(t, open.PingContext(t.Context()))

			run(t, dsn, change, `ALTER TABLE later ADD last_token bigint NOT NULL DEFAULT 0`,
				`INSERT INTO fencing.registry (relid, schema_name, table_name, token_column, mode) VALUES ('later', 'public', 'later', 'last_token', 'lease')`)
			requireRefusedSoon(t, open, `UPDATE later SET status = 'x'`)
			fresh, err := driver.Open(dsn)
			require.NoError(t, err)
			defer fresh.Close()
			for _, table := range []string{"orders", "jobs", "later"} {
				run(t, dsn, `INSERT INTO `+table+` (id, last_token) VALUES (77, 8)`)
				guarded := `UPDATE ` + table + ` SET status = 'x', last_token = $1 WHERE id = 77 AND last_token <= $1`
				_, err = fresh.ExecContext(tokenctx.With(t.Context(), 7), guarded, tokenctx.Arg)
				require.ErrorIs(t, err, driver.ErrStale, table)
				_, err = open.ExecContext(tokenctx.With(t.Context(), 9), guarded, tokenctx.Arg)
				require.NoError(t, err, table)
				_, err = fresh.ExecContext(tokenctx.With(t.Context(), 9), `DELETE FROM `+table)
				require.ErrorIs(t, err, rewrite.ErrRefused, table)
			}
			require.False(t, log.has(driver.EventUnread))
		})
	}
}

// On a schema that lacks what the driver reads, no handle opens, and the error says what
// to do. One that is open keeps its protection, and tells that it can't look.
func TestSchemaThatIsTooOld(t *testing.T) {
	t.Parallel()
	dsn := registered(t)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	var log eventLog
	open, err := driver.Open(dsn, driver.WithRefreshInterval(shortInterval), log.option())
	require.NoError(t, err)
	defer open.Close()
	require.NoError(t, open.PingContext(t.Context()))

	run(t, dsn, `ALTER TABLE fencing.registry DROP COLUMN driver_level CASCADE; UPDATE fencing.generation SET value = value + 1`)
	fresh, err := driver.Open(dsn)
	if err == nil {
		defer fresh.Close()
		err = fresh.PingContext(t.Context())
	}
	require.ErrorContains(t, err, "is of an older version: run migrations.Up")
	fencetest.Eventually(t, func() bool {
		_, err := open.ExecContext(t.Context(), `UPDATE orders SET status = 'x'`)
		require.ErrorIs(t, err, rewrite.ErrRefused)
		return log.has(driver.EventUnread)
	})
}
