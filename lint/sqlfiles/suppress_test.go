package sqlfiles

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

func TestSuppressions(t *testing.T) {
	const write = "UPDATE orders SET a = 1\n WHERE id = 2;\n"
	for _, tt := range []struct {
		name, text string
		want       []string
		suppressed int
		says       string // of rewrite.BadSuppression
	}{
		{"the line before", "-- fencerow:ignore FR101 once\n" + write, []string{}, 1, ""},
		{"before other comments", "-- fencerow:ignore FR101 once\n-- name: A :exec\n/* a\n b */\n" + write, []string{}, 1, ""},
		{"the end of the first line", "UPDATE orders SET a = 1 -- fencerow:ignore FR101 once\n WHERE id = 2;", []string{}, 1, ""},
		{"the end of the last line", "UPDATE orders SET a = 1\n WHERE id = 2; --fencerow:ignore FR101 once", []string{}, 1, ""},
		{"a line of its own inside", "UPDATE orders SET a = 1\n-- fencerow:ignore\tFR101 once\n WHERE id = 2;", []string{}, 1, ""},
		{"two rules", "-- fencerow:ignore FR101,FR111 once\nWITH d AS (DELETE FROM orders) UPDATE orders SET a = 1", []string{}, 2, ""},
		{"one rule of two", "-- fencerow:ignore FR111 once\nWITH d AS (DELETE FROM orders) UPDATE orders SET a = 1", []string{"2:39 FR101"}, 1, ""},
		{"the statement behind only", "-- fencerow:ignore FR101 once\n" + write + write, []string{"4:8 FR101"}, 1, ""},
		{"a blank line between", "-- fencerow:ignore FR101 once\n\n" + write, []string{"1:1 FR911", "3:8 FR101"}, 0, "hides nothing: take it out"},
		{"unknown rule", "-- fencerow:ignore FR999 once\n" + write, []string{"1:1 FR911", "2:8 FR101"}, 0, "a rule that there isn't (\"FR999\")"},
		{"a blank behind the comma", "-- fencerow:ignore FR101, FR111 once\n" + write, []string{"1:1 FR911"}, 1,
			"a comma with no rule behind it: write the rules without a blank between"},
		{"in lower case", "-- fencerow:ignore fr101: once\n" + write, []string{"1:1 FR911", "2:8 FR101"}, 0, "did you mean FR101?"},
		{"by its name", "-- fencerow:ignore unguarded-update once\n" + write, []string{"1:1 FR911", "2:8 FR101"}, 0, "did you mean FR101?"},
		{"no rule", "-- fencerow:ignore\n" + write, []string{"1:1 FR911", "2:8 FR101"}, 0, "names no rule"},
		{"no reason", "-- fencerow:ignore FR101\n" + write, []string{"1:1 FR911", "2:8 FR101"}, 0, "gives no reason"},
		{"unused", "-- fencerow:ignore FR101 once\nUPDATE x SET a = 1", []string{"1:1 FR911"}, 0, "hides nothing: take it out"},
		{"unused, one of two", "-- fencerow:ignore FR101,FR111 once\n" + write, []string{"1:1 FR911"}, 1, "suppression of FR111 hides nothing"},
		{"it doesn't hide itself", "-- fencerow:ignore FR911 once\nSELECT 1", []string{"1:1 FR911"}, 0, "hides nothing"},
		{"in a string", "SELECT '\n-- fencerow:ignore FR999';", []string{}, 0, ""},
		{"in a body", "-- +goose Up\n-- fencerow:ignore FR101 once\nDO $$ BEGIN\n UPDATE orders SET a = 1; END $$", []string{}, 1, ""},
		{"another word", "-- fencerow:ignored FR999\nSELECT 1", []string{}, 0, ""},
		{"in a migration, of what is none there", "-- fencerow:ignore FR201 once\nALTER TABLE orders ADD b int;", []string{"1:1 FR911"}, 0, "hides nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := lintText(t, "a.sql", tt.text)
			require.Equal(t, tt.want, places(result.Findings))
			require.Equal(t, tt.suppressed, result.Suppressed)
			said := ""
			for _, f := range result.Findings {
				if f.Rule == rewrite.BadSuppression {
					said += f.Message
				}
			}
			require.Contains(t, said, tt.says)
			require.Equal(t, tt.says == "", said == "")
		})
	}
}
