package localpg

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keeping is a finder whose cache is empty.
func keeping(t *testing.T) finder {
	t.Helper()
	f := newFinder()
	bin, err := f.find(t.Context()) // a download goes to the usual cache
	require.NoError(t, err)
	t.Setenv(envBin, bin)
	f.cache = t.TempDir()
	return f
}

// entries lists what the cache keeps.
func entries(t *testing.T, f finder) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(f.cache, keptPrefix+"*"))
	require.NoError(t, err)
	return paths
}

func identifier(t *testing.T, s *Server) string {
	t.Helper()
	conn := connect(t, s.DSN(""))
	defer conn.Close(t.Context())
	return query[string](t, conn, "SELECT system_identifier::text FROM pg_control_system()")
}

// initdb runs once, and each server is another one to whoever asks it.
func TestInitdbIsKept(t *testing.T) {
	f := keeping(t)
	seen := map[string]bool{}
	for range 3 {
		s := f.startServer(t)
		seen[identifier(t, s)] = true
		require.NoError(t, s.Kill())
		require.NoError(t, s.Restart(t.Context()), "it recovers from WAL of its own")
		seen[identifier(t, s)] = true
		require.Equal(t, as(t), uidOf(filepath.Join(s.DataDir(), "global", "pg_control")))
		require.NoError(t, s.Stop())
	}
	require.Len(t, seen, 3)
	require.Len(t, entries(t, f), 1)
}

// as is the user that servers run as.
func as(t *testing.T) int {
	t.Helper()
	account, err := serverAccount()
	require.NoError(t, err)
	if account == nil {
		return os.Geteuid()
	}
	return account.uid
}

func TestInitdbIsKeptOnceSideBySide(t *testing.T) {
	f := keeping(t)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		wg.Go(func() {
			s, err := f.start(t.Context())
			if err == nil {
				err = s.Stop()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, entries(t, f), 1)
}

// What a cache holds never keeps a server from starting.
func TestKeptDirectoryOfNoUse(t *testing.T) {
	tests := map[string]func(t *testing.T, kept string){
		"half of it is gone":    func(t *testing.T, kept string) { require.NoError(t, os.RemoveAll(filepath.Join(kept, "pg_wal"))) },
		"pg_control is damaged": func(t *testing.T, kept string) { damage(t, filepath.Join(kept, "global", "pg_control")) },
		"it is a file": func(t *testing.T, kept string) {
			require.NoError(t, os.RemoveAll(kept))
			require.NoError(t, os.WriteFile(kept, nil, 0o600))
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			f := keeping(t)
			require.NoError(t, f.startServer(t).Stop())
			spoil(t, entries(t, f)[0])
			require.NotEmpty(t, identifier(t, f.startServer(t)))
			require.FileExists(t, filepath.Join(entries(t, f)[0], "PG_VERSION"), "replaced")
			_, found := checksumOffset(read(t, filepath.Join(entries(t, f)[0], "global", "pg_control")))
			require.True(t, found, "replaced")
		})
	}
}

// damage changes the first byte of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	content := read(t, path)
	content[0]++
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// A new one sweeps those that nobody has copied for long, and half made ones.
func TestKeptDirectoriesAreSwept(t *testing.T) {
	f := keeping(t)
	long, short, half := keptPrefix+"long", keptPrefix+"short", keptPrefix+"new"
	for _, name := range []string{long, short, half, "npm-1"} {
		require.NoError(t, os.MkdirAll(filepath.Join(f.cache, name, "base"), 0o700))
	}
	ago := time.Now().Add(-keptFor - time.Hour)
	for _, name := range []string{long, "npm-1"} {
		require.NoError(t, os.Chtimes(filepath.Join(f.cache, name), ago, ago))
	}

	require.NoError(t, f.startServer(t).Stop())
	require.NoDirExists(t, filepath.Join(f.cache, long))
	require.NoDirExists(t, filepath.Join(f.cache, half))
	require.DirExists(t, filepath.Join(f.cache, short))
	require.DirExists(t, filepath.Join(f.cache, "npm-1"))
}

// A copy keeps the kept directory young.
func TestCopyRenewsTheKeptDirectory(t *testing.T) {
	f := keeping(t)
	require.NoError(t, f.startServer(t).Stop())
	kept := entries(t, f)[0]
	ago := time.Now().Add(-keptFor - time.Hour)
	require.NoError(t, os.Chtimes(kept, ago, ago))
	require.NoError(t, f.startServer(t).Stop())
	info, err := os.Stat(kept)
	require.NoError(t, err)
	require.True(t, info.ModTime().After(ago.Add(keptFor)), info.ModTime())
}
