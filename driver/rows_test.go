package driver_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// The rows of a guarded write are pgx's: none is lost, and every type scans as
// from pgx itself, under Go 1.27's RowsColumnScanner too.
func TestReturnedRows(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, tags text[], at timestamptz, note bytea, last_token bigint NOT NULL DEFAULT 0);
		INSERT INTO orders SELECT i, ARRAY['a', 'b'], '2026-01-02 03:04:05Z', '\x0102', 0 FROM generate_series(1, 3) i`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	defer db.Close()
	const guarded = `UPDATE orders SET last_token = $1 WHERE last_token < $1 RETURNING id, tags, at, note, NULL::int`
	rows, err := db.QueryContext(tokenctx.With(t.Context(), 7), guarded, tokenctx.Arg)
	require.NoError(t, err)
	types, err := rows.ColumnTypes()
	require.NoError(t, err)
	require.Equal(t, "INT8", types[0].DatabaseTypeName())
	require.Equal(t, "BYTEA", types[3].DatabaseTypeName())
	var ids []int
	for rows.Next() {
		var id int
		var tags []string
		var at time.Time
		var note []byte
		var none *int
		require.NoError(t, rows.Scan(&id, pgtype.NewMap().SQLScanner(&tags), &at, &note, &none))
		ids = append(ids, id)
		require.Equal(t, []string{"a", "b"}, tags)
		require.True(t, at.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		require.Equal(t, []byte{1, 2}, note)
		require.Nil(t, none)
	}
	require.NoError(t, rows.Err())
	require.ElementsMatch(t, []int{1, 2, 3}, ids)
}
