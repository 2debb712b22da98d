package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A redacted text has nothing in it that may be somebody's data.
func TestRedact(t *testing.T) {
	for sql, want := range map[string]string{
		"UPDATE orders -- of 'Ann'\n\tSET status = 'a  secret', n = 4.5 /* x */ WHERE id = $1": "UPDATE orders SET status = ?, n = ? WHERE id = $1",
		`SELECT U&'\0061 secret', $a$ secret $a$, x'4711' FROM "Order Items"`:                  `SELECT ?, ?, ? FROM "Order Items"`,
		"SELECT \"\x1b[31m\"":      `SELECT " [31m"`,
		`SELECT 'a secret`:         "",
		"SELECT 1 \x00 'a secret'": "",
		"SELECT 'a secret \xff'":   "",
		"":                         "",
	} {
		require.Equal(t, want, Redact(sql), "%.40q", sql)
	}
}
