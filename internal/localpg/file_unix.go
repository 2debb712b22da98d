//go:build unix

package localpg

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openLock opens the file and takes its lock, which the system drops with our
// process however that ends. Another holder's lock is errLocked.
func openLock(path string, create bool) (*os.File, error) {
	flags := os.O_RDWR | syscall.O_NOFOLLOW
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// ownerOf returns the user that a file belongs to.
func ownerOf(info fs.FileInfo) account {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return account{-1, -1}
	}
	return account{int(st.Uid), int(st.Gid)}
}

// kill sends a signal to a process that may not be our child.
func kill(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

// halt stops a process where it stands.
func halt(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

// canRunServer is nil, as servers of our own run on Unix.
func canRunServer() error { return nil }
