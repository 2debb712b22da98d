package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A take-over that waits for a paused writer keeps nobody else from drawing
// tokens or from taking other leases, also where its token is the first one after
// a restore, a promotion or, on some managed servers, a restart.
func TestSealTakeOverKeepsNobodyFromDrawing(t *testing.T) {
	dsn, conn := sealed(t, "enforce", fixed)
	writer, taker := open(t, dsn), open(t, dsn)
	exec(t, conn, "DELETE FROM fencing.incarnation; SET lock_timeout = '5s'")
	exec(t, writer, "BEGIN; UPDATE t SET last_token = 60 WHERE id = 1")
	done := later(taker, retake)
	requireBlocked(t, conn, taker)
	drawn := get[int64](t, conn, "SELECT fencing.next_token()")
	exec(t, conn, "SELECT fencing.take('another', '1 min', 'h')")
	exec(t, writer, "COMMIT")
	require.NoError(t, <-done)
	require.Greater(t, get[int64](t, conn, "SELECT token FROM fencing.lease WHERE resource = 'r'"), drawn)
	require.Equal(t, int64(16), get[int64](t, conn, "SELECT count(*) FROM fencing.epoch e JOIN fencing.lease l USING (resource, token) WHERE resource = 'r'"))
}

// A row that names no lease is not told to take one.
func TestSealOfNoName(t *testing.T) {
	_, conn := sealed(t, "enforce", byColumn)
	for _, name := range []string{"NULL", "''", "repeat('x', 256)"} {
		for _, isolation := range isolations {
			_, err := try(t, conn, "SET TRANSACTION ISOLATION LEVEL "+isolation+"; INSERT INTO t VALUES (9, "+name+", '', 60)")
			require.Equal(t, "FN002 ~fencing_zseal 60 -", refusal(t, err))
			require.ErrorContains(t, err, "res on INSERT of public.t names no lease: give it the name of one", name)
		}
	}
}

// A lease's tokens come from fencing.write_epoch, so of a table whose tokens are
// bounded by another sequence the wall refuses the rightful holder's too.
func TestSealOfATableWithAnotherSequence(t *testing.T) {
	_, conn := sealed(t, "enforce", fixed)
	exec(t, conn, `CREATE SEQUENCE mine; SELECT nextval('mine'); CREATE TABLE o (id int PRIMARY KEY);
		SELECT fencing.register('o', 'lease', issued_by => 'mine'), fencing.wall('o')`)
	_, err := conn.Exec(t.Context(), "SELECT fencing.seal('o', 'r')")
	if err == nil {
		_, err = try(t, conn, "INSERT INTO o VALUES (1, 60)") // the holder's token
		require.NoError(t, err)
	}
	requireHint(t, err, "55000", "issued_by")
}
