package driver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openJobs opens a handle of a queue's table, and a plain connection beside it.
func openJobs(t *testing.T, opts ...driver.Option) (db *sql.DB, plain *pgx.Conn) {
	t.Helper()
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE jobs (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'available', errors jsonb[] NOT NULL DEFAULT '{}', worker text, last_token bigint NOT NULL DEFAULT 0);
		CREATE TABLE downloads (day date, package_id bigint, n bigint, last_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (day, package_id));
		CREATE MATERIALIZED VIEW stats AS SELECT day, sum(n) AS n FROM downloads GROUP BY day; CREATE UNIQUE INDEX ON stats (day);
		CREATE TABLE staging (package_id bigint); INSERT INTO staging VALUES (1), (1), (2), (3)`)
	db, err := driver.Open(dsn, append(opts, driver.Protect("jobs", rewrite.Lease), driver.Protect("downloads", rewrite.Lease))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	plain, err = pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close(context.Background()) })
	return db, plain
}

func reset(t *testing.T, plain *pgx.Conn, script string) {
	t.Helper()
	_, err := plain.Exec(t.Context(), script)
	require.NoError(t, err)
}

// A batch of arrays whose rows were selected before some of them had a newer holder.
func TestBatchSelectedBefore(t *testing.T) {
	const (
		claimed = `TRUNCATE jobs; INSERT INTO jobs (id, state, last_token) VALUES (1, 'running', 5), (2, 'running', 8), (3, 'running', 5)`
		source  = ` FROM (SELECT unnest($1::bigint[]) AS id, unnest($2::text[]) AS state, unnest($3::jsonb[]) AS err) AS u WHERE jobs.id = u.id AND jobs.state = 'running'`
		bare    = `UPDATE jobs SET state = u.state, errors = array_append(jobs.errors, u.err)` + source
		guarded = `UPDATE jobs SET state = u.state, errors = array_append(jobs.errors, u.err), last_token = $4` + source + ` AND jobs.last_token <= $4`
		// The source has a column of the token's name, too.
		namesake = `UPDATE jobs SET state = u.state FROM (SELECT unnest($1::bigint[]) AS id, unnest($2::text[]) AS state, unnest($3::bigint[]) AS last_token) AS u WHERE jobs.id = u.id`
	)
	ctx := tokenctx.With(t.Context(), 7)
	errs := func(n int) (out []json.RawMessage) {
		for range n {
			out = append(out, json.RawMessage(`{"e": 1}`))
		}
		return out
	}
	for name, opts := range map[string][]driver.Option{"guarded": nil, "rewritten": {driver.WithRewrite()}} {
		t.Run(name, func(t *testing.T) {
			db, plain := openJobs(t, opts...)
			send := func(ids []int64, states []string) error {
				reset(t, plain, claimed)
				args := []any{ids, states, errs(len(ids))}
				query := bare
				if opts == nil {
					query, args = guarded, append(args, tokenctx.Arg)
				}
				_, err := db.ExecContext(ctx, query, args...)
				return err
			}
			var partial *driver.PartialError
			require.ErrorAs(t, send([]int64{1, 2, 3}, []string{"retry", "retry", "retry"}), &partial)
			require.Equal(t, driver.PartialError{Table: "jobs", Token: 7, Applied: 2, Stale: 1}, *partial)
			require.ErrorIs(t, send([]int64{2}, []string{"retry"}), driver.ErrStale)
			require.NoError(t, send([]int64{1, 3}, []string{"retry", "retry"}))
			require.NoError(t, send([]int64{77}, []string{"retry"}), "no such row")
			if opts == nil {
				return
			}
			reset(t, plain, claimed)
			_, err := db.ExecContext(ctx, namesake, []int64{1, 2}, []string{"retry", "retry"}, []int64{99, 99})
			require.ErrorAs(t, err, &partial, "the guard is the target's")
			require.Equal(t, driver.PartialError{Table: "jobs", Token: 7, Applied: 1, Stale: 1}, *partial)
		})
	}
}

// A queue's poll that meets a row with a newer token isn't an empty queue, and a guard in
// the sub-select passes over that row.
func TestPollThatMeetsANewerRow(t *testing.T) {
	const queued = `TRUNCATE jobs; INSERT INTO jobs (id, last_token) VALUES (1, 9), (2, 0), (3, 0)`
	db, plain := openJobs(t)
	ctx := tokenctx.With(t.Context(), 7)
	for name, query := range map[string]string{
		"a sub-select": `UPDATE jobs SET state = 'running', worker = $1, last_token = $2 WHERE id IN (SELECT id FROM jobs WHERE state = 'available' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) AND last_token <= $2 RETURNING id`,
		"WITH":         `WITH next AS MATERIALIZED (SELECT id FROM jobs WHERE state = 'available' ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) UPDATE jobs SET state = 'running', worker = $1, last_token = $2 FROM next WHERE jobs.id = next.id AND jobs.last_token <= $2 RETURNING jobs.id`,
	} {
		reset(t, plain, queued)
		var id int
		err := db.QueryRowContext(ctx, query, "w", tokenctx.Arg).Scan(&id)
		require.True(t, errors.Is(err, driver.ErrUndetermined) || errors.Is(err, driver.ErrStale), "%s: %v", name, err)
	}
	for _, want := range []int{2, 3} {
		var id int
		require.NoError(t, db.QueryRowContext(ctx, `UPDATE jobs SET state = 'running', worker = $1, last_token = $2 WHERE id = (SELECT id FROM jobs WHERE state = 'available' AND last_token <= $2
			ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) AND last_token <= $2 RETURNING id`, "w", tokenctx.Arg).Scan(&id))
		require.Equal(t, want, id)
	}
}

// A day that is deleted and inserted anew, by a holder that a newer one has overtaken.
func TestDayWrittenAnew(t *testing.T) {
	const (
		remove = `DELETE FROM downloads WHERE day = $1 AND last_token <= $2`
		insert = `INSERT INTO downloads (day, package_id, n, last_token) SELECT $1::date, s.package_id, count(*), $2::bigint FROM staging s GROUP BY s.package_id`
		bare   = `INSERT INTO downloads (day, package_id, n) SELECT $1::date, s.package_id, count(*) FROM staging s GROUP BY s.package_id`
		day    = "2026-01-02"
	)
	db, plain := openJobs(t, driver.WithRewrite(), driver.WithPartialCheck())
	ctx := tokenctx.With(t.Context(), 7)
	fill := func(tokens string) {
		reset(t, plain, `TRUNCATE downloads; INSERT INTO downloads SELECT '2026-01-02', p, 1, tok FROM (VALUES `+tokens+`) v(p, tok)`)
	}
	fill(`(1, 8), (2, 8), (3, 8)`)
	_, err := db.ExecContext(ctx, remove, day, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale)
	var server *pgconn.PgError
	_, err = db.ExecContext(ctx, insert, day, tokenctx.Arg)
	require.ErrorAs(t, err, &server)
	require.Equal(t, "23505", server.Code)

	fill(`(1, 8), (2, 8), (3, 5)`)
	var partial *driver.PartialError
	_, err = db.ExecContext(ctx, remove, day, tokenctx.Arg)
	require.ErrorAs(t, err, &partial)
	require.Equal(t, driver.PartialError{Table: "downloads", Token: 7, Applied: 1, Stale: 2}, *partial)

	for name, send := range map[string]func(*sql.Tx) error{
		"guarded":   func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, insert, day, tokenctx.Arg); return err },
		"rewritten": func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, bare, day); return err },
	} {
		reset(t, plain, `TRUNCATE downloads`)
		tx, err := db.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(ctx, remove, day, tokenctx.Arg)
		require.NoError(t, err, "the day is empty")
		require.NoError(t, send(tx), name)
		require.NoError(t, tx.Commit())
		var sum, token int
		require.NoError(t, plain.QueryRow(t.Context(), `SELECT sum(n), min(last_token) FROM downloads`).Scan(&sum, &token))
		require.Equal(t, []int{4, 7}, []int{sum, token}, name)
	}
	_, err = db.ExecContext(ctx, `REFRESH MATERIALIZED VIEW CONCURRENTLY stats`)
	require.NoError(t, err)
}

// What RETURNING tells where no row comes back, and while the rows are read.
func TestWhatReturningTells(t *testing.T) {
	db, plain := openJobs(t)
	ctx := tokenctx.With(t.Context(), 7)
	reset(t, plain, `INSERT INTO jobs (id, last_token) VALUES (1, 5), (2, 8), (3, 5)`)
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback()
	var id int
	require.ErrorIs(t, tx.QueryRowContext(ctx, `INSERT INTO jobs (id, last_token) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id`, 2, tokenctx.Arg).Scan(&id), sql.ErrNoRows, "nothing was to be overwritten")
	require.ErrorIs(t, tx.QueryRowContext(ctx, `UPDATE jobs SET state = 'x', last_token = $1 WHERE id = 2 AND last_token <= $1 RETURNING id`, tokenctx.Arg).Scan(&id), driver.ErrStale)
	require.NoError(t, tx.QueryRowContext(ctx, `SELECT id FROM jobs WHERE id = 3`).Scan(&id), "the connection is free")
	var server *pgconn.PgError
	require.ErrorAs(t, tx.QueryRowContext(ctx, `UPDATE jobs SET state = 'x', last_token = $1 WHERE id IN (1, 3) AND last_token <= $1 RETURNING 1 / (id - 3)`, tokenctx.Arg).Scan(&id), &server)
	require.Equal(t, "22012", server.Code)
}

// A row that moves between partitions while another waits for it: PostgreSQL's own error
// first, and then the answer that the row is another's.
func TestRowMovesUnderAWaiter(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE jobs (id bigint, state text, worker text, last_token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, state)) PARTITION BY LIST (state);
		CREATE TABLE jobs_run PARTITION OF jobs FOR VALUES IN ('available', 'executing'); CREATE TABLE jobs_done PARTITION OF jobs FOR VALUES IN ('completed');
		INSERT INTO jobs VALUES (5, 'executing', NULL, 7)`)
	db, err := driver.Open(dsn, driver.Protect("jobs", rewrite.Lease))
	require.NoError(t, err)
	defer db.Close()
	newer, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer newer.Close(context.Background())
	watch, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer watch.Close(context.Background())
	const write = `UPDATE jobs SET worker = 'a', last_token = $1 WHERE id = 5 AND state = 'executing' AND last_token <= $1`
	reset(t, newer, `BEGIN; UPDATE jobs SET state = 'completed', last_token = 8 WHERE id = 5`)
	answer := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(tokenctx.With(t.Context(), 7), write, tokenctx.Arg)
		answer <- err
	}()
	for isWaiting := false; !isWaiting; {
		require.NoError(t, watch.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid())`).Scan(&isWaiting))
	}
	reset(t, newer, `COMMIT`)
	err = <-answer
	var server *pgconn.PgError
	require.ErrorAs(t, err, &server)
	require.Equal(t, "40001", server.Code)
	require.NotErrorIs(t, err, driver.ErrStale)
	_, err = db.ExecContext(tokenctx.With(t.Context(), 7), write, tokenctx.Arg)
	require.ErrorIs(t, err, driver.ErrStale)
}
