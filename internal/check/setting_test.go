package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Code isn't made a member of an extension, since what extensions bring along isn't read.
func TestMembersOfExtensions(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Strict})
	require.NoError(t, err)
	for _, sql := range []string{`ALTER EXTENSION e ADD FUNCTION f(text)`, `ALTER EXTENSION e DROP FUNCTION f(text)`, `ALTER EXTENSION e ADD OPERATOR !@# (NONE, text)`, `ALTER EXTENSION e ADD CAST (text AS ty)`} {
		require.ErrorIs(t, p.Plan(sql).Refusal(), ErrRefused, sql)
	}
	require.NoError(t, p.Plan(`ALTER EXTENSION e ADD TABLE jobs`).Refusal())
}
