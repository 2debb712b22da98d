package migrations_test

import (
	"strings"
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
			errors := codes(diagnose(t, dsn), "error")
			require.NotContains(t, errors, "D204 trigger-function")
			require.Contains(t, errors, "D301 sequence-missing")
			require.NotContains(t, errors, "D001 schema-broken")

			advise(t, dsn)
			if strings.HasPrefix(tt.setup, own) {
				require.Contains(t, said(diagnose(t, dsn), "D301 sequence-missing"), "t", "no other sequence is taken for it")
				exec(t, conn, "CREATE SEQUENCE tokens; SELECT setval('tokens', 50)")
				advise(t, dsn)
				if get[bool](t, conn, "SELECT issued_by::regclass::text <> 'tokens' FROM fencing.registry") { // a table without a wall doesn't say which it was
					require.Equal(t, "off", get[string](t, conn, "SELECT wall_level FROM fencing.registry"))
					exec(t, conn, "SELECT fencing.register('t', 'lease', issued_by => 'tokens')")
				}
			}
			exec(t, conn, "SELECT fencing.wall('t')")
			_, err = conn.Exec(t.Context(), "INSERT INTO t VALUES (7, 'forged', 9223372036854775806)")
			requireRefused(t, err, "FN003")
		})
	}
}

// The doctor doesn't bind a table to another sequence than the one that its
// tokens came from, wherever it says how to register it.
func TestSequenceGoneAndMadeAgain(t *testing.T) {
	t.Parallel()
	const gone, again = "DROP SEQUENCE locks.\"it's\";", "CREATE SEQUENCE locks.\"it's\"; SELECT setval('locks.\"it''s\"', 50);"
	for name, tt := range map[string]struct {
		sql    string
		advice bool // the remedy is a statement
	}{
		"made again":                    {gone + again, true},
		"restored with its table":       {"DROP TABLE t;" + gone + again + "CREATE TABLE t (id int PRIMARY KEY, last_token bigint NOT NULL DEFAULT 0)", false},
		"gone":                          {gone, false},
		"another relation has the name": {gone + `CREATE VIEW locks."it's" AS SELECT 1`, false},
		"without a wall":                {"SELECT fencing.wall('t', 'off');" + gone + again, false},
		"renamed table":                 {gone + again + "ALTER TABLE t RENAME TO u", true},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := localpg.Database(t, installed)
			conn := open(t, dsn)
			exec(t, conn, "CREATE SCHEMA locks; CREATE TABLE t (id int PRIMARY KEY); SELECT fencing.next_token();"+again+
				`SELECT fencing.register('t', 'lease', issued_by => 'locks."it''s"'), fencing.wall('t')`)
			exec(t, conn, tt.sql)
			left := advise(t, dsn)
			require.Zero(t, get[int64](t, conn, "SELECT count(*) FROM fencing.registry WHERE issued_by = 'fencing.write_epoch'::regclass"), "%v", left)
			if tt.advice {
				require.Empty(t, codes(left, "error"), "%v", left)
				require.Equal(t, int64(1), get[int64](t, conn, `SELECT count(*) FROM fencing.registry WHERE issued_by = 'locks."it''s"'::regclass`))
			} else {
				require.NotEmpty(t, codes(left, "error", "warning"), "%v", left)
			}
		})
	}
}
