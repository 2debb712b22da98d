package sqlfiles

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree writes files into a new directory, each with an unguarded write and a
// setting, which only a query may not change.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("UPDATE orders SET a = 1;\nSET ROLE x;"), 0o600))
	}
	return dir
}

// found lists the files with findings, and how many each has.
func found(t *testing.T, dir string, result *Result) []string {
	t.Helper()
	var out []string
	count := map[string]int{}
	for _, f := range result.Findings {
		rel, err := filepath.Rel(dir, filepath.FromSlash(f.Path))
		require.NoError(t, err)
		if count[rel]++; count[rel] == 1 {
			out = append(out, filepath.ToSlash(rel))
		}
	}
	for i, name := range out {
		out[i] = fmt.Sprintf("%s %d", name, count[name])
	}
	return out
}

func TestWalk(t *testing.T) {
	dir := tree(t, "a.sql", "b.SQL", "c.txt", "sub/d.sql", "sub/deep/e.sql", "sub/deep/e.old.sql", "sub/MySQL/k.sql",
		"sub/k.sqlite3.up.sql", "vendor/f.sql", "node_modules/g.sql", ".git/h.sql", "_old/i.sql", "migrations/j.sql")
	for _, tt := range []struct {
		name     string
		config   Config
		paths    []string
		want     []string
		progress int
	}{
		{"a directory", Config{}, []string{"."}, []string{"a.sql 2", "b.SQL 2", "migrations/j.sql 2", "sub/d.sql 2", "sub/deep/e.old.sql 2", "sub/deep/e.sql 2"}, 6},
		{"named files are read, whatever their name", Config{}, []string{"c.txt", "vendor/f.sql"}, []string{"c.txt 2", "vendor/f.sql 2"}, 2},
		{"so are those for another database", Config{}, []string{"sub/k.sqlite3.up.sql", "sub/MySQL"}, []string{"sub/MySQL/k.sql 2", "sub/k.sqlite3.up.sql 1"}, 2},
		{"a named directory, too", Config{}, []string{"vendor"}, []string{"vendor/f.sql 2"}, 1},
		{"each once", Config{}, []string{"a.sql", ".", "sub/../a.sql"},
			[]string{"a.sql 2", "b.SQL 2", "migrations/j.sql 2", "sub/d.sql 2", "sub/deep/e.old.sql 2", "sub/deep/e.sql 2"}, 6},
		{"excluded", Config{Exclude: []string{"sub/deep", "*.SQL", "./migrations/"}}, []string{"."}, []string{"a.sql 2", "sub/d.sql 2"}, 2},
		{"excluded by wildcards", Config{Exclude: []string{"**/*.old.sql", "sub/*/e.sql", "[ab].*"}}, []string{"."},
			[]string{"migrations/j.sql 2", "sub/d.sql 2"}, 2},
		{"excluded by name", Config{Exclude: []string{"deep"}}, []string{"sub"}, []string{"sub/d.sql 2"}, 1},
		{"excluded, even if named", Config{Exclude: []string{"a.sql"}}, []string{"a.sql"}, nil, 0},
		{
			"migrations", Config{Migrations: []string{"migrations", "sub/**"}}, []string{"a.sql", "migrations", "sub"},
			[]string{"a.sql 2", "migrations/j.sql 1", "sub/d.sql 1", "sub/deep/e.old.sql 1", "sub/deep/e.sql 1"}, 5,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Policy, tt.config.Root = ordersPolicy(t), dir
			calls := 0
			tt.config.Progress = func(files int, path string) {
				require.Equal(t, calls, files)
				require.NotEmpty(t, path)
				calls++
			}
			for i := range tt.paths {
				tt.paths[i] = dir + "/" + tt.paths[i]
			}
			result, err := Lint(t.Context(), tt.config, tt.paths...)
			require.NoError(t, err)
			require.Equal(t, tt.want, found(t, dir, result))
			require.Equal(t, tt.progress, calls)
			require.Equal(t, tt.progress, result.Files)
		})
	}
}

func TestNamedPaths(t *testing.T) {
	dir := tree(t, "a.sql", "sub/b.sql", "old/c.sql")
	require.NoError(t, os.Symlink(filepath.Join(dir, "sub"), filepath.Join(dir, "link")))
	config := Config{Policy: ordersPolicy(t), Root: dir, Exclude: []string{"a.sql", "old"}}
	result, err := Lint(t.Context(), config, dir+"/link", dir+"/a.sql", dir+"/old")
	require.NoError(t, err)
	require.Equal(t, []string{"link/b.sql 2"}, found(t, dir, result))
	require.Equal(t, []string{filepath.ToSlash(dir) + "/a.sql", filepath.ToSlash(dir) + "/old"}, result.Excluded)
	_, err = Lint(t.Context(), config, dir+"/none")
	require.ErrorContains(t, err, ": name another file or directory")
}

func TestUnmatched(t *testing.T) {
	dir := tree(t, "a.sql", "sub/b.sql", "sub/c.sql")
	config := Config{Policy: ordersPolicy(t), Root: dir, Exclude: []string{"none.sql", "sub/b.sql", "b.sql", "sub/none"},
		Migrations: []string{"sub/c.sql", "db/*.sql", "a.sql"}}
	for path, want := range map[string][]string{".": {"none.sql", "sub/none", "db/*.sql"}, "sub": {"sub/none", "db/*.sql"}} {
		result, err := Lint(t.Context(), config, dir+"/"+path)
		require.NoError(t, err)
		require.Equal(t, want, result.Unmatched, path)
	}
}

func TestSkipped(t *testing.T) {
	dir := tree(t, "a.sql", "mysql/b.sql", "a.mysql.up.sql", "mysql.txt", "a_mysql.sql")
	result, err := Lint(t.Context(), Config{Policy: ordersPolicy(t)}, dir)
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, []int{result.Files, result.Skipped})
}

func TestResult(t *testing.T) {
	result := lintText(t, "a.sql", strings.Join([]string{
		"-- fencerow:ignore FR111 once", "DELETE FROM orders;", "SELECT 1;", "UPDATE x SET a = 1;", "SELECT * FROM orders;", "SELEC orders;",
		"UPDATE orders SET a = 1; UPDATE orders SET b = 1;"}, "\n"))
	require.Equal(t, []string{"6:1 FR901", "7:8 FR101", "7:33 FR101"}, places(result.Findings))
	result.Findings = nil
	require.Equal(t, &Result{Files: 1, Statements: 7, Cleared: 2, Suppressed: 1, Unparsed: map[string]int{"syntax error at or near selec": 1}}, result)
}

func TestNotes(t *testing.T) {
	result := lintText(t, "a.sql", "\\set a 1\nSELECT 1;\n\\i b.sql\n\\i c.sql\n-- +goose ENVSUB ON\nSELECT ${A};\nCOPY x FROM stdin;\n1\n\\.\n")
	var notes []string
	for _, n := range result.Notes {
		n.Path = filepath.Base(n.Path)
		notes = append(notes, n.String())
	}
	require.Equal(t, []string{
		"a.sql:6: note: variables of the environment are read as their default or as a name",
		`a.sql:1: note: psql's \set passed over`,
		`a.sql:3: note: psql's \i (2 times) passed over`,
		"a.sql:8: note: rows of COPY FROM stdin passed over",
	}, notes)
	require.Empty(t, result.Findings)
}

func TestLintErrors(t *testing.T) {
	dir := tree(t, "a.sql")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		config Config
		path   string
		want   string
	}{
		{"no policy", t.Context(), Config{}, dir, "no policy: name the protected tables"},
		{"no such path", t.Context(), Config{Policy: ordersPolicy(t)}, dir + "/b.sql", "look for SQL files: "},
		{"a bad pattern", t.Context(), Config{Policy: ordersPolicy(t), Exclude: []string{"a/[b"}}, dir, `pattern "a/[b": syntax error in pattern: close the bracket`},
		{"an empty pattern", t.Context(), Config{Policy: ordersPolicy(t), Migrations: []string{"/"}}, dir, `pattern "/" means no path`},
		{"a context that has ended", ended, Config{Policy: ordersPolicy(t)}, dir, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Lint(tt.ctx, tt.config, tt.path)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
