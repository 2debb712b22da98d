package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// A table that inherits from fencing.epoch has no say in who holds a lease.
func TestSealReadsNoChildOfTheEpochs(t *testing.T) {
	for name, isolation := range map[string]string{"read committed": "READ COMMITTED", "repeatable read": "REPEATABLE READ"} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, `CREATE TABLE t (id int PRIMARY KEY, v text); SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.seal('t', 'L');
				SELECT fencing.next_token() FROM generate_series(1, 20); SELECT fencing.take('L', '1 h', 'old'); UPDATE fencing.lease SET expires_at = '-infinity'`)
			old := get[int64](t, conn, "SELECT token FROM fencing.lease")
			exec(t, conn, "SELECT fencing.take('L', '1 h', 'new'); CREATE TABLE k () INHERITS (fencing.epoch)")
			_, err := conn.Exec(t.Context(), "INSERT INTO k SELECT resource, stripe, $1 FROM ONLY fencing.epoch", old)
			require.NoError(t, err)
			exec(t, conn, "BEGIN ISOLATION LEVEL "+isolation+"; DELETE FROM ONLY fencing.epoch")
			_, err = conn.Exec(t.Context(), "INSERT INTO t VALUES (1, 'stale', $1)", old)
			requireRefused(t, err, "FN002", "none of lease 'L'")
			exec(t, conn, "ROLLBACK")
		})
	}
}
