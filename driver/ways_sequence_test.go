package driver_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// preparedName is the server-side name that pgx gives a statement of Prepare.
func preparedName(sql string) string { return pgxName("stmt_", sql) }

// cachedName is the one of a statement that pgx prepares on its own.
func cachedName(sql string) string { return pgxName("stmtcache_", sql) }

func pgxName(prefix, sql string) string {
	digest := sha256.Sum256([]byte(sql))
	return prefix + hex.EncodeToString(digest[:24])
}

// swap is a server-side statement that others are put in the place of, or that
// is run by its name.
type swap struct {
	steps []string
	ends  func(t *testing.T, db *sql.DB, stmt *sql.Stmt)
}

const (
	swapInnocent = `SELECT 1`
	swapCached   = `SELECT 2`
)

func swaps() map[string]swap {
	prepared, cached := `"`+preparedName(swapInnocent)+`"`, `"`+cachedName(swapCached)+`"`
	runPrepared := func(t *testing.T, _ *sql.DB, stmt *sql.Stmt) {
		_, err := stmt.Exec()
		require.NoError(t, err)
	}
	runCached := func(t *testing.T, db *sql.DB, _ *sql.Stmt) {
		require.NoError(t, drain(db.Query(swapCached)))
	}
	nothing := func(*testing.T, *sql.DB, *sql.Stmt) {}
	return map[string]swap{
		"a prepared statement":        {[]string{`DEALLOCATE ` + prepared, `PREPARE ` + prepared + ` AS ` + waysWrite}, runPrepared},
		"after DEALLOCATE ALL":        {[]string{`DEALLOCATE ALL; PREPARE ` + prepared + ` AS ` + waysWrite}, runPrepared},
		"after DISCARD ALL":           {[]string{`DISCARD ALL`, `PREPARE ` + prepared + ` AS ` + waysWrite}, runPrepared},
		"a cached statement":          {[]string{`DEALLOCATE ` + cached, `PREPARE ` + cached + ` AS ` + waysWrite + ` RETURNING 1`}, runCached},
		"a guarded write by its name": {[]string{`EXECUTE "` + preparedName(waysGuarded) + `" (99, 9, 1)`}, nothing},
	}
}

// send prepares what is swapped, and returns what the steps ended with.
func (s swap) send(t *testing.T, db *sql.DB) []error {
	stmt, err := db.Prepare(swapInnocent)
	require.NoError(t, err)
	require.NoError(t, drain(db.Query(swapCached))) // pgx caches it
	guarded, err := db.Prepare(waysGuarded)
	require.NoError(t, err)
	var ended []error
	for _, step := range s.steps {
		_, err := db.Exec(step)
		ended = append(ended, err)
	}
	s.ends(t, db, stmt)
	require.NoError(t, stmt.Close())
	require.NoError(t, guarded.Close())
	return ended
}

// No statement that was checked can be swapped for another under its
// server-side name, and none runs by that name past its check.
func TestStatementSwappedByName(t *testing.T) {
	dsn := waysDatabase(t)
	plain := newWitness(t, dsn)
	for name, s := range swaps() {
		t.Run(name, func(t *testing.T) {
			handle, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
			db := openSingle(t, handle, err)
			for i, err := range s.send(t, db.DB) {
				require.ErrorIs(t, err, rewrite.ErrRefused, s.steps[i])
			}
			db.requireUsable(t, db)
			db.requireIdle(t)
			plain.requireRow(t, 0, waysToken)
		})
		t.Run(name+", through pgx", func(t *testing.T) {
			defer func() { _, _ = plain.Exec(t.Context(), waysRow) }()
			handle, err := sql.Open("pgx", dsn)
			db := openSingle(t, handle, err)
			for i, err := range s.send(t, db.DB) {
				require.NoError(t, err, s.steps[i])
			}
			n, _ := plain.row(t)
			require.Equal(t, 99, n)
		})
	}
}

// shadows put something else in the table's place for the session.
var shadows = map[string][]string{
	"temporary view":             {`CREATE TEMP VIEW orders AS SELECT * FROM other`},
	"replaced temporary view":    {`CREATE OR REPLACE TEMPORARY VIEW "orders" AS SELECT id, n, last_token FROM other`},
	"temporary table":            {`CREATE TEMP TABLE orders (LIKE other)`, `INSERT INTO pg_temp.orders VALUES (1, 0, 0)`},
	"temporary table, qualified": {`CREATE TABLE pg_temp.orders (LIKE other)`, `INSERT INTO pg_temp.orders VALUES (1, 0, 0)`},
	"temporary table of a query": {`CREATE TEMP TABLE orders AS SELECT * FROM other`},
	"SELECT INTO":                {`SELECT * INTO TEMP orders FROM other`},
	"renamed temporary table":    {`CREATE TEMP TABLE stand_in AS SELECT * FROM other`, `ALTER TABLE stand_in RENAME TO orders`},
	"renamed temporary view":     {`CREATE TEMP VIEW stand_in AS SELECT * FROM other`, `ALTER VIEW stand_in RENAME TO orders`},
}

// Nothing takes the table's place under a prepared write: the write is
// answered for by the table itself.
func TestTableShadowed(t *testing.T) {
	dsn := waysDatabase(t)
	plain := newWitness(t, dsn)
	write := func(t *testing.T, stmt *sql.Stmt, arg any) {
		result, err := stmt.ExecContext(tokenctx.With(t.Context(), 9), 99, arg, 1)
		require.NoError(t, err)
		n, err := result.RowsAffected()
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	}
	for name, steps := range shadows {
		t.Run(name, func(t *testing.T) {
			_, err := plain.Exec(t.Context(), waysRow)
			require.NoError(t, err)
			handle, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
			db := openSingle(t, handle, err)
			stmt, err := db.Prepare(waysGuarded)
			require.NoError(t, err)
			refused := 0
			for _, sql := range steps {
				if _, err := db.Exec(sql); errors.Is(err, rewrite.ErrRefused) {
					refused++ // what only goes with it may fail on the server
				}
			}
			require.NotZero(t, refused)
			write(t, stmt, tokenctx.Arg)
			plain.requireRow(t, 99, 9)
			db.requireUsable(t, db)
			require.NoError(t, stmt.Close())
		})
		t.Run(name+", through pgx", func(t *testing.T) {
			_, err := plain.Exec(t.Context(), waysRow)
			require.NoError(t, err)
			handle, err := sql.Open("pgx", dsn)
			db := openSingle(t, handle, err)
			stmt, err := db.Prepare(waysGuarded)
			require.NoError(t, err)
			for _, sql := range steps {
				_, err := db.Exec(sql)
				require.NoError(t, err, sql)
			}
			write(t, stmt, 9)
			plain.requireRow(t, 0, waysToken)
			require.NoError(t, stmt.Close())
			_, err = plain.Exec(t.Context(), `UPDATE other SET n = 0, last_token = 0`)
			require.NoError(t, err)
		})
	}
}

// A Valuer is asked once, and what it gave is what is sent, at every entry.
func TestValuerIsAskedOnce(t *testing.T) {
	ctx := tokenctx.With(t.Context(), waysToken)
	dsn := waysDatabase(t)
	plain := newWitness(t, dsn)
	handle, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
	db := openSingle(t, handle, err)
	naive, err := sql.Open("pgx", dsn)
	unchecked := openSingle(t, naive, err)
	for _, e := range entries() {
		t.Run(e.name, func(t *testing.T) {
			reset := func() {
				_, err := plain.Exec(t.Context(), `UPDATE orders SET n = 0, last_token = 5`)
				require.NoError(t, err)
			}
			args := func() []any { return []any{1, &shown{[]int64{waysToken, 9, 9}}, 1} }
			reset()
			err := e.send(ctx, db.DB, func(on sender) { db.requireUsable(t, on) }, waysGuarded, args())
			if e.bare {
				requireRefused(t, err, rewrite.NoToken)
				plain.requireRow(t, 0, 5)
			} else {
				require.NoError(t, err)
				plain.requireRow(t, 1, waysToken)
			}
			db.requireIdle(t)

			reset()
			late := args()
			_, _ = late[1].(*shown).Value() // as a check would that passes the Valuer on
			require.NoError(t, e.send(ctx, unchecked.DB, func(sender) {}, waysGuarded, late))
			plain.requireRow(t, 1, 9)
		})
	}
}
