package localpg

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// script writes an executable file.
func script(t *testing.T, path, body string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755))
}

// fakeServer puts programs into dir that look like a server's.
func fakeServer(t *testing.T, dir string) {
	t.Helper()
	script(t, filepath.Join(dir, "initdb"), "exit 1")
	script(t, filepath.Join(dir, "postgres"), "exit 1")
}

func TestFindOrder(t *testing.T) {
	// Each case has what the one before lacks, and one thing less.
	tests := []struct {
		name  string
		setup func(t *testing.T, root string)
		env   string
		want  string
	}{
		{
			name:  "the environment's directory",
			setup: func(t *testing.T, root string) { fakeServer(t, root+"/named") },
			env:   "named",
			want:  "named",
		},
		{name: "pg_config's directory", want: "configured"},
		{
			name: "PATH if pg_config is the client package's",
			setup: func(t *testing.T, root string) {
				require.NoError(t, os.Remove(root+"/configured/initdb"))
			},
			want: "linked",
		},
		{
			name: "PATH if there is no pg_config",
			setup: func(t *testing.T, root string) {
				require.NoError(t, os.Remove(root+"/path1/pg_config"))
			},
			want: "linked",
		},
		{
			name: "the newest package if what PATH leads to is no server",
			setup: func(t *testing.T, root string) {
				require.NoError(t, os.Remove(root+"/path1/pg_config"))
				require.NoError(t, os.Chmod(root+"/linked/initdb", 0o644))
			},
			want: "debian/15/bin",
		},
		{
			name: "an older package if the newest has no server",
			setup: func(t *testing.T, root string) {
				require.NoError(t, os.Remove(root+"/path1/pg_config"))
				require.NoError(t, os.Remove(root+"/path2/postgres"))
				require.NoError(t, os.Remove(root+"/debian/15/bin/postgres"))
			},
			want: "debian/9.6/bin",
		},
		{
			name: "Homebrew's newest if there is no package",
			setup: func(t *testing.T, root string) {
				require.NoError(t, os.Remove(root+"/path1/pg_config"))
				require.NoError(t, os.Remove(root+"/path2/postgres"))
				require.NoError(t, os.RemoveAll(root+"/debian"))
			},
			want: "brew/postgresql@17/bin",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			for _, dir := range []string{
				"configured", "linked", "debian/9.6/bin", "debian/15/bin", "debian/9.5/bin",
				"brew/postgresql@9.6/bin", "brew/postgresql@17/bin", "brew/postgresql/bin",
			} {
				fakeServer(t, filepath.Join(root, dir))
			}
			script(t, root+"/path1/pg_config", "echo "+root+"/configured")
			script(t, root+"/path1/postgres", "exit 1") // a wrapper, alone
			require.NoError(t, os.Mkdir(root+"/path2", 0o755))
			require.NoError(t, os.Symlink(root+"/linked/postgres", root+"/path2/postgres"))
			t.Setenv("PATH", root+"/path1:"+root+"/path2")
			t.Setenv(envBin, "")
			if tt.env != "" {
				t.Setenv(envBin, filepath.Join(root, tt.env))
			}
			if tt.setup != nil {
				tt.setup(t, root)
			}
			f := finder{globs: []string{root + "/debian/*/bin", root + "/brew/postgresql*/bin"}}
			got, err := f.find(t.Context())
			require.NoError(t, err)
			require.Equal(t, filepath.Join(root, tt.want), got)
		})
	}
}

func TestFindNamedDirectoryWithoutServer(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "postgres"), "exit 1")
	t.Setenv(envBin, dir)
	_, err := newFinder().find(t.Context())
	require.EqualError(t, err, "FENCEROW_PG_BIN="+dir+" has no executable initdb and postgres: set it to the bin directory of a PostgreSQL server")
	require.NotErrorIs(t, err, ErrNoServer)
}

func TestVersion(t *testing.T) {
	require.Equal(t, []int{9, 6}, version("/usr/lib/postgresql/9.6/bin"))
	require.Equal(t, []int{17}, version("/opt/homebrew/opt/postgresql@17/bin"))
	require.Empty(t, version("/opt/homebrew/opt/postgresql/bin"))
}
