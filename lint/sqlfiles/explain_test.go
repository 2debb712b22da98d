package sqlfiles

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		refused          bool
	}{
		{"@name", "\nUPDATE orders SET a = @a", `UPDATE on protected table "orders" has no last_token guard (FR101 unguarded-update)
    2 | UPDATE orders SET a = @a
      |        ^^^^^^
  fix:  UPDATE orders SET a = @a, last_token = @token WHERE last_token <= @token
  docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR101.md, or fencerow explain FR101
`, true},
		{"a guard", "DELETE FROM orders WHERE last_token<=@token", `DELETE of protected table "orders": mode lease, token column last_token
  guard: last_token <= @token
  token: @token
`, false},
		{"?", "DELETE FROM orders WHERE last_token <= ?", `DELETE of protected table "orders": mode lease, token column last_token
  guard: last_token <= $1
  token: $1
`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, refused := Explain(ordersPolicy(t), tt.text)
			require.Equal(t, tt.want, text)
			require.Equal(t, tt.refused, refused)
		})
	}
	text, refused := Explain(ordersPolicy(t), "DELETE FROM orders WHERE a = 'x")
	require.True(t, refused)
	require.Contains(t, text, "FR901")
}
