package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A table may be called "order": ORDER BY in a body isn't its name.
func TestOrderByInBodies(t *testing.T) {
	p, err := NewPolicy(Table{Name: "order", Mode: Lease})
	require.NoError(t, err)
	for _, sql := range []string{
		`DO $$ BEGIN PERFORM a FROM b ORDER BY a; END $$`, `CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT a FROM b order /* x */ by a'`,
	} {
		require.NoError(t, p.Plan(sql).Refusal(), sql)
	}
	for _, sql := range []string{
		`DO $$ BEGIN DELETE FROM "order"; END $$`, `DO $$ BEGIN DELETE FROM public.order; END $$`, `DO $$ BEGIN UPDATE public.order by SET n = 1; END $$`,
		`DO $$ BEGIN DELETE FROM "order" by; END $$`, `DO $$ BEGIN PERFORM a FROM b ORDER BY a; UPDATE "order" SET n = 1; END $$`, `CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'INSERT INTO public.order VALUES (1)'`,
	} {
		requireRule(t, HiddenCode, p.Plan(sql).Refusal(), sql)
	}
}
