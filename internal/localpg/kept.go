package localpg

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keptPrefix begins the names of the data directories in the cache.
const keptPrefix = "initdb-"

// keptFor is how long a data directory stays in the cache that nobody copies.
const keptFor = 30 * 24 * time.Hour

// fillNew makes a data directory such as initdb makes. The first one for the server's
// binaries is kept in the cache, and the next ones are copies of it: a copy takes a
// twentieth of initdb's time.
func (c *cluster) fillNew(ctx context.Context) error {
	kept := c.keptPath()
	if kept == "" {
		return c.initdb(ctx)
	}
	if copyKept(kept, c.dir.data()) == nil && c.giveData() == nil {
		return nil
	}
	// There is none, or another process has just removed it.
	if err := os.RemoveAll(c.dir.data()); err != nil {
		return err
	}
	if err := c.initdb(ctx); err != nil {
		return err
	}
	_ = keep(c.dir.data(), kept) // without it the next server takes longer
	return nil
}

// keptPath is the place in the cache for what these binaries' initdb makes, or "" if
// there is no place. Another build of the server has another place, and so has what
// initdb reads from its surroundings.
func (c *cluster) keptPath() string {
	if c.cache == "" {
		return ""
	}
	key := sha256.New()
	for _, program := range []string{"initdb", "postgres"} {
		path := filepath.Join(c.bin, program)
		info, err := os.Stat(path)
		if err != nil {
			return ""
		}
		fmt.Fprintln(key, path, info.Size(), info.ModTime().UnixNano())
	}
	zone, _ := os.Readlink("/etc/localtime")
	fmt.Fprintln(key, initdbArgs, os.Getenv("TZ"), zone)
	return filepath.Join(c.cache, fmt.Sprintf("%s%x", keptPrefix, key.Sum(nil)[:12]))
}

// copyKept makes data a copy of a kept data directory, as another server: no two have
// the same system identifier.
func copyKept(kept, data string) error {
	if err := copyTree(kept, data); err != nil {
		return err
	}
	// A directory is renamed before it is removed: what has kept its name is whole.
	now := time.Now()
	if err := os.Chtimes(kept, now, now); err != nil {
		return err
	}
	id := uint64(now.Unix())<<32 | uint64(rand.Uint32()) // initdb's has the time in the same place
	return setSystemIdentifier(data, id)
}

// keep puts a copy of a data directory that no server has run on into the cache, and
// removes what is too old there, unless another process is about to.
func keep(data, kept string) error {
	cache := filepath.Dir(kept)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	lock, err := openLock(filepath.Join(cache, "initdb.lock"), true)
	if err != nil {
		return err
	}
	defer lock.Close()
	sweepKept(cache)
	removeKept(kept) // if there is one, it could not be copied
	made := filepath.Join(cache, keptPrefix+"new")
	err = copyTree(data, made)
	if err == nil {
		err = os.Rename(made, kept)
	}
	return errors.Join(err, os.RemoveAll(made))
}

// removeKept removes a kept data directory. It is renamed first, so that nobody takes
// what is left of it for the whole.
func removeKept(kept string) {
	old := filepath.Join(filepath.Dir(kept), keptPrefix+"old")
	if os.Rename(kept, old) == nil {
		_ = os.RemoveAll(old)
	}
}

// sweepKept removes the kept data directories that nobody has copied for a long time,
// and what a killed process has left half made. The caller holds the lock.
func sweepKept(cache string) {
	for _, half := range []string{"new", "old"} {
		_ = os.RemoveAll(filepath.Join(cache, keptPrefix+half))
	}
	entries, _ := os.ReadDir(cache)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), keptPrefix) || time.Since(info.ModTime()) < keptFor {
			continue
		}
		removeKept(filepath.Join(cache, e.Name()))
	}
}

// copyTree copies a directory with the modes of what is in it.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case e.IsDir():
			return os.Mkdir(target, info.Mode().Perm())
		case info.Mode().IsRegular():
			return copyFile(path, target, info.Mode().Perm())
		}
		return fmt.Errorf("%s is neither a file nor a directory", path)
	})
}

func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// setSystemIdentifier gives a data directory that no server has run on another system
// identifier. It stands in two places: at the start of pg_control, which has a checksum,
// and in the header of each segment of WAL, which has none.
func setSystemIdentifier(data string, id uint64) error {
	path := filepath.Join(data, "global", "pg_control")
	control, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at, ok := checksumOffset(control)
	if !ok {
		return fmt.Errorf("%s has no checksum where one is expected", path)
	}
	old := binary.NativeEndian.Uint64(control)
	binary.NativeEndian.PutUint64(control, id)
	binary.NativeEndian.PutUint32(control[at:], crc32.Checksum(control[:at], castagnoli))
	if err := os.WriteFile(path, control, 0o600); err != nil {
		return err
	}
	segments, err := filepath.Glob(filepath.Join(data, "pg_wal", "????????????????????????"))
	if err != nil || len(segments) == 0 {
		return fmt.Errorf("%s has no WAL", data)
	}
	for _, segment := range segments {
		if err := replaceIdentifier(segment, old, id); err != nil {
			return err
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksumOffset finds the checksum in pg_control. It is that of all before it; how much
// that is, depends on the server's version.
func checksumOffset(control []byte) (at int, ok bool) {
	for at = 16; at+4 <= min(len(control), 512); at += 4 {
		if binary.NativeEndian.Uint32(control[at:]) == crc32.Checksum(control[:at], castagnoli) {
			return at, true
		}
	}
	return 0, false
}

// replaceIdentifier writes the system identifier into the header of a segment of WAL.
func replaceIdentifier(segment string, old, id uint64) error {
	const offset = 24 // after XLogPageHeaderData
	f, err := os.OpenFile(segment, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var field [8]byte
	if _, err := f.ReadAt(field[:], offset); err != nil {
		return err
	}
	if binary.NativeEndian.Uint64(field[:]) != old {
		return fmt.Errorf("%s has no system identifier where one is expected", segment)
	}
	binary.NativeEndian.PutUint64(field[:], id)
	_, err = f.WriteAt(field[:], offset)
	return err
}
