package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
)

const (
	shortInterval = 20 * time.Millisecond
	touchFunction = `CREATE FUNCTION touch() RETURNS void LANGUAGE sql AS 'UPDATE orders SET status = status'`
)

// registered is a database with a registry, and orders and jobs not in it.
func registered(t *testing.T) string {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, levelSchema)
	return dsn
}

// requireRefusedSoon waits for a statement to be refused.
func requireRefusedSoon(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	fencetest.Eventually(t, func() bool {
		_, err := db.Exec(statement)
		if !errors.Is(err, rewrite.ErrRefused) {
			require.NoError(t, err)
		}
		return err != nil
	})
}

// What others change is known after the interval on connections that are open.
func TestChangesByOthers(t *testing.T) {
	dsn := registered(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	connector, err := driver.NewPoolConnector(pool, driver.WithRefreshInterval(shortInterval))
	require.NoError(t, err)
	pooled := sql.OpenDB(connector)
	defer pooled.Close()
	pooled.SetMaxIdleConns(0)
	plain, err := driver.Open(dsn, driver.WithRefreshInterval(shortInterval))
	require.NoError(t, err)
	defer plain.Close()
	plain.SetMaxOpenConns(1)
	unpooled, err := driver.Open(dsn, driver.WithRefreshInterval(shortInterval))
	require.NoError(t, err)
	defer unpooled.Close()
	unpooled.SetMaxIdleConns(0)
	handles := []*sql.DB{plain, pooled, unpooled}
	for _, db := range handles {
		_, err = db.Exec(`UPDATE orders SET status = 'x'`)
		require.NoError(t, err)
	}
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}))
	for _, db := range handles {
		requireRefusedSoon(t, db, `UPDATE orders SET status = 'x'`)
	}
	run(t, dsn, touchFunction, `CREATE VIEW v AS SELECT * FROM orders`)
	before := pidOf(t, plain)
	for _, db := range handles {
		requireRefusedSoon(t, db, `SELECT touch()`)
		requireRefusedSoon(t, db, `DELETE FROM v`)
	}
	require.Equal(t, before, pidOf(t, plain), "no new connection was needed for it")
	run(t, dsn, `DROP FUNCTION touch()`, `CREATE FUNCTION touch() RETURNS void LANGUAGE sql AS 'SELECT 1'`)
	fencetest.Eventually(t, func() bool { _, err := plain.Exec(`SELECT touch()`); return err == nil })
}

func pidOf(t *testing.T, db *sql.DB) (pid int) {
	t.Helper()
	require.NoError(t, db.QueryRow(`SELECT pg_backend_pid()`).Scan(&pid))
	return pid
}

// What the handle itself changes is known with the next connection used, once
// it is committed. Only a reported table lets it.
func TestChangesByTheHandle(t *testing.T) {
	for name, create := range map[string]func(*testing.T, *sql.DB){
		"Exec": func(t *testing.T, db *sql.DB) {
			_, err := db.Exec(touchFunction)
			require.NoError(t, err)
		},
		"Query": func(t *testing.T, db *sql.DB) {
			rows, err := db.Query(touchFunction)
			require.NoError(t, err)
			require.False(t, rows.Next())
			require.NoError(t, rows.Close())
			require.NoError(t, rows.Err())
		},
		"prepared": func(t *testing.T, db *sql.DB) {
			s, err := db.Prepare(touchFunction)
			require.NoError(t, err)
			defer s.Close()
			_, err = s.Exec()
			require.NoError(t, err)
		},
		"transaction": func(t *testing.T, db *sql.DB) {
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = tx.Exec(touchFunction)
			require.NoError(t, err)
			var one int
			require.NoError(t, db.QueryRow(`SELECT 1`).Scan(&one), "looks before the commit")
			require.NoError(t, tx.Commit())
		},
		"COMMIT as text": func(t *testing.T, db *sql.DB) {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			for _, s := range []string{`BEGIN`, touchFunction, `SELECT 1`, `COMMIT`} {
				_, err = conn.ExecContext(t.Context(), s)
				require.NoError(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t)
			run(t, dsn, levelSchema)
			var r recorder
			db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithLevel(driver.Report, "orders"), driver.WithRefreshInterval(time.Hour), r.option())
			require.NoError(t, err)
			defer db.Close()
			other, err := db.Conn(t.Context())
			require.NoError(t, err)
			create(t, db)
			require.NoError(t, other.Close())
			r.take()
			_, err = db.Exec(`SELECT touch()`)
			require.NoError(t, err)
			require.Equal(t, []string{"reported FR208"}, r.take())
		})
	}
}

// The registry says which sequence tokens come from and, by a column that may
// be missing, whether a table has its wall.
func TestRegistrysPartOfTheClosure(t *testing.T) {
	dsn := registered(t)
	run(t, dsn, `CREATE SEQUENCE tokens`, `CREATE TABLE carts (id bigint PRIMARY KEY)`, `ALTER TABLE orders ADD cart bigint REFERENCES carts ON DELETE CASCADE`,
		`SELECT fencing.register('orders', 'strict', issued_by => 'tokens')`)
	db, err := driver.Open(dsn, driver.WithRefreshInterval(shortInterval))
	require.NoError(t, err)
	defer db.Close()
	for _, statement := range []string{`SELECT setval('tokens', 1)`, `SELECT setval('fencing.write_epoch', 1)`, `DELETE FROM carts`} {
		_, err = db.Exec(statement)
		require.ErrorIs(t, err, rewrite.ErrRefused, statement)
	}
	run(t, dsn, `ALTER TABLE fencing.registry ADD IF NOT EXISTS wall_level text`, `UPDATE fencing.registry SET wall_level = 'report'`)
	reported, err := driver.Open(dsn)
	require.NoError(t, err)
	defer reported.Close()
	_, err = reported.Exec(`DELETE FROM carts`)
	require.ErrorIs(t, err, rewrite.ErrRefused, "a wall that only reports judges nothing")
	run(t, dsn, `UPDATE fencing.registry SET wall_level = 'enforce'`)
	fencetest.Eventually(t, func() bool { _, err := db.Exec(`DELETE FROM carts`); return err == nil })
}

// A look that fails changes nothing, and is told of.
func TestLookThatFails(t *testing.T) {
	dsn := registered(t)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Strict}))
	var r recorder
	db, err := driver.Open(dsn, driver.WithRefreshInterval(shortInterval), r.option())
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	run(t, dsn, `ALTER TABLE fencing.generation RENAME TO moved`)
	fencetest.Eventually(t, func() bool {
		_, err := db.Exec(`SELECT 1`)
		return err == nil && slices.Contains(r.take(), "unread")
	})
	_, err = db.Exec(`UPDATE orders SET status = 'x'`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	run(t, dsn, `ALTER TABLE fencing.moved RENAME TO generation`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "jobs", Mode: migrations.Strict}))
	requireRefusedSoon(t, db, `UPDATE jobs SET status = 'x'`)
}

// A look leaves a transaction alone that SQL has left open, and one that the
// context ends costs the connection only.
func TestLookAtAnOddTime(t *testing.T) {
	dsn := registered(t)
	db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range []string{`BEGIN ISOLATION LEVEL SERIALIZABLE`, `SET TRANSACTION ISOLATION LEVEL READ COMMITTED`, `COMMIT`} {
		_, err = db.Exec(s)
		require.NoError(t, err, "nothing was read in between")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.ExecContext(ctx, `SELECT 1`)
	require.ErrorIs(t, err, context.Canceled)
	_, err = db.Exec(`SELECT 1`)
	require.NoError(t, err)
}

func TestGuardedFunctions(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema, touchFunction, `CREATE FUNCTION other() RETURNS void LANGUAGE sql AS 'SELECT touch()'`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict), driver.WithGuardedFunctions("touch"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`SELECT touch()`)
	require.NoError(t, err)
	_, err = db.Exec(`SELECT other()`)
	require.NoError(t, err, "it writes by a function with a guard only")
	_, err = driver.Open(dsn, driver.WithGuardedFunctions("a.b.c"))
	require.ErrorContains(t, err, "malformed")
	_, err = driver.Open(dsn, driver.WithRefreshInterval(0))
	require.ErrorContains(t, err, "positive duration")
}
