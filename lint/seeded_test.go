//go:build unix

package lint

import (
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// seededTest is a test of the example's handler that sees no error in it.
const seededTest = `//go:build unix

package main

import (
	"context"
	"database/sql"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/fencerow/fencerow/lint"
)

func TestUpdate(t *testing.T) {
	db, err := sql.Open("fencerow", os.Getenv("SEEDED_DSN"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lint.WatchDB(t, db)
	h := &rows{db: db, compute: func(context.Context, string) (string, error) { return "new", nil }}
	r, w := httptest.NewRequest("POST", "/rows/1", nil), httptest.NewRecorder()
	r.Header.Set("Fencing-Token", "5")
	h.routes().ServeHTTP(w, r)
	if w.Body.String() != "new" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
`

// A handler of the example loses its guard, and looks at no error: a test that saw
// nothing of it fails with the line.
func TestSeededExample(t *testing.T) {
	dsn := localpg.Database(t)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	plain, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.Exec(`CREATE TABLE protected_rows (id bigint PRIMARY KEY, value text)`)
	require.NoError(t, err)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "protected_rows", Mode: migrations.Strict}))
	_, err = plain.Exec(`INSERT INTO protected_rows VALUES (1, 'old')`)
	require.NoError(t, err)

	source, err := os.ReadFile("../example/handlers.go")
	require.NoError(t, err)
	seeded := string(source)
	for _, change := range [][2]string{
		{"value = $1, last_token = $2 WHERE id = $3 AND last_token < $2`,\n\t\tvalue, tokenctx.Arg, id)", "value = $1 WHERE id = $2`,\n\t\tvalue, id)"},
		{"\tif err != nil {\n\t\tfail(w, err)\n\t\treturn\n\t}\n\tanswer(w, result, value)\n}\n\n// forgotten",
			"\t_, _ = result, err\n\t_, _ = w.Write([]byte(value))\n}\n\n// forgotten"},
	} {
		require.Equal(t, 1, strings.Count(seeded, change[0]), change[0])
		seeded = strings.Replace(seeded, change[0], change[1], 1)
	}

	before, _, found := strings.Cut(seeded, "result, err := h.db.ExecContext(ctx,")
	require.True(t, found)
	line := strconv.Itoa(1 + strings.Count(before, "\n"))
	require.Contains(t, testExample(t, dsn, string(source)), "ok  \tgithub.com/fencerow/fencerow/example")
	require.Contains(t, testExample(t, dsn, seeded), `
        /repo/example/handlers.go:`+line+`: UPDATE on protected table "protected_rows" has no last_token guard (FR101 unguarded-update)
            1 | UPDATE protected_rows SET value = $1 WHERE id = $2
              |        ^^^^^^^^^^^^^^
          fix:  UPDATE protected_rows SET value = $1, last_token = $3 WHERE id = $2 AND last_token < $3
          docs: https://github.com/fencerow/fencerow/blob/main/rewrite/rules/FR101.md, or fencerow explain FR101
FAIL
`)
}

// testExample runs seededTest on the example with those handlers.
func testExample(t *testing.T, dsn, handlers string) string {
	t.Helper()
	dir := t.TempDir()
	replaced := make(map[string]string)
	for name, text := range map[string]string{"handlers.go": handlers, "seeded_test.go": seededTest} {
		original, err := filepath.Abs(filepath.Join("..", "example", name))
		require.NoError(t, err)
		replaced[original] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(replaced[original], []byte(text), 0o644))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o644))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", file, "-vet=off", "-run", "^TestUpdate$", "../example")
	cmd.Env = append(os.Environ(), "SEEDED_DSN="+dsn)
	out, _ := cmd.CombinedOutput()
	return normal(t, string(out))
}
