package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// A token column that is dropped and added again has forgotten the tokens, and
// an older holder must not write because of it, whatever is run to mend the wall.
func TestTokenColumnDroppedAndAdded(t *testing.T) {
	const change = "ALTER TABLE t DROP COLUMN last_token CASCADE; ALTER TABLE t ADD COLUMN last_token bigint NOT NULL DEFAULT 0"
	for name, setup := range map[string]string{
		"lease":       "SELECT fencing.register('t', 'lease'), fencing.wall('t', 'attested'), fencing.tombstones('t')",
		"strict":      "SELECT fencing.register('t', 'strict'), fencing.wall('t')",
		"no sequence": "SELECT fencing.register('t', 'lease', issued_by => NULL), fencing.wall('t')",
		"partitioned": "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE t1 PARTITION OF t DEFAULT; SELECT fencing.register('t', 'lease'), fencing.wall('t')",
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "SELECT setval('fencing.write_epoch', 60); CREATE TABLE t (id int PRIMARY KEY, v text);"+setup)
			exec(t, conn, "SET fencing.token = '60'; INSERT INTO t VALUES (1, 'new', 60); RESET fencing.token")
			exec(t, conn, change)
			for _, mends := range []string{"fencing.wall('t')", "fencing.wall('t', 'attested')", "fencing.register('t', 'strict', issued_by => 'fencing.write_epoch', resource => 'r')"} {
				_, err := conn.Exec(t.Context(), "SELECT "+mends)
				requireHint(t, err, "55000", "as after the token column was dropped", "fencing.confirm_columns", "D202")
			}
			left := advise(t, dsn)
			if name == "no sequence" {
				require.Contains(t, codes(left, "error"), "D202 trigger-missing")
				exec(t, conn, "BEGIN; SELECT fencing.wall('t', 'off'); UPDATE t SET last_token = 60; SELECT fencing.confirm_columns('t', 'token'), fencing.wall('t'); COMMIT")
			}
			require.Empty(t, codes(advise(t, dsn), "error"))
			_, err := conn.Exec(t.Context(), "BEGIN; SET LOCAL fencing.token = '59'; UPDATE t SET v = 'stale', last_token = 59 WHERE id = 1; COMMIT")
			requireRefused(t, err, "FN001")
			exec(t, conn, "ROLLBACK")
			require.Equal(t, "new", get[string](t, conn, "SELECT v FROM t"))
		})
	}
}
