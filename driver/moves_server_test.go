package driver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// partitioned is a table of two levels of partitions, whose rows carry 5.
const partitioned = `
	CREATE TABLE parts (id bigint, state text, last_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, state)) PARTITION BY LIST (state);
	CREATE TABLE parts_new PARTITION OF parts FOR VALUES IN ('new');
	CREATE TABLE parts_done PARTITION OF parts FOR VALUES IN ('done', 'gone') PARTITION BY LIST (state);
	CREATE TABLE parts_done_a PARTITION OF parts_done FOR VALUES IN ('done');
	CREATE TABLE parts_done_b PARTITION OF parts_done FOR VALUES IN ('gone');
	INSERT INTO parts SELECT i, CASE WHEN i < 100 THEN 'new' ELSE 'done' END, 5 FROM generate_series(1, 200) i`

// openMoving opens a handle on such a table, with a wall.
func openMoving(t *testing.T, mode migrations.Mode, level migrations.WallLevel, tombstones, sealed bool, opts ...driver.Option) (*sql.DB, string, tokenctx.Token) {
	t.Helper()
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, partitioned)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "parts", Mode: mode}))
	run(t, dsn, `SELECT fencing.next_token() FROM generate_series(1, 100)`)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "parts", level))
	if tombstones {
		require.NoError(t, migrations.Tombstones(t.Context(), dsn, "parts", true))
	}
	if sealed {
		require.NoError(t, migrations.Seal(t.Context(), dsn, "parts", "mover"))
	}
	db, err := driver.Open(dsn, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	if !sealed {
		return db, dsn, 7
	}
	l, err := lease.TryTake(t.Context(), db, "mover", time.Minute, lease.WithoutRenewal())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Release(context.WithoutCancel(t.Context())) })
	return db, dsn, l.Token()
}

// moves take an id and the token.
var moves = map[string]string{
	"update":   `UPDATE parts SET state = 'gone', last_token = $2 WHERE id = $1 AND last_token < $2`,
	"two down": `UPDATE parts SET state = 'gone', last_token = $2 WHERE id = 100 + $1 AND last_token < $2`,
	"branch":   `UPDATE parts_done SET state = 'gone', last_token = $2 WHERE id = 100 + $1 AND last_token < $2`,
	"from":     `UPDATE parts p SET state = v.state, last_token = $2 FROM (VALUES ($1::bigint, 'gone')) v(id, state) WHERE p.id = v.id AND p.last_token < $2`,
	"merge":    `MERGE INTO parts p USING (VALUES ($1::bigint)) v(id) ON p.id = v.id WHEN MATCHED AND p.last_token < $2 THEN UPDATE SET state = 'gone', last_token = $2`,
	"with":     `WITH m AS (UPDATE parts SET state = 'gone', last_token = $2 WHERE id = $1 AND last_token < $2 RETURNING id) SELECT id FROM m`,
}

// An UPDATE or MERGE that moves a row to another partition is a DELETE and an
// INSERT to the wall, which has to find the token of either.
func TestWallLetsRowsMove(t *testing.T) {
	for _, mode := range []migrations.Mode{migrations.Strict, migrations.Lease} {
		for _, level := range []migrations.WallLevel{migrations.WallReport, migrations.WallEnforce, migrations.WallAttested} {
			for _, with := range []string{"", "tombstones", "seal"} {
				if with == "seal" && mode == migrations.Strict {
					continue // only a lease's table is sealed
				}
				db, dsn, token := openMoving(t, mode, level, with == "tombstones", with == "seal")
				ctx, id := tokenctx.With(t.Context(), token), 0
				plain := openPlain(t, dsn)
				for name, move := range moves {
					for how, exec := range movers(db, move) {
						id++
						require.NoError(t, exec(ctx, id), "%v %v %s %s %s", mode, level, with, name, how)
						moved := id
						if name == "two down" || name == "branch" {
							moved += 100
						}
						requireMoved(t, plain, moved, token)
					}
				}
			}
		}
	}
}

// movers are the ways to send a move.
func movers(db *sql.DB, move string) map[string]func(context.Context, int) error {
	out := map[string]func(context.Context, int) error{
		"prepared": func(ctx context.Context, id int) error {
			stmt, err := db.PrepareContext(ctx, move)
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx, id, tokenctx.Arg)
			return err
		},
		"transaction": func(ctx context.Context, id int) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, move, id, tokenctx.Arg); err != nil {
				return err
			}
			return tx.Commit()
		},
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		out[mode.String()] = func(ctx context.Context, id int) error {
			_, err := db.ExecContext(ctx, move, mode, id, tokenctx.Arg)
			return err
		}
	}
	return out
}

func requireMoved(t *testing.T, plain *sql.DB, id int, token tokenctx.Token) {
	t.Helper()
	var state string
	var left tokenctx.Token
	require.NoError(t, plain.QueryRow(`SELECT state, last_token FROM parts WHERE id = $1`, id).Scan(&state, &left))
	require.Equal(t, "gone", state)
	require.Equal(t, token, left)
}

// A text without a guard moves rows once it is rewritten, with literals too. A stale
// one moves none.
func TestWallLetsRowsMoveRewritten(t *testing.T) {
	db, dsn, token := openMoving(t, migrations.Lease, migrations.WallEnforce, false, false, driver.WithRewrite())
	plain := openPlain(t, dsn)
	ctx := tokenctx.With(t.Context(), token)
	_, err := db.ExecContext(ctx, `UPDATE parts SET state = 'gone' WHERE id = 1`)
	require.NoError(t, err)
	requireMoved(t, plain, 1, token)
	_, err = db.ExecContext(ctx, `UPDATE parts SET state = $1 WHERE id = $2`, "gone", 2)
	require.NoError(t, err)
	requireMoved(t, plain, 2, token)
	_, err = db.ExecContext(ctx, `UPDATE parts SET state = 'gone', last_token = 7 WHERE id = 3 AND last_token <= 7`)
	require.NoError(t, err)
	requireMoved(t, plain, 3, token)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 4), `UPDATE parts SET state = 'new' WHERE id = 1 AND state = 'gone'`)
	require.ErrorIs(t, err, driver.ErrStale)
	requireMoved(t, plain, 1, token)
	_, err = db.ExecContext(ctx, `INSERT INTO parts (id, state, last_token) VALUES (4, 'new', $1) ON CONFLICT (id, state) DO UPDATE SET state = 'gone', last_token = EXCLUDED.last_token WHERE parts.last_token <= EXCLUDED.last_token`, tokenctx.Arg)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "0A000", pgErr.Code, "PostgreSQL lets no upsert move a row: %s", pgErr.Message)
}

// A table may become a partition while a handle is open.
func TestWallLetsRowsMoveOnceAttached(t *testing.T) {
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE parts (id bigint, state text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO parts SELECT i, 'new', 5 FROM generate_series(1, 9) i;
		CREATE TABLE whole (LIKE parts INCLUDING ALL) PARTITION BY LIST (state); CREATE TABLE rest PARTITION OF whole DEFAULT`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "parts", Mode: migrations.Lease}))
	run(t, dsn, `SELECT fencing.next_token() FROM generate_series(1, 100)`)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "parts", migrations.WallEnforce))
	db, err := driver.Open(dsn, driver.WithRefreshInterval(time.Nanosecond))
	require.NoError(t, err)
	defer db.Close()
	ctx := tokenctx.With(t.Context(), 7)
	update := `UPDATE parts SET state = 'new', last_token = $1 WHERE id = $2 AND last_token <= $1`
	stmt, err := db.Prepare(update)
	require.NoError(t, err)
	defer stmt.Close()
	_, err = stmt.ExecContext(ctx, tokenctx.Arg, 1)
	require.NoError(t, err)
	run(t, dsn, `ALTER TABLE whole ATTACH PARTITION parts FOR VALUES IN ('new')`)
	_, err = stmt.ExecContext(ctx, tokenctx.Arg, 1)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, `UPDATE whole SET state = 'gone', last_token = $1 WHERE id = $2 AND last_token <= $1`, tokenctx.Arg, 1)
	require.NoError(t, err)
}

// The error says what has become of a token that was sent.
func TestWallSaysWhereTheTokenWent(t *testing.T) {
	_, dsn, token := openMoving(t, migrations.Lease, migrations.WallEnforce, false, false)
	run(t, dsn, `CREATE TABLE plain (id bigint PRIMARY KEY, state text, last_token bigint NOT NULL DEFAULT 0); INSERT INTO plain VALUES (1, 'new', 5), (2, 'old', 5);
		CREATE TABLE audit (id bigint)`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "plain", Mode: migrations.Lease}))
	require.NoError(t, migrations.Wall(t.Context(), dsn, "plain", migrations.WallEnforce))
	run(t, dsn, `CREATE FUNCTION keep_old() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN CASE WHEN OLD.id = 1 THEN OLD ELSE NEW END; END $$;
		CREATE TRIGGER keep BEFORE UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION keep_old();
		CREATE FUNCTION write_plain() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN EXECUTE 'UPDATE pl' || 'ain SET state = ''x'''; RETURN NEW; END $$;
		CREATE TRIGGER audited AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION write_plain()`)
	ctx := tokenctx.With(t.Context(), token)
	db, err := driver.Open(dsn, driver.WithGuardedFunctions("write_plain"))
	require.NoError(t, err)
	defer db.Close()
	for name, test := range map[string]struct {
		sql, says string
		args      []any
		rule      rewrite.Rule
	}{
		"a trigger": {
			`UPDATE plain SET state = 'x', last_token = $1 WHERE id = 1 AND last_token <= $1`, `look at the table's own triggers`,
			[]any{tokenctx.Arg}, rewrite.WallRefused,
		},
		"not its own": {`INSERT INTO audit VALUES (1)`, `guard the statement or the function that wrote`, nil, rewrite.NoToken},
	} {
		_, err := db.ExecContext(ctx, test.sql, test.args...)
		var v *rewrite.Violation
		require.True(t, errors.As(err, &v), "%s: %v", name, err)
		require.Equal(t, test.rule, v.Rule, name)
		require.ErrorContains(t, err, test.says, name)
		require.True(t, driver.NotApplied(err))
	}
	// the rows may carry a token each, so none goes along in the setting
	_, err = db.ExecContext(ctx, `UPDATE parts p SET state = 'gone', last_token = v.t FROM (VALUES (1, $1::bigint), (2, 7)) v(id, t) WHERE p.id = v.id AND p.last_token <= v.t`, tokenctx.Arg)
	require.ErrorContains(t, err, "was to be moved to another partition")
	require.NotErrorIs(t, err, driver.ErrNoToken)
}
