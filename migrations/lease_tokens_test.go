package migrations_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tokens of a lease rise although the sequence was set back, as by a restore
// of rows alone: a paused holder's is never given out again. The control is a
// sequence that nobody compares with anything.
func TestTokensOfALeaseRise(t *testing.T) {
	const first = "SELECT token FROM fencing.take('L', '1 h', 'first')"
	for name, setBack := range map[string]string{
		"setval":                 "SELECT setval('fencing.write_epoch', 2)",
		"restart":                "ALTER SEQUENCE fencing.write_epoch RESTART",
		"setval, no lease":       "DELETE FROM fencing.lease; SELECT setval('fencing.write_epoch', 2)",
		"setval, no epoch":       "DELETE FROM fencing.epoch; SELECT setval('fencing.write_epoch', 2)",
		"doctor's remedies":      "SELECT setval('fencing.write_epoch', 2); SELECT token FROM fencing.take('other', '1 h', 'other')",
		"an epoch above a token": "UPDATE fencing.epoch SET token = 1000 WHERE resource = 'L'",
	} {
		t.Run(name, func(t *testing.T) {
			dsn := counting(t)
			conn := open(t, dsn)
			exec(t, conn, `CREATE TABLE orders (id int PRIMARY KEY, v text); SELECT fencing.register('orders', 'lease'), fencing.wall('orders', 'attested');
				SELECT fencing.tombstones('orders'), fencing.seal('orders', 'L'), setval('fencing.write_epoch', 9)`)
			stale := get[int64](t, conn, first)
			write := func(token int64) error {
				_, err := conn.Exec(t.Context(), `DO $$ BEGIN PERFORM set_config('fencing.token', '`+decimal(token)+`', true);
					INSERT INTO orders VALUES (1, 'v', `+decimal(token)+`) ON CONFLICT (id) DO UPDATE SET v = 'v', last_token = EXCLUDED.last_token; END $$`)
				return err
			}
			require.NoError(t, write(stale))
			exec(t, conn, "SELECT fencing.release('L', "+decimal(stale)+"); CREATE SEQUENCE bare; SELECT setval('bare', "+decimal(stale)+"); SELECT setval('bare', 2)")
			exec(t, conn, setBack)
			require.LessOrEqual(t, get[int64](t, conn, "SELECT nextval('bare')"), stale, "the control shows nothing")
			if name == "doctor's remedies" {
				require.Contains(t, codes(diagnose(t, dsn), "error"), "D307 sequence-behind")
				advise(t, dsn)
				require.NotContains(t, codes(diagnose(t, dsn), "error"), "D307 sequence-behind")
			}
			last := stale
			for range 10 {
				taken := take(t, conn, "L", "1 h", "next")
				require.NotNil(t, taken.Token)
				require.Greater(t, *taken.Token, last)
				last = *taken.Token
				require.NoError(t, write(last))
				require.Error(t, write(stale), "the first holder's")
				require.True(t, get[bool](t, conn, "SELECT fencing.release('L', $1)", last))
			}
		})
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Where no larger token can be drawn, or sessions keep tokens back, the lease is
// not handed on.
func TestNoSmallerTokenOfALease(t *testing.T) {
	dsn := counting(t)
	conn, other := open(t, dsn), open(t, dsn)
	exec(t, conn, "ALTER SEQUENCE fencing.write_epoch CACHE 20; SELECT fencing.next_token()")
	exec(t, other, "SELECT fencing.next_token(); SELECT fencing.take('L', '1 h', 'first'); UPDATE fencing.lease SET expires_at = '-infinity'")
	_, err := conn.Exec(t.Context(), "SELECT fencing.take('L', '1 h', 'next')")
	requireHint(t, err, "55000", "the one that was drawn is not larger", "CACHE", "D302")
	exec(t, conn, "ALTER SEQUENCE fencing.write_epoch CACHE 1; SELECT fencing.take('L', '1 h', 'next')")

	exec(t, conn, "UPDATE fencing.lease SET expires_at = '-infinity'; UPDATE fencing.epoch SET token = 9223372036854775807 WHERE stripe = 3")
	_, err = conn.Exec(t.Context(), "SELECT fencing.take('L', '1 h', 'next')")
	requireHint(t, err, "55000", "the one that was drawn is not larger", "forged", "D221")
	advise(t, dsn)
	require.NotNil(t, take(t, conn, "L", "1 h", "next").Token)
}
