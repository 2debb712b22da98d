package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// A default, a check or a view may call what writes over another connection, where
// there is no routine at all.
func TestExpressionsWithoutRoutines(t *testing.T) {
	const alone = `CREATE EXTENSION dblink; DROP FUNCTION name_of; DROP FUNCTION purge; DROP FUNCTION run; DROP FUNCTION run_on; DROP FUNCTION run_two; `
	for name, c := range map[string]bodyCase{
		"a default": {`CREATE TABLE d (i int, j text DEFAULT dblink_exec('host=a', 'UPDATE orders SET v = ''HIT'''))`, `INSERT INTO d (i) VALUES (1)`},
		"pieces":    {`CREATE TABLE d (i int, j text DEFAULT dblink_exec('host=a', 'UPDATE ord' || 'ers SET v = ''HIT'''))`, `INSERT INTO d (i) VALUES (1)`},
		"DO":        {`CREATE TABLE d (i int, j text DEFAULT dblink_exec('host=a', 'DO $d$ BEGIN EXECUTE ''UPDATE ord'' || ''ers SET v = 1''; END $d$'))`, `INSERT INTO d (i) VALUES (1)`},
		"a check":   {`CREATE TABLE d (i int CHECK (dblink_exec('host=a', 'UPDATE orders SET v = ''HIT''') <> ''))`, `INSERT INTO d (i) VALUES (1)`},
		"a view":    {`CREATE VIEW d AS SELECT dblink_exec('host=a', 'UPDATE orders SET v = ''HIT''')`, `SELECT * FROM d`},
		"dblink":    {`CREATE VIEW d AS SELECT * FROM dblink('host=a', 'UPDATE orders SET v = ''HIT'' RETURNING 1') x (i int)`, `SELECT * FROM d`},
		"renamed":   {`CREATE FUNCTION other(text, text) RETURNS text LANGUAGE c AS '$libdir/dblink', 'dblink_exec'; CREATE TABLE d (i int, j text DEFAULT other('host=a', 'UPDATE orders SET v = ''HIT'''))`, `INSERT INTO d (i) VALUES (1)`},
	} {
		t.Run(name, func(t *testing.T) {
			db, plain := openTexts(t, alone+c.setup)
			_, err := db.ExecContext(t.Context(), c.use)
			requireRefused(t, err, rewrite.IndirectWrite)
			_, err = plain.Exec(t.Context(), c.use)
			require.ErrorContains(t, err, "could not establish connection", "it does connect")
		})
	}
	requireBodiesAllowed(t, alone, map[string]bodyCase{
		"another default": {`CREATE TABLE d (i int, j text DEFAULT md5('orders'))`, `INSERT INTO d (i) VALUES (1)`},
		"beside":          {`CREATE TABLE d (i int, j text DEFAULT dblink_exec('host=a', 'UPDATE orders SET v = ''HIT'''))`, `INSERT INTO plain VALUES (1)`},
	})
}
