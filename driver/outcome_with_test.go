package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// withinWrites are statements that write a protected table in another statement: {W} is
// an UPDATE of row $2 under token $1, and {R} one that returns the row's id.
var withinWrites = map[string]struct {
	sql    string
	writes bool // something else, whatever the token
	rows   bool // it returns rows
}{
	"independent outbox":           {sql: `WITH paid AS ({W}) INSERT INTO outbox VALUES ('paid')`, writes: true},
	"independent, returning":       {sql: `WITH paid AS ({W}) INSERT INTO outbox VALUES ('paid') RETURNING topic`, writes: true, rows: true},
	"dependent outbox":             {sql: `WITH paid AS ({R}) INSERT INTO outbox SELECT 'paid' FROM paid`},
	"dependent, returning":         {sql: `WITH paid AS ({R}) INSERT INTO outbox SELECT 'paid' FROM paid RETURNING topic`, rows: true},
	"dependent, a constant beside": {sql: `WITH paid AS ({R}), more AS (SELECT 1) INSERT INTO outbox SELECT 'paid' FROM paid`},
	"another update":               {sql: `WITH paid AS ({W}) UPDATE notes SET body = 'paid' WHERE id = 1`, writes: true},
	"another delete":               {sql: `WITH paid AS ({W}) DELETE FROM notes WHERE id = 1`, writes: true},
	"a query":                      {sql: `WITH paid AS ({R}) SELECT id FROM paid`, rows: true},
	"a query's total":              {sql: `WITH paid AS ({R}) SELECT count(*) FROM paid`, rows: true},
	"a query of nothing":           {sql: `WITH paid AS ({W}) SELECT 1`, rows: true},
	"UNION":                        {sql: `WITH paid AS ({R}) SELECT id FROM paid UNION ALL SELECT 5`, rows: true},
	"VALUES":                       {sql: `WITH paid AS ({W}) VALUES (1)`, rows: true},
	"TABLE":                        {sql: `WITH paid AS ({R}) TABLE paid`, rows: true},
	"in brackets":                  {sql: `WITH paid AS ({R}) (SELECT id FROM paid)`, rows: true},
	"two, the first":               {sql: `WITH paid AS ({R}), other AS (INSERT INTO outbox VALUES ('a') RETURNING 1) SELECT * FROM other`, writes: true, rows: true},
	"beside a protected insert":    {sql: `WITH paid AS ({R}) INSERT INTO payments (id, last_token) VALUES (1, $1)`, writes: true},
	"EXPLAIN ANALYZE":              {sql: `EXPLAIN (ANALYZE, COSTS OFF) {W}`, rows: true},
	"EXPLAIN ANALYZE of WITH":      {sql: `EXPLAIN (ANALYZE) WITH paid AS ({W}) SELECT 1`, rows: true},
	"CREATE TABLE AS":              {sql: `CREATE TABLE made AS WITH paid AS ({R}) SELECT id FROM paid`, writes: true},
	"SELECT INTO":                  {sql: `WITH paid AS ({R}) SELECT id INTO made FROM paid`, writes: true},
}

const (
	withinW = `UPDATE orders SET status = 'paid', last_token = $1 WHERE id = $2 AND last_token <= $1`
	withinR = withinW + ` RETURNING id`
)

func openWithin(t *testing.T) (db *sql.DB, plain *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE orders (id bigint PRIMARY KEY, status text, last_token bigint NOT NULL DEFAULT 0);
		CREATE TABLE payments (id bigint PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0);
		CREATE TABLE notes (id bigint PRIMARY KEY, body text); CREATE TABLE outbox (topic text)`)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease), driver.Protect("payments", rewrite.Lease))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	plain, err = pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close(context.Background()) })
	return db, plain
}

const resetWithin = `DROP TABLE IF EXISTS made; TRUNCATE orders, payments, notes, outbox; INSERT INTO notes VALUES (1, 'new');
	INSERT INTO orders VALUES (1, 'new', 5), (2, 'new', 9)`

// withinWays are the ways to send a statement.
var withinWays = map[string]func(ctx context.Context, db *sql.DB, query string, args ...any) (rows int, err error){
	"exec": func(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
		_, err := db.ExecContext(ctx, query, args...)
		return -1, err
	},
	"query": func(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
		rows, err := db.QueryContext(ctx, query, args...)
		return readAll(rows, err)
	},
	"prepared": func(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			return 0, err
		}
		defer stmt.Close()
		rows, err := stmt.QueryContext(ctx, args...)
		return readAll(rows, err)
	},
	"in a transaction": func(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		_, err = tx.ExecContext(ctx, query, args...)
		return -1, errors.Join(err, tx.Commit())
	},
	"a query in a transaction": func(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		rows, err := tx.QueryContext(ctx, query, args...)
		n, err := readAll(rows, err)
		return n, errors.Join(err, tx.Commit())
	},
	"an unread query in a transaction": func(ctx context.Context, db *sql.DB, query string, args ...any) (int, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		_, err = tx.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // Commit closes the rows
		return -1, errors.Join(err, tx.Commit())
	},
}

// readAll counts rows, and requires that they have no column too many.
func readAll(rows *sql.Rows, err error) (n int, _ error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		for _, c := range columns {
			if strings.HasPrefix(c, "fencerow") {
				return n, errors.New("a hidden column is seen")
			}
		}
		into := make([]any, len(columns))
		for i := range into {
			into[i] = new(any)
		}
		if err := rows.Scan(into...); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

// A protected write in another statement is told as stale, whatever else the statement
// does, and its success costs the statement nothing.
func TestWritesWithin(t *testing.T) {
	db, plain := openWithin(t)
	for name, test := range withinWrites {
		query := strings.NewReplacer("{W}", withinW, "{R}", withinR).Replace(test.sql)
		for way, send := range withinWays {
			t.Run(name+"/"+way, func(t *testing.T) {
				ctx := tokenctx.With(t.Context(), 7)
				reset := func() {
					_, err := plain.Exec(t.Context(), resetWithin)
					require.NoError(t, err)
				}
				row := func(id int) (token int) {
					require.NoError(t, plain.QueryRow(t.Context(), `SELECT last_token FROM orders WHERE id = $1`, id).Scan(&token))
					return token
				}
				reset()
				_, err := send(ctx, db, query, tokenctx.Arg, 2)
				require.ErrorIs(t, err, driver.ErrStale)
				require.Equal(t, 9, row(2))
				if test.writes {
					require.False(t, driver.NotApplied(err), "the rest was written")
				}
				reset()
				n, err := send(ctx, db, query, tokenctx.Arg, 1)
				require.NoError(t, err)
				require.Equal(t, 7, row(1))
				if n >= 0 && test.rows {
					require.Positive(t, n)
				}
				reset()
				_, err = send(ctx, db, query, tokenctx.Arg, 3)
				require.NoError(t, err, "no such row")
			})
		}
	}
}

// Plain pgx shows that these statements pass by themselves.
func TestWritesWithinAreSilent(t *testing.T) {
	_, plain := openWithin(t)
	for name, test := range withinWrites {
		t.Run(name, func(t *testing.T) {
			_, err := plain.Exec(t.Context(), resetWithin)
			require.NoError(t, err)
			query := strings.NewReplacer("{W}", withinW, "{R}", withinR).Replace(test.sql)
			_, err = plain.Exec(t.Context(), query, pgx.QueryExecModeExec, int64(7), int64(2))
			require.NoError(t, err)
		})
	}
}

// What COPY returns counts its rows.
func TestCopyOfAWrite(t *testing.T) {
	db, plain := openWithin(t)
	_, err := plain.Exec(t.Context(), resetWithin)
	require.NoError(t, err)
	ctx := tokenctx.With(t.Context(), 7)
	copyOf := func(id string) string {
		return `COPY (UPDATE orders SET status = 'paid', last_token = 7 WHERE id = ` + id + ` AND last_token <= 7 RETURNING id) TO STDOUT`
	}
	_, err = db.ExecContext(ctx, copyOf("1"))
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, copyOf("2"))
	require.ErrorIs(t, err, driver.ErrStale)
	_, err = db.ExecContext(ctx, copyOf("3"))
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, `COPY (WITH paid AS (UPDATE orders SET status = 'paid', last_token = 7 WHERE id = 2 AND last_token <= 7) SELECT 1) TO STDOUT`)
	require.ErrorIs(t, err, driver.ErrStale)
}

// An EXPLAIN that runs nothing has no outcome.
func TestPlainExplainIsNotAskedAfter(t *testing.T) {
	db, plain := openWithin(t)
	_, err := plain.Exec(t.Context(), resetWithin)
	require.NoError(t, err)
	for _, explain := range []string{`EXPLAIN `, `EXPLAIN (COSTS OFF) `, `EXPLAIN (ANALYZE false) `, `EXPLAIN (ANALYZE 0) `, `EXPLAIN (ANALYZE off) `} {
		_, err = db.ExecContext(tokenctx.With(t.Context(), 7), explain+withinW, tokenctx.Arg, 2)
		require.NoError(t, err, explain)
	}
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), `CREATE TABLE made AS WITH paid AS (`+withinR+`) SELECT id FROM paid WITH NO DATA`, tokenctx.Arg, 2)
	require.NoError(t, err)
}
