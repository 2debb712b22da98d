package migrations_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/fencetest"
	"github.com/fencerow/fencerow/internal/localpg"
)

// taken is what fencing.take returned.
type taken struct {
	Token     *int64
	HeldBy    *string
	Remaining time.Duration
}

func take(t *testing.T, conn *pgx.Conn, resource, ttl, holder string) taken {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT * FROM fencing.take($1, $2::text::interval, $3)", resource, ttl, holder)
	require.NoError(t, err)
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[taken])
	require.NoError(t, err)
	return got
}

// counting is an installed database whose tokens begin at 1: those of a copy
// jump far ahead first.
func counting(t *testing.T) string {
	dsn := localpg.Database(t, installed)
	exec(t, open(t, dsn), "SELECT fencing.next_token(); SELECT setval('fencing.write_epoch', 1, false); UPDATE fencing.incarnation SET floor = 0")
	return dsn
}

// The functions as a client in another language calls them.
func TestLease(t *testing.T) {
	conn := open(t, counting(t))
	first := take(t, conn, "r", "1 min", "a")
	require.Equal(t, int64(1), *first.Token)
	require.Equal(t, "a", *first.HeldBy)
	require.Equal(t, time.Minute, first.Remaining)
	for _, holder := range []string{"a", "b"} {
		held := take(t, conn, "r", "1 min", holder)
		require.Nil(t, held.Token)
		require.Equal(t, "a", *held.HeldBy)
		require.InDelta(t, time.Minute, held.Remaining, float64(30*time.Second))
	}
	require.False(t, get[bool](t, conn, "SELECT fencing.renew('r', 2, '1 h')"))
	require.True(t, get[bool](t, conn, "SELECT fencing.renew('s', 1, '1 h') IS NULL AND fencing.release('s', 1) IS NULL"), "there is no such lease")
	require.False(t, get[bool](t, conn, "SELECT fencing.release('r', 2)"))
	require.False(t, get[bool](t, conn, "SELECT fencing.release('r', NULL)"))
	require.True(t, get[bool](t, conn, "SELECT fencing.renew('r', 1, '1 h')"))
	require.True(t, get[bool](t, conn, "SELECT expires_at > clock_timestamp() + interval '50 min' FROM fencing.lease"))

	require.True(t, get[bool](t, conn, "SELECT fencing.release('r', 1)"))
	require.False(t, get[bool](t, conn, "SELECT fencing.release('r', 1)"))
	require.False(t, get[bool](t, conn, "SELECT fencing.renew('r', 1, '1 h')"))
	require.True(t, get[bool](t, conn, "SELECT holder IS NULL AND token = 1 FROM fencing.lease"), "the row stays")
	require.Equal(t, int64(3), *take(t, conn, "r", "1 min", "b").Token, "it draws two where there is a row, and none when it is refused")
}

// Expired leases are nobody's, by the clock and not by the transaction's time.
func TestLeaseExpires(t *testing.T) {
	conn := open(t, counting(t))
	exec(t, conn, "BEGIN")
	require.Equal(t, int64(1), *take(t, conn, "r", "1 ms", "a").Token)
	exec(t, conn, "SELECT pg_sleep(0.002)")
	require.False(t, get[bool](t, conn, "SELECT fencing.renew('r', 1, '1 h')"))
	require.False(t, get[bool](t, conn, "SELECT fencing.release('r', 1)"))
	require.Equal(t, int64(3), *take(t, conn, "r", "1 min", "b").Token)
	exec(t, conn, "ROLLBACK")
	require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM fencing.lease"))
	require.Equal(t, int64(4), *take(t, conn, "r", "1 min", "c").Token, "rolled back, a gap is all that is left")
}

func TestLeaseBounds(t *testing.T) {
	conn := open(t, counting(t))
	ttls := []string{"NULL", "'0'", "'-1 s'", "'24 h 1 us'", "'1 mon'", "'1 day 1 h'"}
	if major(t, conn) >= 17 {
		ttls = append(ttls, "'infinity'", "'-infinity'")
	}
	for _, ttl := range ttls {
		for _, call := range []string{"fencing.take('r', " + ttl + ", 'h')", "fencing.renew('r', 1, " + ttl + ")"} {
			_, err := conn.Exec(t.Context(), "SELECT "+call)
			requireHint(t, err, "22023", "a lease can't last", "above 0 and up to 24 hours")
		}
	}
	for _, name := range []string{"NULL", "''", "repeat('x', 256)"} {
		for _, call := range []string{"fencing.take(" + name + ", '1 s', 'h')", "fencing.take('r', '1 s', " + name + ")"} {
			_, err := conn.Exec(t.Context(), "SELECT "+call)
			requireHint(t, err, "22023", "a lease needs a resource and a holder", "1 to 255 characters")
		}
	}
	require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM fencing.lease"))
	// the longest, also where a day has 23 hours
	exec(t, conn, "SET TimeZone = 'Europe/Berlin'")
	require.Equal(t, 24*time.Hour, take(t, conn, strings.Repeat("é", 255), "1 day", strings.Repeat("é", 255)).Remaining)
}

// A release is notified, and nothing else is.
func TestLeaseNotifies(t *testing.T) {
	dsn := counting(t)
	conn, listener := open(t, dsn), open(t, dsn)
	exec(t, listener, "LISTEN fencerow_lease")
	token := *take(t, conn, "quiet", "1 ms", "a").Token
	exec(t, conn, "SELECT pg_sleep(0.002)")
	require.False(t, get[bool](t, conn, "SELECT fencing.release('quiet', $1)", token))
	token = *take(t, conn, "it's", "1 min", "a").Token
	require.True(t, get[bool](t, conn, "SELECT fencing.release($1, $2)", "it's", token))
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	n, err := listener.WaitForNotification(ctx)
	require.NoError(t, err)
	require.Equal(t, "it's", n.Payload)
}

// One who takes in a transaction that isn't over holds up the others, who are
// then told what has come of it.
func TestLeaseInATransaction(t *testing.T) {
	for end, held := range map[string]bool{"COMMIT": true, "ROLLBACK": false} {
		t.Run(end, func(t *testing.T) {
			dsn := counting(t)
			slow, watch := open(t, dsn), open(t, dsn)
			exec(t, slow, "BEGIN")
			require.Equal(t, int64(1), *take(t, slow, "r", "1 min", "slow").Token)
			got := make(chan taken)
			other := open(t, dsn)
			go func() { got <- take(t, other, "r", "1 min", "other") }()
			fencetest.Eventually(t, func() bool {
				return get[bool](t, watch, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND pid = $1)", other.PgConn().PID())
			})
			exec(t, slow, end)
			result := <-got
			require.Equal(t, held, result.Token == nil)
			if held {
				require.Equal(t, "slow", *result.HeldBy)
			}
		})
	}
}
