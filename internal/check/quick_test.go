package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Comments before the first word don't keep a text from being cleared, nor do
// they hide what it is.
func TestFirstWord(t *testing.T) {
	p := casesPolicy(t, Strict)
	for sql, cleared := range map[string]bool{
		"-- name: Get :one\nSELECT 1":            true,
		"/* route='/x' */ SELECT * FROM others":  true,
		"/* a /* nested */ b */ SELECT 1":        true,
		"-- a\r\n -- b\n\t( /* c */ SELECT 1)":   true,
		"/*/ */ SELECT 1":                        true,
		"/* a /* */ SELECT 1":                    false, // doesn't end
		"/* a */ */ SELECT 1":                    false,
		"-- SELECT 1":                            false,
		"-- SELECT 1\rDROP TABLE others":         false,
		"/* SELECT */ DROP TABLE others":         false,
		"/* /* */ SELECT 1 */ DROP TABLE others": false,
		"-- protected_rows\nSELECT 1":            false,
		"/* a; */ SELECT 1":                      true,
		"SELECT 1 /* ; */ FROM others":           false,
	} {
		require.Equal(t, cleared, p.clears(sql), sql)
		if cleared {
			require.NoError(t, p.fullPlan(sql).Refusal(), sql)
		}
	}
}

// A session may have come to another encoding. A name of ASCII letters is the same
// in each, but others are not: where one is protected, a text with any is not
// cleared, which would let it by whatever the session's settings.
func TestClearedInAnyEncoding(t *testing.T) {
	for name, cleared := range map[string]bool{"orders": true, "町": false} {
		p, err := NewPolicy(Table{Name: name, Mode: Lease})
		require.NoError(t, err)
		require.Equal(t, cleared, p.Plan("UPDATE Į SET v = 1").Cleared, name)
		require.True(t, p.Plan("UPDATE others SET v = 1").Cleared, name)
		require.NoError(t, p.Plan("UPDATE Į SET v = 1").Refusal(), name)
	}
}

// Where the server folds letters beyond ASCII, a name with some is not taken at its
// word without quotes, in code that runs later neither.
func TestFoldedNamesInCode(t *testing.T) {
	p, err := NewPolicy(Table{Name: "orders", Mode: Lease})
	require.NoError(t, err)
	closure := Closure{Relatives: []Relative{{Name{"public", "orders_été"}, Name{"public", "orders"}}}}
	for folds, rule := range map[bool]Rule{false: "", true: HiddenCode} {
		closure.FoldsNames = folds
		p, err := p.WithClosure(closure)
		require.NoError(t, err)
		for _, sql := range []string{
			`DO $$ BEGIN UPDATE Orders_ÉTÉ SET status = 'x'; END $$`,
			`CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'UPDATE Orders_ÉTÉ SET status = 1'`,
		} {
			if err := p.Plan(sql).Refusal(); rule == "" {
				require.NoError(t, err, sql)
			} else {
				requireRule(t, rule, err, sql)
			}
		}
		require.NoError(t, p.Plan(`DO $$ BEGIN UPDATE others SET status = 'É'; END $$`).Refusal())
	}
}
