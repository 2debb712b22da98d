package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

const txWrite = `UPDATE orders SET n = n + 1, last_token = $1 WHERE id = 1 AND last_token < $1`

// step is a statement of a transaction with what it ends with.
type step struct {
	token tokenctx.Token // 0 for a statement without one
	sql   string
	want  error
}

func (s step) run(t *testing.T, ctx context.Context, tx *sql.Tx) {
	t.Helper()
	if s.token == 0 {
		_, err := tx.ExecContext(ctx, s.sql)
		require.ErrorIs(t, err, s.want, s.sql)
		return
	}
	_, err := tx.ExecContext(tokenctx.With(ctx, s.token), s.sql, tokenctx.Arg)
	require.ErrorIs(t, err, s.want, s.sql)
}

// Savepoints work around guarded writes as around others: what is rolled back
// has not used its token up.
func TestSavepoints(t *testing.T) {
	i := newIsolated(t)
	for name, test := range map[string]struct {
		steps    []step
		n, token int // of the row after the commit
	}{
		"released": {[]step{{0, `SAVEPOINT a`, nil}, {7, txWrite, nil}, {0, `RELEASE SAVEPOINT a`, nil}, {7, txWrite, driver.ErrReplay}}, 1, 7},
		"rolled back to": {[]step{{0, `SAVEPOINT a`, nil}, {7, txWrite, nil}, {0, `ROLLBACK TO SAVEPOINT a`, nil}, {7, txWrite, nil},
			{0, `RELEASE a`, nil}}, 1, 7},
		"nested": {[]step{{6, txWrite, nil}, {0, `SAVEPOINT a`, nil}, {7, txWrite, nil}, {0, `SAVEPOINT b`, nil}, {8, txWrite, nil},
			{0, `ROLLBACK TO b`, nil}, {7, txWrite, driver.ErrReplay}, {0, `ROLLBACK TO a`, nil}}, 1, 6},
		"stale inside": {[]step{{8, txWrite, nil}, {0, `SAVEPOINT a`, nil}, {7, txWrite, driver.ErrStale}, {0, `ROLLBACK TO a`, nil},
			{7, txWrite, driver.ErrStale}, {0, `RELEASE a`, nil}}, 1, 8},
		"refused inside": {[]step{{0, `SAVEPOINT a`, nil}, {0, waysWrite, rewrite.ErrRefused}, {7, txWrite, nil}, {0, `RELEASE a`, nil}}, 1, 7},
		// a probe has a savepoint of its own, which must not hide the caller's
		"with the probe's name": {[]step{{0, `SAVEPOINT fencerow_probe`, nil}, {8, txWrite, nil}, {7, txWrite, driver.ErrStale},
			{0, `ROLLBACK TO fencerow_probe`, nil}, {0, `RELEASE fencerow_probe`, nil}, {7, txWrite, nil}}, 1, 7},
	} {
		t.Run(name, func(t *testing.T) {
			i.reset(t)
			tx, err := i.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			for _, s := range test.steps {
				s.run(t, t.Context(), tx)
			}
			require.NoError(t, tx.Commit())
			i.plain.requireRow(t, test.n, test.token)
		})
	}
}

// canceller cancels a context as soon as a write of orders has been answered,
// so before the driver asks why it wrote nothing.
type canceller struct{ cancel context.CancelFunc }

type cancellerKey struct{}

func (c *canceller) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, cancellerKey{}, strings.HasPrefix(data.SQL, `UPDATE orders`))
}

func (c *canceller) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if c.cancel != nil && ctx.Value(cancellerKey{}).(bool) {
		c.cancel()
	}
}

// A stale write leaves the transaction as it was, whenever its own context
// ends.
func TestStaleWriteLeavesTheTransaction(t *testing.T) {
	i := newIsolated(t)
	config := i.plain.Config()
	tracer := &canceller{}
	config.Tracer = tracer
	connector, err := driver.NewConnector(*config, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	_, err = i.plain.Exec(t.Context(), `CREATE TABLE log (note text)`)
	require.NoError(t, err)

	for name, early := range map[string]bool{"cancelled before the probe": true, "cancelled after the answer": false} {
		for entry, send := range map[string]func(context.Context, *sql.Tx) error{
			"Exec": func(ctx context.Context, tx *sql.Tx) error {
				return onlyError(tx.ExecContext(ctx, txWrite, tokenctx.Arg))
			},
			"QueryRow": func(ctx context.Context, tx *sql.Tx) error {
				return drainRow(tx.QueryRowContext(ctx, txWrite+` RETURNING n`, tokenctx.Arg))
			},
		} {
			t.Run(name+"/"+entry, func(t *testing.T) {
				i.reset(t)
				i.takeOver(t)
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				defer func() { _ = tx.Rollback() }()
				ctx, cancel := context.WithCancel(tokenctx.With(t.Context(), 7))
				defer cancel()
				if tracer.cancel = nil; early {
					tracer.cancel = cancel
				}
				err = send(ctx, tx)
				cancel()
				require.ErrorIs(t, err, driver.ErrStale)
				requireTransaction(t, tx)
				_, err = tx.Exec(`INSERT INTO log VALUES ($1)`, t.Name())
				require.NoError(t, err)
				require.NoError(t, tx.Commit())
				var logged int
				require.NoError(t, i.plain.QueryRow(t.Context(), `SELECT count(*) FROM log WHERE note = $1`, t.Name()).Scan(&logged))
				require.Equal(t, 1, logged)
				i.plain.requireRow(t, 1, 9)
			})
		}
	}
}

// A probe that the server answers with an error leaves the transaction as it
// was, and says that it failed.
func TestFailingProbeLeavesTheTransaction(t *testing.T) {
	i := newIsolated(t)
	i.reset(t)
	// the guard is cheaper than the operator: only the probe, without it, fails
	_, err := i.plain.Exec(t.Context(), `UPDATE orders SET last_token = 9;
		CREATE FUNCTION fails(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'no answer'; END $$;
		CREATE OPERATOR === (FUNCTION = fails, LEFTARG = bigint, RIGHTARG = bigint)`)
	require.NoError(t, err)
	tx, err := i.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(tokenctx.With(t.Context(), 10), txWrite, tokenctx.Arg)
	require.NoError(t, err)
	_, err = tx.ExecContext(tokenctx.With(t.Context(), 7), txWrite+` AND n === 0::bigint`, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrUndetermined)
	require.ErrorContains(t, err, "no answer")
	requireTransaction(t, tx)
	require.NoError(t, tx.Commit())
	i.plain.requireRow(t, 1, 10)
}

// requireTransaction asks for a transaction that isn't aborted, and in which
// nothing is left of a probe.
func requireTransaction(t *testing.T, tx *sql.Tx) {
	t.Helper()
	var timeout string
	require.NoError(t, tx.QueryRow(`SHOW statement_timeout`).Scan(&timeout))
	require.Equal(t, "0", timeout)
}

// A transaction that the server has aborted stays so: a write in it is the
// server's error, not a stale one.
func TestAbortedTransaction(t *testing.T) {
	i := newIsolated(t)
	i.reset(t)
	tx, err := i.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec(`SELECT 1 / 0`)
	requireServerError(t, err, "22012")
	ctx := tokenctx.With(t.Context(), 3)
	_, err = tx.ExecContext(ctx, txWrite, tokenctx.Arg)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr, "pgx had to prepare it")
	require.Equal(t, "25P02", pgErr.Code)
	require.False(t, driver.NotApplied(err))
	require.Error(t, tx.Commit())
	_, err = i.db.ExecContext(ctx, txWrite, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale)
}

// A guarded write in a read-only transaction is the server's error, as a stale
// one is: the server refuses it before it looks at rows.
func TestReadOnlyTransaction(t *testing.T) {
	i := newIsolated(t)
	for name, opts := range map[string]*sql.TxOptions{
		"TxOptions": {ReadOnly: true}, "serializable": {ReadOnly: true, Isolation: sql.LevelSerializable}, "SET TRANSACTION": nil,
	} {
		for kind, token := range map[string]tokenctx.Token{"new": 7, "stale": 3} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				i.reset(t)
				tx, err := i.db.BeginTx(t.Context(), opts)
				require.NoError(t, err)
				if opts == nil {
					_, err := tx.Exec(`SET TRANSACTION READ ONLY`)
					require.NoError(t, err)
				}
				var n int
				require.NoError(t, tx.QueryRow(`SELECT n FROM orders WHERE id = 1`).Scan(&n))
				require.Zero(t, n)
				_, err = tx.ExecContext(tokenctx.With(t.Context(), token), txWrite, tokenctx.Arg)
				requireServerError(t, err, "25006")
				require.NoError(t, tx.Rollback())
				i.plain.requireRow(t, 0, 5)
			})
		}
	}
}

// Isolation levels reach the server as through pgx, and so do its errors.
func TestIsolationLevels(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, waysSchema)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	defer db.Close()
	plain, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer plain.Close()
	want := map[sql.IsolationLevel]string{
		sql.LevelDefault: "read committed", sql.LevelReadUncommitted: "read uncommitted", sql.LevelReadCommitted: "read committed",
		sql.LevelRepeatableRead: "repeatable read", sql.LevelSnapshot: "repeatable read", sql.LevelSerializable: "serializable",
	}
	for level := sql.LevelDefault; level <= sql.LevelLinearizable; level++ {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/read only %t", level, readOnly), func(t *testing.T) {
				opts := &sql.TxOptions{Isolation: level, ReadOnly: readOnly}
				theirs, pgxErr := transactionModes(t.Context(), plain, opts)
				ours, err := transactionModes(t.Context(), db, opts)
				require.Equal(t, pgxErr, err)
				require.Equal(t, theirs, ours)
				if want[level] == "" {
					require.ErrorContains(t, err, "unsupported isolation")
					return
				}
				require.Equal(t, want[level], ours[0])
				require.Equal(t, map[bool]string{true: "on", false: "off"}[readOnly], ours[1])
			})
		}
	}
}

// transactionModes asks a transaction what it is.
func transactionModes(ctx context.Context, db *sql.DB, opts *sql.TxOptions) (modes [2]string, err error) {
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return modes, err
	}
	for i, name := range []string{"transaction_isolation", "transaction_read_only"} {
		if err := tx.QueryRow(`SHOW ` + name).Scan(&modes[i]); err != nil {
			return modes, err
		}
	}
	return modes, tx.Rollback()
}
