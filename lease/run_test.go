package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/tokenctx"
)

func TestRun(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	free := "SELECT holder IS NULL FROM fencing.lease WHERE resource = 'r'"
	require.NoError(t, lease.Run(t.Context(), db, "r", long, func(ctx context.Context) error {
		token, ok := tokenctx.FromResource(ctx, "r")
		require.True(t, ok)
		require.Equal(t, token, tokenctx.Token(get[int64](t, db, "SELECT token FROM fencing.lease WHERE holder = 'me'")))
		return ctx.Err()
	}, lease.WithHolder("me")))
	require.True(t, get[bool](t, db, free))

	mine := errors.New("mine")
	require.Equal(t, mine, lease.Run(t.Context(), db, "r", long, func(context.Context) error { return mine }))
	require.True(t, get[bool](t, db, free))

	require.PanicsWithValue(t, "oops", func() {
		_ = lease.Run(t.Context(), db, "r", long, func(context.Context) error { panic("oops") })
	})
	require.True(t, get[bool](t, db, free))

	// released also where the caller's context has ended
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, lease.Run(ctx, db, "r", long, func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	}), context.Canceled)
	require.True(t, get[bool](t, db, free))

	take(t, db, "held", long)
	require.ErrorIs(t, lease.Run(ctx, db, "held", long, func(context.Context) error { panic("not held") }), context.Canceled)
}

func TestRunLosesTheLease(t *testing.T) {
	db := open(t, localpg.Database(t, installed))
	mine := errors.New("mine")
	for name, result := range map[string]func(context.Context) error{
		"unnoticed": func(context.Context) error { return nil },
		"an error":  func(context.Context) error { return mine },
		"its Err":   func(ctx context.Context) error { return ctx.Err() },
		"its cause": context.Cause,
	} {
		t.Run(name, func(t *testing.T) {
			var cause error
			err := lease.Run(t.Context(), db, name, long, func(ctx context.Context) error {
				token, _ := tokenctx.From(ctx)
				require.True(t, get[bool](t, db, "SELECT fencing.release($1, $2)", name, int64(token)))
				next := take(t, db, name, long)
				require.Greater(t, next.Token(), token)
				tokenctx.ReportStale(ctx, "", token)
				<-ctx.Done()
				cause = context.Cause(ctx)
				return result(ctx)
			})
			require.ErrorIs(t, err, lease.ErrLost)
			require.Equal(t, name == "an error", errors.Is(err, mine))
			require.Equal(t, name == "its Err", errors.Is(err, context.Canceled))
			require.ErrorIs(t, err, cause)
			if name == "its cause" {
				require.Equal(t, cause, err, "once is enough")
			}
		})
	}
}

// Through fencerow's own driver: its check passes the calls, and the first stale
// write ends all work under the lease, in a transaction or not.
func TestStaleWriteEndsTheLease(t *testing.T) {
	dsn := localpg.Database(t, installed)
	plain := open(t, dsn)
	exec(t, plain,
		"CREATE TABLE orders (id int PRIMARY KEY, status text); CREATE TABLE invoices (LIKE orders INCLUDING ALL); "+
			"INSERT INTO orders VALUES (1), (2); INSERT INTO invoices VALUES (1)")
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease},
		migrations.Table{Name: "invoices", Mode: migrations.Lease, Resource: "billing"}))
	db, err := sql.Open("fencerow", dsn)
	require.NoError(t, err)
	defer db.Close()
	const order = "UPDATE orders SET status = 'x', last_token = $1 WHERE id = $2 AND last_token <= $1"
	for name, write := range map[string]func(context.Context) error{
		"default": func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, order, tokenctx.Arg, 1)
			return err
		},
		"resource": func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "UPDATE invoices SET status = 'x', last_token = $1 WHERE id = 1 AND last_token <= $1", tokenctx.Arg)
			return err
		},
		"transaction": func(ctx context.Context) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			_, err = tx.Exec(order, tokenctx.Arg, 1) // its context has no token
			return errors.Join(err, tx.Rollback())
		},
	} {
		t.Run(name, func(t *testing.T) {
			exec(t, plain, "UPDATE orders SET last_token = 0; UPDATE invoices SET last_token = 0")
			l := take(t, db, "billing", long)
			ctx, another := l.Context(t.Context()), l.Context(t.Context())
			require.NoError(t, errors.Join(write(ctx), ctx.Err(), another.Err()), "held")
			exec(t, plain, "UPDATE orders SET last_token = fencing.next_token() WHERE id = 1; UPDATE invoices SET last_token = fencing.next_token()")
			require.ErrorIs(t, write(ctx), tokenctx.ErrStale)
			require.ErrorIs(t, context.Cause(ctx), lease.ErrLost, "when the write has returned")
			require.ErrorIs(t, context.Cause(another), lease.ErrLost)
			_, err := db.ExecContext(ctx, order, tokenctx.Arg, 2)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
