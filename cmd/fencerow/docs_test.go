package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

const page = "../../docs/cli.md"

// The page shows what the doctor prints, on a healthy and on a broken database,
// and what lint does.
func TestPage(t *testing.T) {
	t.Parallel()
	srv := localpg.StartServer(t)
	for _, content := range []string{"healthy", "broken"} {
		require.NoError(t, srv.CreateDatabase(t.Context(), content, ""))
		require.NoError(t, databases[content](t.Context(), srv.DSN(content)))
	}
	require.NoError(t, execSQL(t.Context(), srv.DSN("healthy"), `CREATE ROLE app LOGIN`))
	for _, content := range []string{"healthy", "broken"} {
		require.NoError(t, execSQL(t.Context(), srv.DSN(content), appRights))
	}
	outputs := map[string]string{
		"doctor healthy": output(t, exitClean, "doctor", "--role", "app", "--database-url", srv.DSN("healthy")),
		"doctor broken":  output(t, exitFindings, "doctor", "--role", "app", "--database-url", srv.DSN("broken")),
		"lint":           output(t, exitFindings, "lint", "--config", "testdata/page/fencerow.yaml", "--sql", "testdata/page/queries.sql"),
		"explain":        output(t, exitFindings, "explain", "--config", "testdata/page/fencerow.yaml", "DELETE FROM orders WHERE id = 5"),
	}
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	got := string(data)
	for name, text := range outputs {
		got = replaced(t, got, name, text)
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
		return
	}
	require.Equal(t, got, string(data), "run go test ./fencerow -run TestPage -update, and read the difference")
}

// appRights are what an application's role needs.
const appRights = `GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO app;
GRANT USAGE ON SCHEMA fencing TO app;
GRANT SELECT ON fencing.registry, fencing.generation TO app;
GRANT SELECT ON SEQUENCE fencing.write_epoch TO app;
GRANT EXECUTE ON FUNCTION fencing.next_token() TO app`

// output is what the program prints to a file.
func output(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	env := &environment{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	require.Equal(t, code, run(t.Context(), env, args), &out)
	return out.String()
}

// replaced puts a text into its place on the page.
func replaced(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- output of "+name+" -->\n```text\n", "```\n<!-- end of output -->\n"
	before, rest, ok := strings.Cut(page, begin)
	require.True(t, ok, "the page has no place for the output of %s", name)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "the page has no end of the output of %s", name)
	return before + begin + text + end + after
}

// The configuration on the page is one, and the file that lint's output is about
// is shown.
func TestPageInput(t *testing.T) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(data), "```yaml\n")
	require.True(t, ok)
	text, _, _ := strings.Cut(rest, "```")
	c, err := parseConfig([]byte(text))
	require.NoError(t, err)
	require.Equal(t, []tableConfig{{"orders", "lease", "last_token", "shop"}}, c.Tables)
	require.Len(t, c.Exclude, 2)
	require.Len(t, c.Migrations, 1)

	queries, err := os.ReadFile("testdata/page/queries.sql")
	require.NoError(t, err)
	require.Contains(t, string(data), "```sql\n"+string(queries)+"```")
}

// The page's suppressions hide what they stand at, and its DELETE with the
// setting is none in a migration.
func TestPageSnippets(t *testing.T) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	for heading, name := range map[string]string{"### Suppressions\n": "a.sql", "### Queries and migrations\n": "1_a.up.sql"} {
		_, rest, ok := strings.Cut(string(data), heading)
		require.True(t, ok, heading)
		_, rest, ok = strings.Cut(rest, "```sql\n")
		require.True(t, ok, heading)
		text, _, _ := strings.Cut(rest, "```")
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		output(t, exitClean, "lint", "--config", "testdata/page/fencerow.yaml", "--sql", file)
	}
}
