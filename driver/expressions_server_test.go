package driver_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// A default, a check or a view may call what writes over another connection, where
// there is no routine at all.
func TestExpressionsWithoutRoutines(t *testing.T) {
	const alone = textsSchema + `CREATE EXTENSION dblink; DROP FUNCTION name_of; DROP FUNCTION purge; DROP FUNCTION run;`
	const given = `CREATE FUNCTION other(text, text) RETURNS text LANGUAGE c AS '$libdir/dblink', 'dblink_exec'; CREATE TABLE d (i int, j text DEFAULT other('host=a', 'UPDATE orders SET v = ''HIT'''))`
	for _, cases := range []map[string]bodyCase{{
		"a default": {setup: `CREATE TABLE d (i int, j text DEFAULT dblink_exec('host=a', 'UPDATE orders SET v = ''HIT'''))`, use: `INSERT INTO @d (i) VALUES (1)`},
		"pieces":    {setup: `CREATE TABLE d (i int, j text DEFAULT dblink_exec('host=a', 'UPDATE ord' || 'ers SET v = ''HIT'''))`, use: `INSERT INTO @d (i) VALUES (1)`},
		"DO":        {setup: `CREATE TABLE d (i int, j text DEFAULT dblink_exec('host=a', 'DO $d$ BEGIN EXECUTE ''UPDATE ord'' || ''ers SET v = 1''; END $d$'))`, use: `INSERT INTO @d (i) VALUES (1)`},
		"a check":   {setup: `CREATE TABLE d (i int CHECK (dblink_exec('host=a', 'UPDATE orders SET v = ''HIT''') <> ''))`, use: `INSERT INTO @d (i) VALUES (1)`},
		"a view":    {setup: `CREATE VIEW d AS SELECT dblink_exec('host=a', 'UPDATE orders SET v = ''HIT''')`, use: `SELECT * FROM @d`},
		"dblink":    {setup: `CREATE VIEW d AS SELECT * FROM dblink('host=a', 'UPDATE orders SET v = ''HIT'' RETURNING 1') x (i int)`, use: `SELECT * FROM @d`},
	}, {
		"renamed": {setup: given, use: `INSERT INTO @d (i) VALUES (1)`},
	}} {
		db, plain := openBodies(t, alone, cases)
		for i, name := range slices.Sorted(maps.Keys(cases)) {
			statement := cases[name].statement(i)
			_, err := db.ExecContext(t.Context(), statement)
			requireRefused(t, err, rewrite.IndirectWrite)
			_, err = plain.Exec(t.Context(), statement)
			require.ErrorContains(t, err, "could not establish connection", "it does connect: %s", name)
		}
	}
	requireBodiesAllowed(t, alone, map[string]bodyCase{
		"another default": {setup: `CREATE TABLE d (i int, j text DEFAULT md5('orders'))`, use: `INSERT INTO @d (i) VALUES (1)`},
		"beside":          {setup: `CREATE TABLE d_2 (i int, j text DEFAULT dblink_exec('host=a', 'UPDATE orders SET v = ''HIT'''))`, use: `INSERT INTO plain VALUES (1)`},
	})
}
