package localpg

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// attrs has nothing to set: the server ends with Stop, or with the next sweep.
func attrs(*account) *syscall.SysProcAttr { return nil }

// processes is empty: Windows hands out no parent and command line through the
// standard library.
func processes() ([]procInfo, error) { return nil, nil }

// openLock opens the file so that nobody else can, which the system undoes
// with our process however that ends. Another holder's lock is errLocked.
func openLock(path string, create bool) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	disposition := uint32(syscall.OPEN_EXISTING)
	if create {
		disposition = syscall.OPEN_ALWAYS
	}
	const noSharing = 0
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, noSharing, nil, disposition, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		const sharingViolation = syscall.Errno(32)
		if errors.Is(err, sharingViolation) {
			err = errLocked
		}
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// ownerOf can't tell. Everybody here has a temp directory of their own.
func ownerOf(fs.FileInfo) account { return account{os.Geteuid(), os.Getegid()} }

// sendSignal knows one way to end a process.
func sendSignal(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

const suspend = syscall.Signal(0)

// hasMemory says no: there is no file system in memory.
func hasMemory(string, uint64) bool { return false }
