package driver_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// What is wrong with a text is told as the server tells it, beside the refusal, and a
// refusal leaves a transaction as it is.
func TestSyntaxErrors(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	plain, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer plain.Close()
	for _, text := range []string{
		`SELEC * FROM orders`, `SELECT * FORM orders`, `UPDATE orders SET WHERE id = 1`, `SELEC 1`, `SELECT 1 1 1`, `CREATE TABL x (id int)`, `SELECT 'open`,
		`SELECT id FROM orders WHERE (id = 1`, `GO`, `USE shop; DELETE FROM jobs`, `UPDATE orders SET status = ? WHERE id = ?`,
		`MERGE INTO orders o USING jobs j ON j.id = o.id WHEN NOT MATCHED BY SOURCE THEN DELETE`, // wrong on a server of 16, or of any version for its missing guard
	} {
		_, err := plain.Exec(text)
		var want, got *pgconn.PgError
		if !errors.As(err, &want) {
			continue // a newer server
		}
		_, err = db.Exec(text)
		require.ErrorAs(t, err, &got, text)
		require.Equal(t, want.Code, got.Code, text)
		require.Equal(t, want.Message, got.Message, text)

		tx, err := db.Begin()
		require.NoError(t, err)
		rows, err := tx.Query(text)
		require.Error(t, err, text)
		require.Nil(t, rows)
		require.ErrorAs(t, err, &got, text)
		require.Equal(t, want.Code, got.Code, text)
		if errors.Is(err, rewrite.ErrRefused) {
			_, err = tx.Exec(`INSERT INTO jobs VALUES (2, 'x', 0)`)
			require.NoError(t, err, "%s: the transaction goes on", text)
		}
		require.NoError(t, tx.Rollback())
	}
	_, err = db.Exec(`SELEC * FROM orders`)
	require.ErrorIs(t, err, rewrite.ErrRefused)
	require.ErrorContains(t, err, `it is checked because it has the name or word "orders"`)

	_, err = db.ExecContext(tokenctx.With(t.Context(), 9), `UPDATE orders SET status = 'x', last_token = $1 WHERE last_token <= $1`)
	require.ErrorContains(t, err, "mismatched param and argument count")
}

// On a server with newer grammar the refusal says so, and what passes instead.
func TestNewerGrammar(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	var version int
	require.NoError(t, db.QueryRow(`SELECT current_setting('server_version_num')::int / 10000`).Scan(&version))
	for text, since := range map[string]int{
		`MERGE INTO orders o USING jobs j ON j.id = o.id WHEN NOT MATCHED BY SOURCE THEN DELETE`:                                      17,
		`MERGE INTO orders o USING jobs j ON j.id = o.id WHEN MATCHED THEN DELETE RETURNING o.id`:                                     17,
		`SELECT j.a FROM orders, JSON_TABLE('[]'::jsonb, '$' COLUMNS (a int PATH '$.a')) AS j`:                                        17,
		`SELECT JSON_VALUE(o.status::jsonb, '$.a' RETURNING int) FROM orders o`:                                                       17,
		`UPDATE orders SET status = 'x', last_token = 9 WHERE last_token <= 9 RETURNING WITH (OLD AS o, NEW AS n) o.status, n.status`: 18,
		`CREATE TABLE bookings (id int, span int4range, UNIQUE (id, span WITHOUT OVERLAPS))`:                                          18,
		`ANALYZE ONLY jobs; SELECT 1`: 18,
	} {
		_, err := db.Exec(text)
		require.ErrorIs(t, err, rewrite.ErrRefused, text)
		require.ErrorContains(t, err, "newer than the grammar of PostgreSQL 16 that fencerow reads", text)
		if version >= since {
			require.ErrorContains(t, err, "the server can parse it", text)
		} else {
			require.NotContains(t, err.Error(), "the server can parse it", text)
		}
	}
}
