package sqlfiles

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// Texts that once hid a write from the check, or were taken for a write.
func TestAttacks(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"a name behind code", "1.up.sql", "UPDATE orders -- name: x\n SET a = 1;", []string{"1:8 FR101"}},
		{"goose's word behind code", "1.up.sql", "UPDATE orders -- +goose is nice\n SET a = 1;", []string{"1:8 FR101"}},
		{"a comment of a column", "a.sql", "CREATE TABLE c (\n  -- name: the full name\n  full_name text);\nALTER TABLE orders ADD a int;", []string{}},
		{"SQL behind a command", "a.sql", `\set x 'a\\' \\ UPDATE orders SET a = 1;`, []string{"1:24 FR101"}},
		{"SQL behind one that sends", "a.sql", `SELECT 1 \gset \\ UPDATE orders SET a = 1;`, []string{"1:26 FR101"}},
		{"a command for the shell has the line", "a.sql", `\! echo \\ UPDATE orders SET a = 1;`, []string{}},
		{"copy by psql", "a.sql", "SELECT 1;\r\n\\copy orders (a, b) from x.csv csv header\r\nSELECT 2;", []string{"2:7 FR203"}},
		{"copy by psql, short", "a.sql", "\\copy orders from a", []string{"1:7 FR203"}},
		{"copy by psql, with rows", "a.sql", "\\copy orders from stdin\n1'\n\\.\nUPDATE orders SET a = 1;", []string{"1:7 FR203", "4:8 FR101"}},
		{"copy by psql, out", "a.sql", "\\copy orders to 'from x'\n\\copy (select * from orders) to x\n", []string{}},
		{"a schema from the environment", "a.sql", "-- +goose Up\n-- +goose ENVSUB ON\nUPDATE ${SCHEMA}.orders SET a = '${B}';", []string{"3:18 FR101"}},
		{"a body in plain quotes", "1.up.sql", "DO 'BEGIN UPDATE orders SET a = ''x''; END';", []string{"1:18 FR101"}},
		{"a function's body in plain quotes", "1.up.sql",
			"CREATE FUNCTION f(text DEFAULT 'UPDATE orders SET a = 1') RETURNS void LANGUAGE sql AS\n'DELETE FROM orders';", []string{"2:14 FR111"}},
		{"INTO several variables", "1.up.sql",
			"DO $$ BEGIN WITH x AS (UPDATE orders SET a = 1 RETURNING a, b) SELECT a, b INTO STRICT v, r.w FROM x; END $$;", []string{"1:31 FR101"}},
		{"COPY in a body", "1.up.sql", "DO $$ BEGIN COPY orders FROM '/x'; END $$;", []string{"1:18 FR203"}},
		{"the column in a comment", "1.up.sql", "DO $$ BEGIN UPDATE orders /* last_token */ SET a = my_last_token; END $$;", []string{"1:20 FR101"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, places(lintText(t, tt.file, tt.text).Findings))
		})
	}
}

// A link that is named is followed, and the way to a directory says nothing of
// its files.
func TestNamedDirectories(t *testing.T) {
	t.Chdir(tree(t, "sqlite/a.sql"))
	require.NoError(t, os.Symlink("sqlite", "link"))
	for _, path := range []string{"link", "link/", "sqlite", "./sqlite", "./sqlite/", filepath.Join("sqlite", "a.sql")} {
		result, err := Lint(t.Context(), Config{Policy: ordersPolicy(t)}, path)
		require.NoError(t, err, path)
		require.Equal(t, 1, result.Files, path)
	}
}

// Long files take no longer for each of their lines.
func TestLongFiles(t *testing.T) {
	const lines, times = 1000, 8
	policy, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease})
	require.NoError(t, err)
	for name, text := range map[string]func(lines int) string{
		"suppressions": func(n int) string {
			return strings.Repeat("-- fencerow:ignore FR101 r\nUPDATE orders SET a=1;\n", n)
		},
		"COPY":   func(n int) string { return strings.Repeat("COPY a FROM stdin;\n", n) + "\\echo\n" },
		"ENVSUB": func(n int) string { return strings.Repeat("-- +goose ENVSUB ON\nSELECT ${A};\n", n) },
	} {
		cost := func(n int) time.Duration {
			return processorTime(t, func() {
				(&linter{Config: Config{Policy: policy}, result: &Result{Unparsed: map[string]int{}}}).lintText("a.sql", text(n), false)
			})
		}
		short, long := cost(lines), cost(lines*times)
		t.Log(name, short, long)
		require.Less(t, long, times*times/2*short, "%s: it grows by the square", name)
	}
}

// processorTime is the processor time of a function, without that of other programs:
// the least of three times.
func processorTime(t *testing.T, do func()) time.Duration {
	t.Helper()
	least := time.Duration(math.MaxInt64)
	for range 3 {
		runtime.GC() // or what has been left is swept in this time
		before := usedProcessorTime(t)
		do()
		least = min(least, usedProcessorTime(t)-before)
	}
	return least
}
