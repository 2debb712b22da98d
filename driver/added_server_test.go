package driver_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// The server's error of a rewritten statement says what fencerow added, and is pgx's own
// type with the SQLSTATE that pgx gives.
func TestErrorTellsWhatWasAdded(t *testing.T) {
	db, plain := openRows(t, rewrite.Lease, driver.WithRewrite())
	resetRows(t, plain)
	ctx := tokenctx.With(t.Context(), 8)
	for name, test := range map[string]struct{ sql, code, added string }{
		"an unknown column":   {`UPDATE orders SET nothing = 'secret' WHERE id = 1`, "42703", "fencerow added `, last_token = $1`, `AND last_token <= $1`"},
		"a division":          {`DELETE FROM orders WHERE 1 / (id - id) > 0 AND status <> 'secret'`, "22012", "fencerow added `AND last_token <= $1`"},
		"a key that is there": {`INSERT INTO orders (id, status) VALUES (1, 'secret')`, "23505", "fencerow added `, $1`, `, last_token`"},
		"a value of no type":  {`INSERT INTO orders (id, status) SELECT 20, 'x' UNION SELECT 'secret', 'y'`, "22P02", "fencerow added `, $1::bigint`, `, last_token`"},
		"an action of MERGE":  {`MERGE INTO orders USING notes ON notes.id = orders.id WHEN MATCHED THEN UPDATE SET nothing = 'secret'`, "42703", "`AND orders.last_token <= $1`"},
	} {
		for way, send := range waysToRead {
			err := send(ctx, db, test.sql)
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr, "%s, %s", name, way)
			require.Equal(t, test.code, pgErr.Code, "%s, %s", name, way)
			require.Contains(t, err.Error(), test.added, "%s, %s", name, way)
			if test.code != "22P02" { // PostgreSQL itself shows it
				require.NotContains(t, err.Error(), "secret", "%s, %s", name, way)
			}
		}
	}
	// of what the caller wrote by itself there is nothing to tell
	_, err := db.ExecContext(ctx, `UPDATE orders SET nothing = 1, last_token = $1 WHERE last_token <= $1`, tokenctx.Arg)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "fencerow added")
	_, err = db.ExecContext(ctx, `SELECT nothing FROM orders`)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "fencerow added")
}
