package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A text says whether it may change what a closure is read from.
func TestChangesCatalog(t *testing.T) {
	p := casesPolicy(t, Strict)
	for sql, want := range map[string]bool{
		`SELECT 1`: false, `SELECT 1 FROM protected_rows`: false, `UPDATE protected_rows SET value = 1`: false, `BEGIN`: false, `SET work_mem = '8MB'`: false,
		`TRUNCATE users`: false, `COPY users FROM STDIN`: false, `CALL p()`: false, `ANALYZE users`: false, `CREATE TEMP TABLE x AS SELECT 1`: false,
		`CREATE VIEW v AS SELECT 1`: true, `CREATE TABLE x (id int)`: true, `ALTER TABLE users ADD a int`: true, `DROP FUNCTION f()`: true, `DO $$ BEGIN END $$`: true,
		`CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`: true, `SELECT 1; CREATE TRIGGER t BEFORE UPDATE ON users EXECUTE FUNCTION f()`: true,
		`ALTER TABLE protected_rows ADD a int`: true, `CREATE RULE r AS ON INSERT TO users DO ALSO NOTIFY x`: true, `ALTER FUNCTION f() SECURITY DEFINER`: true,
	} {
		require.Equal(t, want, p.Plan(sql).ChangesCatalog, sql)
	}
}
