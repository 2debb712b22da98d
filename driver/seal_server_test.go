package driver_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/lease"
	"github.com/fencerow/fencerow/migrations"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

// openSealed opens a handle on a table that is sealed by the lease that its
// column region names, and a lease of eu that was lost to the second one.
func openSealed(t *testing.T) (db *sql.DB, old, present *lease.Lease) {
	t.Helper()
	dsn := localpg.Database(t, fencetest.Installed)
	run(t, dsn, `CREATE TABLE jobs (id bigint PRIMARY KEY, region text NOT NULL DEFAULT 'eu', status text)`)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "jobs", Mode: migrations.Lease}))
	run(t, dsn, `INSERT INTO jobs SELECT i, 'eu', 'new' FROM generate_series(1, 9) i`)
	require.NoError(t, migrations.Wall(t.Context(), dsn, "jobs", migrations.WallEnforce))
	require.NoError(t, migrations.SealByColumn(t.Context(), dsn, "jobs", "region"))
	db, err := driver.Open(dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	old, err = lease.TryTake(t.Context(), db, "eu", time.Minute, lease.WithoutRenewal())
	require.NoError(t, err)
	run(t, dsn, `UPDATE fencing.lease SET expires_at = '-infinity'`) // as after a long pause
	present, err = lease.TryTake(t.Context(), db, "eu", time.Minute, lease.WithoutRenewal())
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = present.Release(context.WithoutCancel(t.Context())), old.Release(context.WithoutCancel(t.Context()))
	})
	return db, old, present
}

// sealedWrites are guarded. Each takes the id of a row that the present holder
// hasn't written, and the token.
var sealedWrites = map[string]string{
	"update": `UPDATE jobs SET status = 'x', last_token = $2 WHERE id = $1 AND last_token <= $2`,
	"insert": `INSERT INTO jobs (id, last_token) VALUES ($1 + 100, $2)`,
	"upsert": `INSERT INTO jobs (id, last_token) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET last_token = EXCLUDED.last_token WHERE jobs.last_token <= EXCLUDED.last_token`,
	"delete": `DELETE FROM jobs WHERE id = $1 AND last_token <= $2`,
}

// A stale holder's writes to rows that nobody else has written are refused with
// the driver's own errors, and the new holder's are not.
func TestSeal(t *testing.T) {
	db, old, present := openSealed(t)
	id := 0
	for name, write := range sealedWrites {
		for how, exec := range map[string]func(context.Context) error{
			"alone": func(ctx context.Context) error { _, err := db.ExecContext(ctx, write, id, tokenctx.Arg); return err },
			"in a transaction": func(ctx context.Context) error {
				tx, err := db.BeginTx(ctx, nil)
				require.NoError(t, err)
				defer tx.Rollback()
				if _, err := tx.ExecContext(ctx, write, id, tokenctx.Arg); err != nil {
					return err
				}
				return tx.Commit()
			},
		} {
			id++
			err := exec(tokenctx.With(t.Context(), old.Token()))
			require.ErrorIs(t, err, tokenctx.ErrStale, "%s %s", name, how)
			var stale *driver.StaleError
			require.ErrorAs(t, err, &stale)
			require.Equal(t, driver.StaleError{Table: "jobs", Token: old.Token(), Current: present.Token(), Sealed: true, Err: stale.Err}, *stale)
			require.True(t, driver.NotApplied(err))
			require.NoError(t, exec(tokenctx.With(t.Context(), present.Token())), "%s %s", name, how)
		}
	}
	// ordinary statements beside it run as ever
	var n int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM jobs WHERE status = 'x'`).Scan(&n))
	require.Equal(t, 2, n)
	_, err := db.Exec(`CREATE TABLE other (id int); INSERT INTO other VALUES (1); DELETE FROM other`)
	require.NoError(t, err)
}

// The first stale write ends the old holder's lease.
func TestSealEndsTheLease(t *testing.T) {
	db, old, _ := openSealed(t)
	ctx := old.Context(t.Context())
	_, err := db.ExecContext(ctx, sealedWrites["insert"], 1, tokenctx.Arg)
	require.ErrorIs(t, err, tokenctx.ErrStale)
	<-ctx.Done()
	require.ErrorIs(t, old.Err(), lease.ErrLost)
}

// What the seal refuses for other reasons.
func TestSealRefusals(t *testing.T) {
	db, _, present := openSealed(t)
	other, err := lease.TryTake(t.Context(), db, "us", time.Minute, lease.WithoutRenewal())
	require.NoError(t, err)
	for _, tt := range []struct {
		name, sql string
		token     tokenctx.Token
		words     string
	}{
		{"another lease's token", sealedWrites["update"], other.Token(), "its token is not that of the lease"},
		{"moved", `UPDATE jobs SET region = 'us', last_token = $2 WHERE id = $1 AND last_token <= $2`, present.Token(), "move no row to another lease"},
		{"never taken", `INSERT INTO jobs (id, region, last_token) VALUES ($1, 'never', $2)`, present.Token(), "was never taken: take it with lease.Take"},
	} {
		_, err := db.ExecContext(tokenctx.With(t.Context(), tt.token), tt.sql, 1, tokenctx.Arg)
		var v *rewrite.Violation
		require.ErrorAs(t, err, &v, tt.name)
		require.Equal(t, rewrite.InvalidToken, v.Rule, tt.name)
		require.Equal(t, "jobs", v.Table)
		require.ErrorContains(t, err, tt.words)
		require.True(t, driver.NotApplied(err))
	}
}
