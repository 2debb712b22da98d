package localpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// dirPrefix begins the name of every server's directory; sweep looks for it.
const dirPrefix = "fencerow-pg-"

// maxSocketPath is what every system takes in a socket's address, with a
// little to spare.
const maxSocketPath = 100

var errLocked = errors.New("locked by another process")

// serverDir is a server's private directory, open to nobody but the user the
// server runs as: whoever reaches the socket in it is a superuser.
type serverDir struct {
	path string
	lock *os.File // held as long as the server has an owner
	log  *os.File
}

func (d *serverDir) data() string { return filepath.Join(d.path, "data") }

// tempDirs are the places for server directories.
func tempDirs() []string {
	dirs := []string{os.TempDir()}
	if dirs[0] != "/tmp" {
		dirs = append(dirs, "/tmp")
	}
	return dirs
}

// memoryDir is a file system in memory where there may be one. A copied database is
// some 300 files: on a disk's file system they take four times as long to create and
// delete, nearly all of it in the kernel.
const memoryDir = "/dev/shm"

// memoryNeeded is how many bytes have to be free in memoryDir: what several servers
// write side by side, with a gigabyte of WAL each.
const memoryNeeded = 6 << 30

// newServerDir makes a directory for a server of the account: in memory if there is
// room and the server needn't sync, unless TMPDIR says where.
func newServerDir(as *account, isSynced bool) (*serverDir, error) {
	bases := tempDirs()
	if !isSynced && os.Getenv("TMPDIR") == "" && hasMemory(memoryDir, memoryNeeded) {
		bases = append([]string{memoryDir}, bases...)
	}
	bases = slices.DeleteFunc(bases, func(base string) bool {
		return !fits(base) || as != nil && !openToAll(base)
	})
	if len(bases) == 0 {
		return nil, errors.New("no temp directory has a path short enough for a socket and open to the server's user: set TMPDIR to one")
	}
	var err error
	for range 10 {
		var d *serverDir
		if d, err = makeServerDir(bases[0], as); err == nil {
			return d, nil
		}
		// Another process's sweep found the directory before it was locked.
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errLocked) {
			break
		}
	}
	return nil, fmt.Errorf("make a directory for the server: %w", err)
}

func makeServerDir(base string, as *account) (_ *serverDir, err error) {
	path, err := os.MkdirTemp(base, dirPrefix)
	if err != nil {
		return nil, err
	}
	d := &serverDir{path: path}
	defer func() {
		if err != nil {
			_ = d.remove()
		}
	}()
	if d.lock, err = openLock(filepath.Join(path, "lock"), true); err != nil {
		return nil, err
	}
	// A sweep that held the lock a moment ago has removed the file.
	if _, err = os.Lstat(d.lock.Name()); err != nil {
		return nil, err
	}
	flags := os.O_CREATE | os.O_EXCL | os.O_RDWR | os.O_APPEND
	if d.log, err = os.OpenFile(filepath.Join(path, "log"), flags, 0o600); err != nil {
		return nil, err
	}
	if as != nil {
		err = os.Chown(path, as.uid, as.gid)
	}
	return d, err
}

// remove deletes the directory, its lock last: a directory without one is
// nobody's.
func (d *serverDir) remove() error {
	if d.log != nil {
		d.log.Close()
	}
	err := removeContent(d.path)
	err = errors.Join(err, os.RemoveAll(d.path))
	if d.lock != nil {
		d.lock.Close()
	}
	return err
}

// removeContent deletes everything in a server directory but the lock.
func removeContent(path string) error {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if e.Name() != "lock" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
		}
	}
	return err
}

// tail returns the end of the server's log, which says why it did not start.
func (d *serverDir) tail() string {
	const size = 4096
	info, err := d.log.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(size, info.Size()))
	n, _ := d.log.ReadAt(buf, info.Size()-int64(len(buf)))
	return strings.TrimSpace(string(buf[:n]))
}

// fits says whether a socket in a server directory of base has a short enough
// path. The longest file there is the socket's own lock.
func fits(base string) bool {
	name := filepath.Join(base, dirPrefix+"4294967295", fmt.Sprintf(".s.PGSQL.%d.lock", socketPort))
	return len(name) < maxSocketPath
}

// openToAll says whether any user can reach what is in dir.
func openToAll(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
