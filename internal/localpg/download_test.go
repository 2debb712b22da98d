//go:build unix

package localpg

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
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
)

// noServer is a finder for a machine without binaries.
func noServer(t *testing.T, repository string) finder {
	t.Helper()
	t.Setenv(envBin, "")
	t.Setenv("PATH", t.TempDir())
	t.Setenv(envRepository, repository)
	t.Setenv("TMPDIR", t.TempDir()) // the library leaves an empty log there
	return finder{cache: filepath.Join(t.TempDir(), "cache")}
}

func TestDownload(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	jar := archive(t, map[string]string{
		"bin/initdb":   "#!/bin/sh\necho initdb from the archive\n",
		"bin/postgres": "#!/bin/sh\necho postgres from the archive\n",
		"bin/pg_ctl":   "#!/bin/sh\n",
	})
	var fetched atomic.Int32
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			sum := sha256.Sum256(jar)
			_, _ = w.Write([]byte(hex.EncodeToString(sum[:])))
			return
		}
		fetched.Add(1)
		_, _ = w.Write(jar)
	}))
	defer repository.Close()
	f := noServer(t, repository.URL)

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
	tests := []struct {
		name    string
		handler http.Handler
		want    string
	}{
		{"not found", http.NotFoundHandler(), "no version found"},
		{"an archive without a server", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".sha256") {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(archive(t, map[string]string{"bin/pg_ctl": "#!/bin/sh\n"}))
		}), "the downloaded archive has no initdb and postgres"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			repository := httptest.NewServer(tt.handler)
			defer repository.Close()
			f := noServer(t, repository.URL)

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
	repository := httptest.NewServer(http.NotFoundHandler())
	defer repository.Close()
	f := noServer(t, repository.URL)
	t.Setenv(envURL, "postgres://elsewhere/postgres")
	var s *skipper
	t.Run("skipped", func(t *testing.T) {
		s = &skipper{TB: t}
		f.startServer(s)
	})
	require.Contains(t, s.skipped, "this test needs a server of its own")
}

// archive packs files like the repository does: a jar with a .txz in it.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var tarball, jar bytes.Buffer
	tw := tar.NewWriter(&tarball)
	for name, body := range files {
		require.NoError(t, tw.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(body)), Typeflag: tar.TypeReg}))
		_, err := tw.Write([]byte(body))
		require.NoError(t, err)
	}
	require.NoError(t, tw.Close())
	zw := zip.NewWriter(&jar)
	w, err := zw.Create("postgres.txz")
	require.NoError(t, err)
	_, err = w.Write(xz(tarball.Bytes()))
	require.NoError(t, err)
	require.NoError(t, zw.Close())
	return jar.Bytes()
}

// xz wraps data (of less than 64 KiB) in the xz format, uncompressed: the
// standard library has no writer for it.
func xz(data []byte) []byte {
	sum := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)) }
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }
	flags := []byte{0, 1} // check: CRC32

	out := append([]byte("\xfd7zXZ\x00"), flags...)
	out = append(out, sum(flags)...)

	header := []byte{2, 0, 0x21, 1, 0x16, 0, 0, 0} // 12 bytes with its sum, one filter: LZMA2, 8 MiB dictionary
	block := append(header, sum(header)...)
	block = append(block, 1) // one uncompressed chunk
	block = binary.BigEndian.AppendUint16(block, uint16(len(data)-1))
	block = append(block, data...)
	block = append(block, 0) // no more chunks
	size := len(block) + 4   // with the check, without the padding
	out = append(out, pad(block)...)
	out = append(out, sum(data)...)

	index := []byte{0, 1} // one record
	index = binary.AppendUvarint(index, uint64(size))
	index = binary.AppendUvarint(index, uint64(len(data)))
	index = pad(index)
	index = append(index, sum(index)...)
	out = append(out, index...)

	footer := binary.LittleEndian.AppendUint32(nil, uint32(len(index)/4-1))
	footer = append(footer, flags...)
	out = append(out, sum(footer)...)
	out = append(out, footer...)
	return append(out, "YZ"...)
}
