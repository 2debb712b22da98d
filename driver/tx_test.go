package driver_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

func openPlain(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// openTx opens a handle on two tables of which one belongs to a resource.
func openTx(t *testing.T) *sql.DB {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease),
		driver.ProtectTable(rewrite.Table{Name: "jobs", Mode: rewrite.Lease, Resource: "Jobs/17"}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

const (
	writeOrder = `UPDATE orders SET status = 'x', last_token = $1 WHERE id = 1 AND last_token <= $1`
	writeJob   = `UPDATE jobs SET status = 'x', last_token = $1 WHERE id = 1 AND last_token <= $1`
)

// BEGIN tells the server the tokens that its tables take.
func TestBeginCarriesTokens(t *testing.T) {
	db := openTx(t)
	db.SetMaxOpenConns(1)
	read := func(q interface {
		QueryRow(string, ...any) *sql.Row
	}) (values [2]string) {
		require.NoError(t, q.QueryRow(`SELECT COALESCE(current_setting('fencing.token', true), ''), COALESCE(current_setting('fencing.token_$4aobs$2f17', true), '')`).Scan(&values[0], &values[1]))
		return values
	}
	both := tokenctx.WithResource(tokenctx.With(t.Context(), 7), "Jobs/17", 8)
	for name, test := range map[string]struct {
		ctx  context.Context
		want [2]string
	}{
		"none":     {t.Context(), [2]string{"", ""}},
		"default":  {tokenctx.With(t.Context(), 7), [2]string{"7", ""}},
		"both":     {both, [2]string{"7", "8"}},
		"unwanted": {tokenctx.WithResource(t.Context(), "other", 9), [2]string{"", ""}},
		"invalid":  {tokenctx.With(t.Context(), -1), [2]string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, opts := range []*sql.TxOptions{nil, {ReadOnly: true}, {Isolation: sql.LevelSerializable, ReadOnly: true}, {Isolation: sql.LevelRepeatableRead}, {Isolation: sql.LevelReadUncommitted}} {
				tx, err := db.BeginTx(test.ctx, opts)
				require.NoError(t, err)
				defer tx.Rollback()
				_, err = tx.Exec(`SET TRANSACTION ISOLATION LEVEL SERIALIZABLE`)
				require.NoError(t, err, "no snapshot is taken with BEGIN")
				require.Equal(t, test.want, read(tx))
				_, err = tx.Exec(`SAVEPOINT a`)
				require.NoError(t, err)
				_, err = tx.Exec(`ROLLBACK TO SAVEPOINT a`)
				require.NoError(t, err)
				require.Equal(t, test.want, read(tx))
				require.NoError(t, tx.Commit())
				require.Equal(t, [2]string{"", ""}, read(db), "they end with the transaction")
			}
		})
	}
}

// A transaction is bound to the tokens of its BEGIN.
func TestTransactionIsBound(t *testing.T) {
	db := openTx(t)
	with := func(token tokenctx.Token) context.Context { return tokenctx.With(t.Context(), token) }
	job := func(token tokenctx.Token) context.Context {
		return tokenctx.WithResource(t.Context(), "Jobs/17", token)
	}
	for name, test := range map[string]struct {
		begin, ctx context.Context
		sql        string
		arg        any
		rule       rewrite.Rule
	}{
		"the transaction's own, by Arg":      {with(7), t.Context(), writeOrder, tokenctx.Arg, ""},
		"the transaction's own, by value":    {with(7), t.Context(), writeOrder, 7, ""},
		"another value":                      {with(7), t.Context(), writeOrder, 8, rewrite.OtherToken},
		"the same token":                     {with(7), with(7), writeOrder, tokenctx.Arg, ""},
		"a newer token":                      {with(7), with(8), writeOrder, tokenctx.Arg, rewrite.OtherToken},
		"an older token":                     {with(7), with(6), writeOrder, 6, rewrite.OtherToken},
		"an invalid one":                     {with(7), with(0), writeOrder, tokenctx.Arg, rewrite.OtherToken},
		"begun with an invalid one":          {with(0), t.Context(), writeOrder, tokenctx.Arg, rewrite.InvalidToken},
		"begun without":                      {t.Context(), with(8), writeOrder, tokenctx.Arg, ""},
		"begun without, and none":            {t.Context(), t.Context(), writeOrder, tokenctx.Arg, rewrite.NoToken},
		"the resource's, begun without":      {with(7), job(9), writeJob, tokenctx.Arg, ""},
		"the resource's, not the default":    {with(7), t.Context(), writeJob, tokenctx.Arg, rewrite.NoToken},
		"the resource's own":                 {job(9), t.Context(), writeJob, tokenctx.Arg, ""},
		"another of the resource":            {job(9), job(10), writeJob, tokenctx.Arg, rewrite.OtherToken},
		"another default beside the own one": {job(9), with(10), writeJob, tokenctx.Arg, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := db.BeginTx(test.begin, nil)
			require.NoError(t, err)
			defer tx.Rollback()
			stmt, err := tx.PrepareContext(t.Context(), test.sql)
			require.NoError(t, err)
			for i, exec := range []func() error{
				func() error { _, err := tx.ExecContext(test.ctx, test.sql, test.arg); return err },
				func() error { return tx.QueryRowContext(test.ctx, test.sql+` RETURNING 1`, test.arg).Scan(new(int)) },
				func() error { _, err := stmt.ExecContext(test.ctx, test.arg); return err },
			} {
				err := exec()
				if test.rule == "" {
					require.NoError(t, err, i)
					continue
				}
				var v *rewrite.Violation
				require.ErrorAs(t, err, &v, i)
				require.Equal(t, test.rule, v.Rule)
			}
			require.NoError(t, tx.QueryRow(`SELECT 1`).Scan(new(int)), "a refusal leaves the transaction as it is")
			require.NoError(t, tx.Rollback())
		})
	}
	// the next one is not bound by the last
	_, err := db.ExecContext(with(30), writeOrder, tokenctx.Arg)
	require.NoError(t, err)
}

// A stale write under the transaction's own token is told as such.
func TestStaleInTransaction(t *testing.T) {
	db := openTx(t)
	tx, err := db.BeginTx(tokenctx.With(t.Context(), 3), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.Exec(writeOrder, tokenctx.Arg)
	var stale *driver.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, driver.StaleError{Table: "orders", Token: 3, Current: 5}, *stale)
}
