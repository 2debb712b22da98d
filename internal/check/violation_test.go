package check

import (
	"context"
	"database/sql/driver"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/tokenctx"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Messages are read by people: each kind stands in testdata/messages.golden as
// it is shown.
func TestMessages(t *testing.T) {
	p := casesPolicy(t, Strict)
	texts := []string{
		`UPDATE protected_rows SET value = $1 WHERE id = $2`,
		`UPDATE protected_rows SET value = 'a secret', grp = 4711 WHERE id = 12`,
		"UPDATE\n\tprotected_rows -- a comment\n   SET value = $1\n WHERE id = $2",
		`UPDATE "Order Items" SET "Qty" = 1 WHERE fence::text < '9'`,
		`UPDATE protected_rows p SET value = 'x' FROM jobs j WHERE j.id = p.id AND last_token < $1`,
		`UPDATE protected_rows SET value = U&'\0061 secret' WHERE id = 1 OR last_token < $1`,
		`UPDATE protected_rows SET value = 'größer als 1', last_token = last_token + 1 WHERE last_token < $1`,
		`UPDATE protected_rows SET value = '` + strings.Repeat("x", 300) + `', grp = ` + strings.Repeat("grp + ", 60) + `1 WHERE last_token >= $1`,
		`DELETE FROM app.accounts WHERE id = $1`,
		`INSERT INTO protected_rows VALUES (1, 'a secret', 0, 8)`,
		`INSERT INTO protected_rows (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET value = 'x'`,
		`TRUNCATE jobs, protected_rows`,
		`SELECT 1; DELETE FROM protected_rows WHERE last_token < 8`,
		`ALTER TABLE protected_rows ADD COLUMN a int`,
		`SET ROLE admin`,
		`DO $$ BEGIN EXECUTE 'a secret'; END $$`,
		`SELECT * FROM protected_rows WHERE id = ?`,
		`SELEC 'a secret'`,
		"SELECT protected_rows \x00",
	}
	var b strings.Builder
	for _, sql := range texts {
		err := p.Plan(sql).Refusal()
		require.Error(t, err, sql)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "4711")
		b.WriteString(err.Error() + "\n\n")
	}
	for _, arg := range []any{9, 8.5, nil, "a secret"} {
		_, err := p.Plan(`DELETE FROM protected_rows WHERE last_token < $1`).Bind(8, []driver.NamedValue{{Ordinal: 1, Value: arg}})
		require.NotContains(t, err.Error(), "secret")
		b.WriteString(err.Error() + "\n\n")
	}
	_, err := p.Plan(`DELETE FROM protected_rows WHERE last_token < $1`).BindAll(context.Background(), nil)
	require.ErrorIs(t, err, tokenctx.ErrNoToken)
	b.WriteString(err.Error() + "\n")
	const golden = "testdata/messages.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "run go test ./internal/check -run TestMessages -update, and read the difference")
}

func TestViolationLocation(t *testing.T) {
	v := casesPolicy(t, Strict).Plan(`TRUNCATE protected_rows`).Violations[0]
	v.Location = "/repo/store/orders.go:42"
	require.True(t, strings.HasPrefix(v.Error(), "/repo/store/orders.go:42: TRUNCATE of protected table"))
	require.Equal(t, v.Headline(), strings.SplitN(v.Error(), "\n", 2)[0])
	require.True(t, errors.Is(&v, ErrRefused))
	require.False(t, errors.Is(&v, tokenctx.ErrNoToken))
}

// The parser counts characters, what else there is in a violation bytes.
func TestViolationOffset(t *testing.T) {
	p := casesPolicy(t, Strict)
	for _, tt := range []struct{ sql, at string }{
		{"UPDATE protected_rows SET value = 'x'", "protected_rows SET"},
		{"SELECT 'größe' AS \"größe\"\n  FROM protected_rows WHERE id = ? AND 1 = 1", "AND"},
		{"ALTER TABLE protected_rows SEKT", "SEKT"},
		{"ALTER TABLE protected_rows ADD /* ö */", ""},
	} {
		v := p.Plan(tt.sql).Violations[0]
		offset, ok := v.Offset()
		require.True(t, ok, tt.sql)
		require.Equal(t, strings.Index(tt.sql+"\x00", tt.at+map[bool]string{true: "\x00"}[tt.at == ""]), offset, tt.sql)
	}
	_, ok := Refuse(WallRefused, "").Offset()
	require.False(t, ok)
}
