package rewrite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Which of a variable and a column a function's name stands for isn't changed by what is
// checked.
func TestVariableConflict(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Strict})
	require.NoError(t, err)
	for _, sql := range []string{
		`SET plpgsql.variable_conflict = 'use_column'`, `RESET plpgsql.variable_conflict`, `SET plpgsql.variable_conflict TO DEFAULT`, `SET "PLPGSQL"."VARIABLE_CONFLICT" = 'use_column'`, `SELECT set_config('plpgsql.variable_conflict', 'use_column', true)`,
		`SELECT set_config('plpgsql.variable_conflict', $1, true)`, `SELECT set_config('plpgsql.' || $1, 'use_column', true)`, `ALTER ROLE app SET plpgsql.variable_conflict = 'use_column'`, `ALTER DATABASE app SET plpgsql.variable_conflict = 'use_column'`,
		`ALTER FUNCTION f() SET plpgsql.variable_conflict = 'use_column'`, `CREATE FUNCTION f() RETURNS int LANGUAGE sql SET plpgsql.variable_conflict = 'use_column' AS 'SELECT 1'`,
		`DO $$ BEGIN SET plpgsql.variable_conflict = 'use_column'; END $$`,
	} {
		require.ErrorIs(t, p.Plan(sql).Refusal(), ErrRefused, sql)
	}
	for _, sql := range []string{`SET plpgsql.variable_conflict = 'error'`, `SET LOCAL plpgsql.variable_conflict TO use_variable`, `SET plpgsql.extra_warnings = 'all'`, `SELECT set_config('app.' || $1, 'x', true)`} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
}

// Code isn't made a member of an extension, since what extensions bring along isn't read.
func TestMembersOfExtensions(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Strict})
	require.NoError(t, err)
	for _, sql := range []string{`ALTER EXTENSION e ADD FUNCTION f(text)`, `ALTER EXTENSION e DROP FUNCTION f(text)`, `ALTER EXTENSION e ADD OPERATOR !@# (NONE, text)`, `ALTER EXTENSION e ADD CAST (text AS ty)`} {
		require.ErrorIs(t, p.Plan(sql).Refusal(), ErrRefused, sql)
	}
	require.NoError(t, p.Plan(`ALTER EXTENSION e ADD TABLE jobs`).Refusal())
}
