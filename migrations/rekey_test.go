package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// A primary key that becomes another keeps its tombstones where they can be read
// by it, and else nothing is taken for a tombstone's table until somebody says
// that they may go. What the doctor advises loses none.
func TestTombstonesOfAnotherKey(t *testing.T) {
	t.Parallel()
	const key = `ALTER TABLE t DROP CONSTRAINT t_pkey; `
	for name, tt := range map[string]struct{ change, insert string }{
		"in another order": {key + `ALTER TABLE t ADD PRIMARY KEY (b, a)`, "INSERT INTO t (a, b, last_token) VALUES (1, 2, 20)"},
		"renamed":          {`ALTER TABLE t RENAME a TO z`, "INSERT INTO t (z, b, last_token) VALUES (1, 2, 20)"},
		"wider": {`SELECT fencing.tombstones('t', false); DROP TRIGGER "~fencing_kept_key" ON t; ALTER TABLE t ALTER a TYPE bigint; SELECT fencing.tombstones('t')`,
			"INSERT INTO t (a, b, last_token) VALUES (1, 2, 20)"},
		"wider, in another order": {`SELECT fencing.tombstones('t', false); ` + key + `DROP TRIGGER "~fencing_kept_key" ON t; ALTER TABLE t ALTER a TYPE bigint; ALTER TABLE t ADD PRIMARY KEY (b, a); SELECT fencing.tombstones('t')`,
			"INSERT INTO t (a, b, last_token) VALUES (1, 2, 20)"},
		"off and on": {`SELECT fencing.tombstones('t', false); ` + key + `ALTER TABLE t ADD PRIMARY KEY (b, a); SELECT fencing.tombstones('t')`,
			"INSERT INTO t (a, b, last_token) VALUES (1, 2, 20)"},
		"fewer columns":            {key + `ALTER TABLE t ADD PRIMARY KEY (a)`, ""},
		"more columns":             {key + `ALTER TABLE t ADD PRIMARY KEY (a, b, c)`, ""},
		"other columns":            {key + `ALTER TABLE t ADD PRIMARY KEY (a, c)`, ""},
		"another type":             {key + `ALTER TABLE t DROP COLUMN a CASCADE; ALTER TABLE t ADD a uuid NOT NULL; ALTER TABLE t ADD PRIMARY KEY (a, b)`, ""},
		"off, on with another key": {`SELECT fencing.tombstones('t', false); ` + key + `ALTER TABLE t ADD PRIMARY KEY (a)`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, prepared(
				`CREATE TABLE t (a int, b int, c int DEFAULT 0, PRIMARY KEY (a, b)); SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t'); SELECT setval('fencing.write_epoch', 100);
				INSERT INTO t (a, b, last_token) VALUES (1, 2, 10), (2, 1, 10), (7, 7, 10); BEGIN; SET LOCAL fencing.token = '50'; DELETE FROM t WHERE a = 1; COMMIT; BEGIN; SET LOCAL fencing.token = '40'; DELETE FROM t WHERE a = 2; COMMIT; BEGIN; SET LOCAL fencing.token = '40'; DELETE FROM t; COMMIT`))
			conn := open(t, dsn)
			_, err := conn.Exec(t.Context(), "INSERT INTO t (a, b, last_token) VALUES (1, 2, 20)")
			requireRefused(t, err, "FN001", "deleted under token 50")
			exec(t, conn, tt.change)

			for _, f := range diagnose(t, dsn) {
				require.NotContains(t, f.Remedy, "false", "it would take the tombstones' triggers off: %v", f)
			}
			if tt.insert == "" {
				for _, sql := range []string{"SELECT fencing.tombstones('t')", "SELECT fencing.register('t', 'strict'), fencing.tombstones('t')"} {
					_, err := conn.Exec(t.Context(), sql)
					requireHint(t, err, "55000", "tombstones of another primary key, (a, b)", "SELECT fencing.prune_tombstones('public.t', 9223372036854775807)")
				}
				if get[bool](t, conn, "SELECT tombstones FROM fencing.registry") {
					errors := codes(diagnose(t, dsn), "error")
					require.Subset(t, []string{"D202 trigger-missing", "D204 trigger-function", "D205 trigger-changed"}, errors)
					require.NotEmpty(t, errors)
				}
				require.Equal(t, 3, get[int](t, conn, "SELECT count(*) FROM fencing.tombstone"))
				exec(t, conn, "SELECT fencing.prune_tombstones('t', 9223372036854775807); SELECT fencing.tombstones('t')")
				require.Empty(t, codes(diagnose(t, dsn), "error"))
				return
			}
			require.Empty(t, codes(advise(t, dsn), "error"))
			_, err = conn.Exec(t.Context(), tt.insert)
			requireRefused(t, err, "FN001", "deleted under token 50")
			require.Equal(t, 3, get[int](t, conn, "SELECT count(*) FROM fencing.tombstone"))
		})
	}
}

// Whoever may register a table has no way to the tombstones of another.
func TestTombstoneCopyLeavesOthersAlone(t *testing.T) {
	dsn := localpg.Database(t, installed)
	conn := open(t, dsn)
	exec(t, conn,
		`CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE mine (id int PRIMARY KEY); SELECT fencing.register(r, 'lease'), fencing.wall(r), fencing.tombstones(r) FROM (VALUES ('t'::regclass), ('mine')) v(r);
		SELECT setval('fencing.write_epoch', 100); INSERT INTO t VALUES (1, 10); BEGIN; SET LOCAL fencing.token = '50'; DELETE FROM t; COMMIT; SELECT fencing.unregister('t')`)
	role, roleDSN := newRole(t, dsn)
	exec(t, conn, "GRANT USAGE ON SCHEMA fencing TO "+role+"; GRANT EXECUTE ON FUNCTION fencing.tombstone_copy TO "+role)
	exec(t, open(t, roleDSN), "SELECT fencing.tombstone_copy('t', 'mine')")
	exec(t, conn, "SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t')")
	_, err := conn.Exec(t.Context(), "INSERT INTO t VALUES (1, 20)")
	requireRefused(t, err, "FN001", "deleted under token 50")
}
