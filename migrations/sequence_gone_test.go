package migrations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

// Without the sequence that bounds the tokens nothing is made that would do
// without a bound, and the remedies bring the bound back.
func TestSequenceGone(t *testing.T) {
	t.Parallel()
	const own = `CREATE SEQUENCE tokens; SELECT setval('tokens', 50); ` +
		`SELECT fencing.register('t', 'lease', issued_by => 'tokens'), fencing.wall('t'), fencing.tombstones('t'); DROP SEQUENCE tokens;`
	for name, tt := range map[string]struct{ setup, call, state, words string }{
		"wall":              {own, "SELECT fencing.wall('t', 'attested')", "55000", "is gone"},
		"wall as it is":     {own, "SELECT fencing.wall('t')", "55000", "is gone"},
		"wall from off":     {own + "SELECT fencing.wall('t', 'off');", "SELECT fencing.wall('t')", "55000", "is gone"},
		"tombstones":        {own, "SELECT fencing.tombstones('t')", "55000", "is gone"},
		"tombstones afresh": {own + "SELECT fencing.tombstones('t', false);", "SELECT fencing.tombstones('t')", "55000", "is gone"},
		"another relation has its oid": {own + "UPDATE fencing.registry SET wall_level = 'off'; CREATE VIEW v AS SELECT 1; UPDATE fencing.registry SET issued_by = 'v';",
			"SELECT fencing.wall('t')", "55000", "is gone"},
		"fencing.write_epoch": {`SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t'); ` +
			`SELECT setval('fencing.write_epoch', 50); DROP SEQUENCE fencing.write_epoch CASCADE;`,
			"SELECT fencing.wall('t', 'attested')", "55000", "is gone"},
		"fencing.write_epoch, register": {`SELECT fencing.register('t', 'lease'), fencing.wall('t'), fencing.tombstones('t'); ` +
			`SELECT setval('fencing.write_epoch', 50); DROP SEQUENCE fencing.write_epoch CASCADE;`,
			"SELECT fencing.register('t', 'strict')", "42P01", "fencing.write_epoch"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "CREATE TABLE t (id int PRIMARY KEY, v text); SELECT fencing.next_token();"+tt.setup)
			_, err := conn.Exec(t.Context(), tt.call)
			requireRefused(t, err, tt.state, tt.words)
			require.NotContains(t, codes(diagnose(t, dsn), "error"), "D204 trigger-function")
			require.Contains(t, codes(diagnose(t, dsn), "error"), "D301 sequence-missing")
			require.NotContains(t, codes(diagnose(t, dsn), "error"), "D001 schema-broken")

			advise(t, dsn)
			exec(t, conn, "SELECT fencing.wall('t')")
			_, err = conn.Exec(t.Context(), "INSERT INTO t VALUES (7, 'forged', 9223372036854775806)")
			requireRefused(t, err, "FN003")
		})
	}
}
