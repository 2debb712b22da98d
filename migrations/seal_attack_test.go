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

// The seal goes by a column, and not by whatever has its name: what is called to
// mend the table refuses another one, until somebody says which it is to be.
func TestSealOfAnotherColumn(t *testing.T) {
	_, conn := sealed(t, "attested", byColumn)
	exec(t, conn, "SELECT fencing.wall('t', 'off'); ALTER TABLE t ADD other text NOT NULL DEFAULT 's'; SELECT fencing.wall('t', 'attested')")
	const again = "SELECT fencing.unseal('t'); SELECT fencing.seal('t', by_column => 'res')"
	for name, tt := range map[string]struct{ change, held, mend string }{
		"exchanged": {"ALTER TABLE t RENAME res TO x; ALTER TABLE t RENAME other TO res; ALTER TABLE t RENAME x TO other", "other", "SELECT fencing.seal('t', by_column => 'other')"},
		"exchanged, and a trigger gone": {`ALTER TABLE t RENAME res TO x; ALTER TABLE t RENAME other TO res; ALTER TABLE t RENAME x TO other; DROP TRIGGER "~fencing_zseal" ON t`, "other",
			"SELECT fencing.seal('t', by_column => 'other')"},
		"renamed back": {"ALTER TABLE t RENAME res TO x; ALTER TABLE t RENAME other TO res", "x",
			"ALTER TABLE t RENAME res TO other; ALTER TABLE t RENAME x TO res; SELECT fencing.seal('t', by_column => 'res')"},
		"dropped":     {"ALTER TABLE t DROP res CASCADE; ALTER TABLE t ADD res text NOT NULL DEFAULT 's'", "", again},
		"of a wall":   {"ALTER TABLE t DROP res CASCADE; ALTER TABLE t ADD res text NOT NULL DEFAULT 's'", "", again + "; SELECT fencing.wall('t', 'report')"},
		"another one": {"ALTER TABLE t RENAME res TO x", "", "SELECT fencing.seal('t', by_column => 'other')"},
	} {
		t.Run(name, func(t *testing.T) {
			exec(t, conn, "BEGIN; "+tt.change)
			defer exec(t, conn, "ROLLBACK")
			if name != "another one" {
				// of lease s, whose holder has token 70, by a row of lease r
				exec(t, conn, "SAVEPOINT s; SET LOCAL fencing.token = '70'; UPDATE t SET last_token = 70 WHERE id = 1; ROLLBACK TO s")
				for _, sql := range []string{"SELECT fencing.seal('t', by_column => 'res')", "SELECT fencing.wall('t')", "SELECT fencing.wall('t', 'report')", "SELECT fencing.register('t', 'lease', resource => 'q')"} {
					exec(t, conn, "SAVEPOINT s")
					_, err := conn.Exec(t.Context(), sql)
					requireHint(t, err, "55000", "public.t: column res, by which it is sealed, is another one than before", tt.held, "fencing.unseal('public.t'); SELECT fencing.seal('public.t', by_column => 'res')")
					exec(t, conn, "ROLLBACK TO s")
				}
			}
			exec(t, conn, tt.mend)
			exec(t, conn, "SELECT fencing.wall('t')")
		})
	}
	_, err := conn.Exec(t.Context(), "ALTER TABLE t DROP res")
	require.True(t, isState(err, "2BP01"), err)
}
