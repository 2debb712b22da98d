package driver_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openWalled opens a handle on a table with a wall, whose rows carry 5: three, and those
// of the first hundreds.
func openWalled(t *testing.T, mode migrations.Mode, level migrations.WallLevel, opts ...driver.Option) (*sql.DB, string) {
	t.Helper()
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO orders SELECT i, 'new', 5 FROM generate_series(1, 3) i;
		INSERT INTO orders SELECT 100 * i, 'new', 5 FROM generate_series(1, 24) i`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: mode, Resource: "Orders/EU"}))
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", level))
	run(t, dsn, `SELECT fencing.next_token() FROM generate_series(1, 100)`,
		`CREATE FUNCTION touch(i bigint) RETURNS bigint LANGUAGE sql AS $$UPDATE orders SET status = 'by a function' WHERE id = i RETURNING id$$`)
	db, err := driver.Open(dsn, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, dsn
}

// walledWrites are guarded, in either mode. Each takes the id and the token.
var walledWrites = map[string]string{
	"update": `UPDATE orders SET status = 'x', last_token = $2 WHERE id = $1 AND last_token < $2`,
	"insert": `INSERT INTO orders (id, status, last_token) VALUES ($1 + 10, 'x', $2)`,
	"upsert": `INSERT INTO orders (id, status, last_token) VALUES ($1, 'x', $2) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = EXCLUDED.last_token WHERE orders.last_token < EXCLUDED.last_token`,
	"select": `INSERT INTO orders (id, status, last_token) SELECT $1 + i, 'x', $2::bigint FROM generate_series(20, 21) i`,
	"merge":  `MERGE INTO orders o USING (VALUES ($1::bigint), ($1::bigint + 30)) s(id) ON o.id = s.id WHEN MATCHED AND o.last_token < $2 THEN UPDATE SET status = 'x', last_token = $2 WHEN NOT MATCHED THEN INSERT (id, last_token) VALUES (s.id, $2)`,
	"delete": `DELETE FROM orders WHERE id = $1 AND last_token < $2`,
}

// What the driver lets through, the wall lets through: with the token in BEGIN
// or only in the statement, prepared or not.
func TestWallTakesWhatTheDriverSends(t *testing.T) {
	with := func(token tokenctx.Token) context.Context {
		return tokenctx.WithResource(t.Context(), "Orders/EU", token)
	}
	for _, mode := range []migrations.Mode{migrations.Strict, migrations.Lease} {
		for _, level := range []migrations.WallLevel{migrations.WallReport, migrations.WallEnforce, migrations.WallAttested} {
			db, _ := openWalled(t, mode, level)
			id := 0 // each write has a row of its own
			for name, write := range walledWrites {
				for how, exec := range map[string]func() error{
					"alone": func() error { _, err := db.ExecContext(with(7), write, id, tokenctx.Arg); return err },
					"prepared": func() error {
						stmt, err := db.Prepare(write)
						require.NoError(t, err)
						defer stmt.Close()
						_, err = stmt.ExecContext(with(7), id, tokenctx.Arg)
						return err
					},
					"in a transaction": func() error {
						tx, err := db.BeginTx(with(7), nil)
						require.NoError(t, err)
						defer tx.Rollback()
						if _, err := tx.Exec(write, id, tokenctx.Arg); err != nil {
							return err
						}
						return tx.Commit()
					},
					"in another's": func() error {
						tx, err := db.Begin()
						require.NoError(t, err)
						defer tx.Rollback()
						if _, err := tx.ExecContext(with(7), write, id, tokenctx.Arg); err != nil {
							return err
						}
						return tx.Commit()
					},
				} {
					t.Run(string(mode)+"/"+string(level)+"/"+name+"/"+how, func(t *testing.T) {
						id += 100
						require.NoError(t, exec())
					})
				}
			}
		}
	}
}

// A function's write that only the wall sees is refused with the driver's error,
// at the first row or later.
func TestWallSeesFunctions(t *testing.T) {
	db, _ := openWalled(t, migrations.Lease, migrations.WallEnforce, driver.WithGuardedFunctions("touch"))
	_, err := db.Exec(`SELECT touch(1)`)
	require.ErrorIs(t, err, driver.ErrNoToken)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	rows, err := db.Query(`SELECT CASE WHEN i > 2 THEN touch(i) END FROM generate_series(1, 3) i`)
	require.NoError(t, err)
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	require.Equal(t, 2, n)
	require.ErrorIs(t, rows.Err(), driver.ErrNoToken)
	require.True(t, driver.NotApplied(rows.Err()))
}

// The wall refuses what the guard lets through, or doesn't see, with errors that
// say the same as the driver's.
func TestWallOutcomes(t *testing.T) {
	db, dsn := openWalled(t, migrations.Strict, migrations.WallEnforce, driver.WithGuardedFunctions("touch"))
	with := func(token tokenctx.Token) context.Context {
		return tokenctx.WithResource(t.Context(), "Orders/EU", token)
	}
	_, err := db.Exec(`SELECT touch(1)`)
	require.ErrorIs(t, err, driver.ErrNoToken, "an unguarded write in strict mode is no replay")
	require.NotErrorIs(t, err, driver.ErrReplay)

	run(t, dsn, `CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE orders SET last_token = NEW.last_token WHERE id = 3; RETURN NEW; END$$`,
		`CREATE TRIGGER twice BEFORE UPDATE ON orders FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION twice()`)
	_, err = db.ExecContext(with(8), `UPDATE orders SET last_token = $1 WHERE id = 3 AND last_token < $1`, tokenctx.Arg)
	require.NoError(t, err)
	_, err = db.ExecContext(with(8), `UPDATE orders SET last_token = $1 WHERE id = 1 AND last_token < $1`, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrReplay, "the trigger wrote row 3 under the same token again")
	_, err = db.ExecContext(with(7), `UPDATE orders SET last_token = $1 WHERE id = 1 AND last_token < $1`, tokenctx.Arg)
	var stale *driver.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, [2]tokenctx.Token{7, 8}, [2]tokenctx.Token{stale.Token, stale.Current})
	_, err = db.ExecContext(with(1<<62), walledWrites["insert"], 1, tokenctx.Arg) // no token is as large: those of a copied database begin at a time
	var v *rewrite.Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, rewrite.InvalidToken, v.Rule)
	require.Equal(t, "orders", v.Table)
}
