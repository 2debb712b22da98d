package driver_test

import (
	"context"
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

// isolationWrites are guarded writes of the row with id 1; $1 is the token.
var isolationWrites = map[string]string{
	"UPDATE": `UPDATE orders SET n = n + 1, last_token = $1 WHERE id = 1 AND last_token < $1`,
	"DELETE": `DELETE FROM orders WHERE id = 1 AND last_token < $1`,
	"upsert": `INSERT INTO orders (id, n, last_token) VALUES (1, 1, $1) ON CONFLICT (id) DO UPDATE
		SET n = orders.n + 1, last_token = EXCLUDED.last_token WHERE orders.last_token < EXCLUDED.last_token`,
}

// isolated is a handle, and the database beside it.
type isolated struct {
	db    *sql.DB
	plain witness
}

func newIsolated(t *testing.T) isolated {
	dsn := localpg.Database(t)
	run(t, dsn, waysSchema)
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Strict))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return isolated{db, newWitness(t, dsn)}
}

func (i isolated) reset(t *testing.T) {
	_, err := i.plain.Exec(t.Context(), `INSERT INTO orders VALUES (1, 0, 5) ON CONFLICT (id) DO UPDATE SET n = 0, last_token = 5`)
	require.NoError(t, err)
}

// takeOver writes the row under a newer token.
func (i isolated) takeOver(t *testing.T) {
	_, err := i.db.ExecContext(tokenctx.With(t.Context(), 9), isolationWrites["UPDATE"], tokenctx.Arg)
	require.NoError(t, err)
}

// requireServerError asks for pgx's own error, wrapped in nothing.
func requireServerError(t *testing.T, err error, code string) {
	t.Helper()
	require.IsType(t, (*pgconn.PgError)(nil), err)
	require.Equal(t, code, err.(*pgconn.PgError).Code) //nolint:errorlint // wrapped in nothing
	require.False(t, driver.NotApplied(err))
}

// inTransactions runs fn in a transaction, again after each 40001, as programs
// do. It returns how often it ran.
func inTransactions(ctx context.Context, db *sql.DB, opts *sql.TxOptions, fn func(*sql.Tx) error) (runs int, err error) {
	for {
		runs++
		tx, err := db.BeginTx(ctx, opts)
		if err != nil {
			return runs, err
		}
		if err = fn(tx); err == nil {
			err = tx.Commit()
		} else {
			err = errors.Join(err, tx.Rollback())
		}
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "40001" {
			return runs, err
		}
	}
}

// A newer token that was written after the snapshot is the server's 40001, and
// is stale for the transaction's next run.
func TestNewerTokenAfterTheSnapshot(t *testing.T) {
	i := newIsolated(t)
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSnapshot, sql.LevelSerializable} {
		for name, write := range isolationWrites {
			for entry, send := range map[string]func(context.Context, *sql.Tx) error{
				"Exec": func(ctx context.Context, tx *sql.Tx) error {
					return onlyError(tx.ExecContext(ctx, write, tokenctx.Arg))
				},
				"Query": func(ctx context.Context, tx *sql.Tx) error { return drain(tx.QueryContext(ctx, write, tokenctx.Arg)) },
				"RETURNING": func(ctx context.Context, tx *sql.Tx) error {
					return drain(tx.QueryContext(ctx, write+` RETURNING id`, tokenctx.Arg))
				},
			} {
				t.Run(level.String()+"/"+name+"/"+entry, func(t *testing.T) {
					i.reset(t)
					ctx := tokenctx.With(t.Context(), 7)
					var first error
					runs, err := inTransactions(ctx, i.db, &sql.TxOptions{Isolation: level}, func(tx *sql.Tx) error {
						var seen int // takes the snapshot
						require.NoError(t, tx.QueryRow(`SELECT last_token FROM orders WHERE id = 1`).Scan(&seen))
						if first != nil {
							require.Equal(t, 9, seen)
							return send(ctx, tx)
						}
						require.Equal(t, 5, seen)
						i.takeOver(t)
						first = send(ctx, tx)
						return first
					})
					requireServerError(t, first, "40001")
					require.Equal(t, 2, runs)
					var stale *driver.StaleError
					require.ErrorAs(t, err, &stale)
					require.EqualValues(t, 9, stale.Current)
					require.EqualValues(t, 7, stale.Token)
					i.plain.requireRow(t, 1, 9)
				})
			}
		}
	}
}

// A newer token that was there before the snapshot is stale at once, on every
// level.
func TestNewerTokenBeforeTheSnapshot(t *testing.T) {
	i := newIsolated(t)
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		for name, write := range isolationWrites {
			t.Run(level.String()+"/"+name, func(t *testing.T) {
				i.reset(t)
				i.takeOver(t)
				ctx := tokenctx.With(t.Context(), 7)
				runs, err := inTransactions(ctx, i.db, &sql.TxOptions{Isolation: level}, func(tx *sql.Tx) error {
					return onlyError(tx.ExecContext(ctx, write, tokenctx.Arg))
				})
				require.Equal(t, 1, runs)
				require.ErrorIs(t, err, driver.ErrStale)
				i.plain.requireRow(t, 1, 9)
			})
		}
	}
}

// A writer that waits for the row while a newer holder writes it finds the
// newer token there: its guard is evaluated again.
func TestWaitingWriterIsStale(t *testing.T) {
	i := newIsolated(t)
	for name, write := range isolationWrites {
		for ending, want := range map[string]error{"COMMIT": driver.ErrStale, "ROLLBACK": nil} {
			t.Run(name+"/"+ending, func(t *testing.T) {
				i.reset(t)
				holder, err := i.db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				defer func() { _ = holder.Rollback() }()
				_, err = holder.ExecContext(tokenctx.With(t.Context(), 9), isolationWrites["UPDATE"], tokenctx.Arg)
				require.NoError(t, err)

				conn, err := i.db.Conn(t.Context())
				require.NoError(t, err)
				defer conn.Close()
				f := faulty{admin: i.plain.Conn}
				require.NoError(t, conn.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&f.pid))
				done := make(chan error, 1)
				go func() {
					_, err := conn.ExecContext(tokenctx.With(t.Context(), 7), write, tokenctx.Arg)
					done <- err
				}()
				f.awaitLockWait(t, true)
				if ending == "COMMIT" {
					require.NoError(t, holder.Commit())
				} else {
					require.NoError(t, holder.Rollback())
				}
				require.ErrorIs(t, <-done, want)
				if want != nil {
					i.plain.requireRow(t, 1, 9)
				}
			})
		}
	}
}
