package driver_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// plansOfQueues are the settings that are off, so that PostgreSQL joins the queue's query in
// one way or the other.
var plansOfQueues = map[string]string{
	"as it likes":  ``,
	"nested loop":  `hashjoin mergejoin material hashagg sort indexscan bitmapscan indexonlyscan`,
	"by the index": `hashjoin mergejoin seqscan`,
	"merge join":   `hashjoin nestloop`,
	"hash join":    `mergejoin nestloop`,
	"no hash":      `hashjoin hashagg material`,
}

// A query that takes rows from a queue is run once, whatever plan the guard leads to.
func TestQueueIsReadOnce(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, `CREATE TABLE jobs (id bigint PRIMARY KEY, state text, n int, last_token bigint NOT NULL DEFAULT 0);
		ALTER TABLE jobs SET (autovacuum_enabled = off); INSERT INTO jobs VALUES (1, 'new', 1); ANALYZE jobs;
		INSERT INTO jobs SELECT i, 'new', i FROM generate_series(2, 40) i`) // with stale statistics
	plain, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer plain.Close(t.Context())
	db, err := driver.Open(dsn, driver.Protect("jobs", rewrite.Lease), driver.WithRewrite())
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	ctx := tokenctx.With(t.Context(), 7)
	const next = `SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED`
	writes := map[string]string{
		"IN":              `UPDATE jobs SET state = 'run' WHERE id IN (` + next + `)`,
		"= ANY":           `UPDATE jobs SET state = 'run' WHERE id = ANY (` + next + `)`,
		"FROM":            `UPDATE jobs SET state = 'run' FROM (` + next + `) q WHERE q.id = jobs.id`,
		"a join":          `UPDATE jobs SET state = 'run' FROM (VALUES ('run')) v(s) CROSS JOIN (` + next + `) q WHERE q.id = jobs.id`,
		"inside":          `UPDATE jobs SET state = 'run' WHERE id IN (SELECT q.id FROM (` + next + `) q)`,
		"WITH":            `WITH q AS (` + next + `) UPDATE jobs SET state = 'run' FROM q WHERE q.id = jobs.id`,
		"WITH, by IN":     `WITH q AS NOT MATERIALIZED (` + next + `) UPDATE jobs SET state = 'run' WHERE id IN (SELECT id FROM q)`,
		"DELETE":          `DELETE FROM jobs WHERE id IN (` + next + `)`,
		"DELETE, USING":   `DELETE FROM jobs USING (` + next + `) q WHERE q.id = jobs.id`,
		"MERGE":           `MERGE INTO jobs USING (` + next + `) q ON q.id = jobs.id WHEN MATCHED THEN UPDATE SET state = 'run'`,
		"without a limit": `UPDATE jobs SET state = 'run' WHERE id IN (SELECT id FROM jobs WHERE n < 3 FOR UPDATE SKIP LOCKED)`,
	}
	isNeeded := false
	for _, statistics := range []string{``, `ANALYZE jobs`} {
		_, err := plain.Exec(t.Context(), statistics)
		require.NoError(t, err)
		for plan, off := range plansOfQueues {
			for name, write := range writes {
				tx, err := conn.BeginTx(ctx, nil)
				require.NoError(t, err)
				for _, setting := range strings.Fields(off) {
					_, err = tx.Exec(`SET LOCAL enable_` + setting + ` = off`)
					require.NoError(t, err)
				}
				result, err := tx.ExecContext(ctx, write)
				require.NoError(t, err, "%s, %s", name, plan)
				n, err := result.RowsAffected()
				require.NoError(t, err)
				require.EqualValues(t, 2, n, "%s, %s", name, plan)
				require.NoError(t, tx.Rollback())
			}
			isNeeded = isNeeded || takesMore(t, plain, off, writes["IN"]+` AND last_token <= 7`)
		}
	}
	require.True(t, isNeeded, "with the guard alone some plan writes more rows")
}

// takesMore reports whether a write changes more rows than its query gives.
func takesMore(t *testing.T, plain *pgx.Conn, off, write string) bool {
	t.Helper()
	tx, err := plain.Begin(t.Context())
	require.NoError(t, err)
	for _, setting := range strings.Fields(off) {
		_, err = tx.Exec(t.Context(), `SET LOCAL enable_`+setting+` = off`)
		require.NoError(t, err)
	}
	tag, err := tx.Exec(t.Context(), write)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	return tag.RowsAffected() > 2
}
