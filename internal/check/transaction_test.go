package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndsTransaction(t *testing.T) {
	for sql, want := range map[string]bool{
		`COMMIT`: true, `commit;`: true, `COMMIT WORK`: true, `COMMIT AND CHAIN`: true, `COMMIT AND NO CHAIN`: true,
		`END`: true, `END TRANSACTION AND CHAIN`: true, `ABORT`: true, `ROLLBACK`: true, `Rollback Work And Chain`: true,
		`PREPARE TRANSACTION 'x'`: true, `/* a */COMMIT--b`: true, `SELECT 1; COMMIT; BEGIN`: true, "SELECT 1;\n\tend ;": true,
		`COMMIT; SELECT CASE WHEN`: true, `COMMIT PREPARED 'x'`: true,
		strings.Repeat(`SELECT 1;`, 100) + `COMMIT`: true,

		``: false, `BEGIN`: false, `SAVEPOINT a`: false, `ROLLBACK TO a`: false, `ROLLBACK WORK TO SAVEPOINT a`: false, `RELEASE a`: false,
		`SELECT CASE WHEN true THEN 1 END`: false, `SELECT 'COMMIT'`: false, `SELECT "commit" FROM t`: false, `SELECT 1 -- COMMIT`: false,
		`SELECT commit_id, weekend FROM t`: false, `PREPARE p AS SELECT 1`: false, `INSERT INTO t VALUES ('; COMMIT; ')`: false,
		`CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END`: false, `SELECT $$ ; COMMIT; $$`: false,
	} {
		require.Equal(t, want, EndsTransaction(sql), sql)
	}
}
