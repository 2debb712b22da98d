package driver_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/driver"
	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/rewrite"
	"github.com/fencerow/fencerow/tokenctx"
)

func openTimeouts(t *testing.T, dsn string, idle, total time.Duration) *sql.DB {
	t.Helper()
	db, err := driver.Open(dsn, driver.Protect("orders", rewrite.Lease), driver.WithTransactionTimeouts(idle, total))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// show reads the settings, 0 for one that the server doesn't know.
func show(t *testing.T, q interface {
	QueryRow(string, ...any) *sql.Row
}) (values [2]string) {
	t.Helper()
	require.NoError(t, q.QueryRow(`SELECT max(setting) FILTER (WHERE name LIKE 'idle_%'), COALESCE(max(setting) FILTER (WHERE name LIKE 'tr%'), '0')
		FROM pg_settings WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')`).Scan(&values[0], &values[1]))
	return values
}

// BEGIN carries the timeouts along with a token, and they end with the
// transaction.
func TestTimeoutsGoWithBegin(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	plain := openPlain(t, dsn)
	var knows bool
	require.NoError(t, plain.QueryRow(`SELECT count(*) > 0 FROM pg_settings WHERE name = 'transaction_timeout'`).Scan(&knows))
	total := map[bool]string{false: "0", true: "90000"}[knows]
	for name, test := range map[string]struct {
		idle, total time.Duration
		want        [2]string
	}{
		"neither": {0, 0, [2]string{"0", "0"}},
		"idle":    {1500 * time.Millisecond, 0, [2]string{"1500", "0"}},
		"total":   {0, 90 * time.Second, [2]string{"0", total}},
		"both":    {time.Minute, 90 * time.Second, [2]string{"60000", total}},
	} {
		t.Run(name, func(t *testing.T) {
			db := openTimeouts(t, dsn, test.idle, test.total)
			db.SetMaxOpenConns(1)
			tx, err := db.BeginTx(tokenctx.With(t.Context(), 7), nil)
			require.NoError(t, err)
			require.Equal(t, test.want, show(t, tx))
			require.NoError(t, tx.Commit())
			require.Equal(t, [2]string{"0", "0"}, show(t, db))

			tx, err = db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, [2]string{"0", "0"}, show(t, tx), "without a token")
			require.NoError(t, tx.Rollback())
		})
	}
}

// The server ends the transaction of a holder that pauses in it, so that the
// next one gets at the row.
func TestTimeoutEndsAPausedHolder(t *testing.T) {
	dsn := localpg.Database(t)
	run(t, dsn, levelSchema)
	for name, test := range map[string]struct{ idle, total time.Duration }{
		"idle":  {200 * time.Millisecond, 0},
		"total": {0, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			db := openTimeouts(t, dsn, test.idle, test.total)
			var knows bool
			require.NoError(t, db.QueryRow(`SELECT $1 = 0 OR current_setting('server_version_num')::int >= 170000`, int64(test.total)).Scan(&knows))
			if !knows {
				return // nothing would end it
			}
			paused, err := db.BeginTx(tokenctx.With(t.Context(), 7), nil)
			require.NoError(t, err)
			defer paused.Rollback()
			_, err = paused.Exec(writeOrder, tokenctx.Arg)
			require.NoError(t, err)

			_, err = db.ExecContext(tokenctx.With(t.Context(), 8), writeOrder, tokenctx.Arg) // waits for the end of the other
			require.NoError(t, err)
			_, err = paused.Exec(writeOrder, tokenctx.Arg)
			require.Error(t, err)
			require.Error(t, paused.Commit())
			var current int64
			require.NoError(t, db.QueryRow(`SELECT last_token FROM orders WHERE id = 1`).Scan(&current))
			require.EqualValues(t, 8, current)
			run(t, dsn, `UPDATE orders SET last_token = 0`)
		})
	}
}

func TestTimeoutsAreChecked(t *testing.T) {
	for _, d := range [][2]time.Duration{{-1, 0}, {0, -1}, {time.Microsecond, 0}, {0, 25 * 24 * time.Hour}} {
		_, err := driver.Open("", driver.Protect("orders", rewrite.Lease), driver.WithTransactionTimeouts(d[0], d[1]))
		require.ErrorContains(t, err, "give a millisecond to 596h0m0s, or 0 for the server's own")
	}
}
