package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// trips counts how often a connection waits for an answer. While a write is slow, pgx reads
// beside it.
type trips struct {
	net.Conn
	wrote atomic.Bool
	n     *atomic.Int64
}

func (c *trips) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c *trips) Read(b []byte) (int, error) {
	if c.wrote.Swap(false) {
		c.n.Add(1)
	}
	return c.Conn.Read(b)
}

// counted returns a configuration whose one connection counts its round trips.
func counted(t *testing.T, dsn string) (config *pgx.ConnConfig, n *atomic.Int64) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	n = new(atomic.Int64)
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &trips{Conn: conn, n: n}, err
	}
	return config, n
}

// tripsUsed is what one use of an operation takes, once all is prepared.
func tripsUsed(t *testing.T, db *sql.DB, n *atomic.Int64, ctx context.Context, do func(context.Context, *sql.DB) error) int {
	t.Helper()
	for range 3 {
		require.NoError(t, do(ctx, db))
	}
	before := n.Load()
	require.NoError(t, do(ctx, db))
	return int(n.Load() - before)
}

func execs(query string, args ...any) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, query, args...)
		return err
	}
}

// Nothing that goes well takes a round trip more than over plain pgx. A write that
// changed no row takes those of its probe.
func TestRoundTrips(t *testing.T) {
	const guarded = `UPDATE orders SET status = $1, last_token = $2 WHERE id = $3 AND last_token <= $2`
	inTx := func(do func(context.Context, *sql.Tx) error) func(context.Context, *sql.DB) error {
		return func(ctx context.Context, db *sql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			if err == nil {
				err = do(ctx, tx)
			}
			return errors.Join(err, tx.Commit())
		}
	}
	operations := map[string]func(context.Context, *sql.DB) error{
		"an unprotected Exec":   execs(`UPDATE notes SET body = $1 WHERE id = $2`, "a", 1),
		"one without arguments": execs(`UPDATE notes SET body = 'a' WHERE id = 1`),
		"a guarded Exec":        execs(guarded, "paid", 7, 1),
		"an INSERT and a DELETE": func(ctx context.Context, db *sql.DB) error {
			return errors.Join(execs(`INSERT INTO orders (id, status, last_token) VALUES ($1, 'new', $2)`, 3, 7)(ctx, db),
				execs(`DELETE FROM orders WHERE id = $1 AND last_token <= $2`, 3, 7)(ctx, db))
		},
		"a query": func(ctx context.Context, db *sql.DB) error {
			var id int
			return db.QueryRowContext(ctx, `SELECT id FROM notes WHERE id = $1`, 1).Scan(&id)
		},
		"a query of the table": func(ctx context.Context, db *sql.DB) error {
			var id int
			return db.QueryRowContext(ctx, `SELECT id FROM orders WHERE id = $1`, 1).Scan(&id)
		},
		"a guarded RETURNING": func(ctx context.Context, db *sql.DB) error {
			var id int
			return db.QueryRowContext(ctx, guarded+` RETURNING id`, "paid", 7, 1).Scan(&id)
		},
		"an upsert of several rows": execs(`INSERT INTO orders (id, status, last_token) VALUES (1, 'a', $1), (2, 'b', $1) ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, last_token = $1 WHERE orders.last_token <= $1`, 7),
		"an upsert of arrays":       execs(`INSERT INTO orders (id, status, last_token) SELECT u.id, 'x', $1::bigint FROM unnest($2::bigint[]) AS u(id) ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE orders.last_token <= $1`, 7, []int64{1, 2}),
		"an upsert from a table":    execs(`INSERT INTO orders (id, status, last_token) SELECT n.id, n.body, $1::bigint FROM notes n WHERE n.id < $2 ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE orders.last_token <= $1`, 7, 9),
		"an update from a table":    execs(`UPDATE orders SET status = n.body, last_token = $1 FROM notes n WHERE orders.id = n.id AND n.id < $2 AND orders.last_token <= $1`, 7, 9),
		"an update from VALUES":     execs(`UPDATE orders SET status = v.s, last_token = $1 FROM (VALUES ($2::bigint, 'a'), (2, 'b')) v(id, s) WHERE orders.id = v.id AND orders.last_token <= $1`, 7, 1),
		"an update from arrays":     execs(`UPDATE orders SET status = 'x', last_token = $1 FROM unnest($2::bigint[]) u(id) WHERE orders.id = u.id AND orders.last_token <= $1`, 7, []int64{1, 2}),
		"some of a queue":           execs(`WITH next AS (SELECT id FROM orders ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) UPDATE orders SET status = 'x', last_token = $1 FROM next WHERE orders.id = next.id AND orders.last_token <= $1`, 7),
		"the next of a queue":       execs(`UPDATE orders SET status = 'x', last_token = $1 FROM (SELECT id FROM orders LIMIT 1 FOR UPDATE SKIP LOCKED) next WHERE orders.id = next.id AND orders.last_token <= $1`, 7),
		"a MERGE of arrays":         execs(`MERGE INTO orders USING unnest($2::bigint[]) u(id) ON orders.id = u.id WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1`, 7, []int64{1, 2}),
		"an upsert of several rows, RETURNING": func(ctx context.Context, db *sql.DB) error {
			rows, err := db.QueryContext(ctx, `INSERT INTO orders (id, status, last_token) VALUES (1, 'a', $1), (2, 'b', $1) ON CONFLICT (id) DO UPDATE SET last_token = $1 WHERE orders.last_token <= $1 RETURNING id`, 7)
			_, err = readAll(rows, err)
			return err
		},
		"an update of many rows": execs(`UPDATE orders SET status = 'x', last_token = $1 WHERE id < 3 AND last_token <= $1`, 7),
		"an independent outbox":  execs(`WITH paid AS (`+guarded+`) INSERT INTO outbox VALUES (1)`, "paid", 7, 1),
		"a dependent outbox":     execs(`WITH paid AS (`+guarded+` RETURNING id) INSERT INTO outbox SELECT id FROM paid`, "paid", 7, 1),
		"an outbox, RETURNING": func(ctx context.Context, db *sql.DB) error {
			var id int
			return db.QueryRowContext(ctx, `WITH paid AS (`+guarded+` RETURNING id) INSERT INTO outbox SELECT id FROM paid RETURNING id`, "paid", 7, 1).Scan(&id)
		},
		"a write within a query": func(ctx context.Context, db *sql.DB) error {
			var n int
			return db.QueryRowContext(ctx, `WITH paid AS (`+guarded+` RETURNING id) SELECT count(*) FROM paid`, "paid", 7, 1).Scan(&n)
		},
		"a prepared outbox": inTx(func(ctx context.Context, tx *sql.Tx) error {
			stmt, err := tx.PrepareContext(ctx, `WITH paid AS (`+guarded+`) INSERT INTO outbox VALUES (1)`)
			if err != nil {
				return err
			}
			_, err = stmt.ExecContext(ctx, "paid", 7, 1)
			return errors.Join(err, stmt.Close())
		}),
		"a transaction": inTx(func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, guarded, "paid", 7, 1)
			return err
		}),
		"a transaction of a prepared statement": inTx(func(ctx context.Context, tx *sql.Tx) error {
			stmt, err := tx.PrepareContext(ctx, guarded)
			if err != nil {
				return err
			}
			_, err = stmt.ExecContext(ctx, "paid", 7, 1)
			return errors.Join(err, stmt.Close())
		}),
	}
	want := make(map[string]int)
	for _, level := range []migrations.WallLevel{migrations.WallOff, migrations.WallEnforce, migrations.WallAttested} {
		dsn := tripsDatabase(t, level)
		for name, do := range operations {
			if level == migrations.WallOff { // what plain pgx may write
				config, n := counted(t, dsn)
				plain := stdlib.OpenDB(*config)
				want[name] = tripsUsed(t, plain, n, t.Context(), do)
				require.NoError(t, plain.Close())
				require.Positive(t, want[name])
			}
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				fenced, n := fencedTrips(t, dsn)
				require.Equal(t, want[name], tripsUsed(t, fenced, n, tokenctx.With(t.Context(), 7), do))
			})
		}
		t.Run(string(level)+"/a stale token", func(t *testing.T) {
			fenced, n := fencedTrips(t, dsn)
			stale := func(ctx context.Context, db *sql.DB) error {
				_, err := db.ExecContext(ctx, guarded, "paid", 3, 1)
				require.ErrorIs(t, err, driver.ErrStale)
				return nil
			}
			took := tripsUsed(t, fenced, n, tokenctx.With(t.Context(), 3), stale)
			require.Equal(t, want["a guarded Exec"]+3, took, "the probe, and the transaction that holds its timeout")
		})
	}
}

// What is rewritten takes no round trip more either, though its many rows are counted.
func TestRoundTripsOfRewrittenWrites(t *testing.T) {
	dsn := tripsDatabase(t, migrations.WallEnforce)
	config, n := counted(t, dsn)
	connector, err := driver.NewConnector(*config, driver.WithRewrite())
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for name, do := range map[string]func(context.Context, *sql.DB) error{
		"by key":                 execs(`UPDATE orders SET status = 'x' WHERE id = $1`, 1),
		"by condition":           execs(`UPDATE orders SET status = 'x' WHERE status <> $1`, "none"),
		"by a list":              execs(`UPDATE orders SET status = 'x' WHERE id IN ($1, $2)`, 1, 2),
		"an upsert":              execs(`INSERT INTO orders (id, status) VALUES ($1, 'x'), ($2, 'x') ON CONFLICT (id) DO UPDATE SET status = 'x'`, 1, 2),
		"an upsert from a table": execs(`INSERT INTO orders (id, status) SELECT id, body FROM notes WHERE id < $1 ON CONFLICT (id) DO UPDATE SET status = 'x'`, 9),
		"RETURNING": func(ctx context.Context, db *sql.DB) error {
			rows, err := db.QueryContext(ctx, `UPDATE orders SET status = 'x' WHERE id < $1 RETURNING id`, 9)
			_, err = readAll(rows, err)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, tripsUsed(t, db, n, tokenctx.With(t.Context(), 7), do))
		})
	}
}

// PostgreSQL 15 can't return anything of a MERGE, so one of a table's rows is asked after,
// as are rows of FROM that a sub-select locks.
func TestRoundTripsOfUncountedSources(t *testing.T) {
	db, n := fencedTrips(t, tripsDatabase(t, migrations.WallEnforce))
	for name, query := range map[string]string{
		"a MERGE from a table": `MERGE INTO orders USING notes n ON orders.id = n.id WHEN MATCHED AND orders.last_token <= $1 THEN UPDATE SET status = 'x', last_token = $1`,
		"some of a queue":      `UPDATE orders SET status = 'x', last_token = $1 FROM (SELECT id FROM orders ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED) next WHERE orders.id = next.id AND orders.last_token <= $1`,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1+3, tripsUsed(t, db, n, tokenctx.With(t.Context(), 7), execs(query, 7)))
		})
	}
}

// A poll of an empty queue by the holder of its lease takes one look, which is that at the
// lease.
func TestRoundTripsOfAnEmptyQueue(t *testing.T) {
	dsn := tripsDatabase(t, migrations.WallEnforce)
	run(t, dsn, `SELECT fencing.take('queue', '1 h', 'holder')`)
	var token int64
	db, n := fencedTrips(t, dsn)
	require.NoError(t, db.QueryRow(`SELECT token FROM fencing.lease`).Scan(&token))
	ctx := tokenctx.WithResource(tokenctx.With(t.Context(), tokenctx.Token(token)), "queue", tokenctx.Token(token))
	took := tripsUsed(t, db, n, ctx, execs(`UPDATE orders SET status = 'running', last_token = $1 WHERE id IN (SELECT id FROM orders WHERE status = 'none' LIMIT 1 FOR UPDATE SKIP LOCKED) AND last_token <= $1`, token))
	require.Equal(t, 1+3, took)
}

func tripsDatabase(t *testing.T, level migrations.WallLevel) (dsn string) {
	t.Helper()
	dsn = localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE outbox (id bigint); CREATE TABLE notes (id bigint PRIMARY KEY, body text); INSERT INTO notes VALUES (1, 'a');
		CREATE TABLE orders (id bigint PRIMARY KEY, status text); INSERT INTO orders VALUES (1, 'new'), (2, 'new')`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	run(t, dsn, `SELECT setval('fencing.write_epoch', 1000); UPDATE orders SET last_token = 5`)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", level))
	return dsn
}

// fencedTrips opens a handle of one connection whose round trips are counted.
func fencedTrips(t *testing.T, dsn string) (*sql.DB, *atomic.Int64) {
	t.Helper()
	config, n := counted(t, dsn)
	connector, err := driver.NewConnector(*config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, n
}

// Where nothing is registered, a statement after a change of structure costs
// nothing more.
func TestOwnDDLWhereNothingIsRegistered(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	config, n := counted(t, dsn)
	connector, err := driver.NewConnector(*config, driver.WithPgx(stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })))
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	require.NoError(t, db.Ping())
	for _, statement := range []string{`CREATE TABLE made (id int)`, `SELECT 1`, `CREATE VIEW v AS SELECT * FROM made`, `INSERT INTO made VALUES (1)`} {
		before := n.Load()
		_, err = db.Exec(statement)
		require.NoError(t, err)
		require.Equal(t, int64(1), n.Load()-before, statement)
	}
	_, err = db.Exec(`DO $$ BEGIN PERFORM fencing.register('made', 'lease'); END $$`)
	require.ErrorIs(t, err, rewrite.ErrRefused, "tables are registered over a plain connection")
}
