package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// On Windows an existing server can be used, and none be started: locks of files, users
// and signals, by which a server of our own is started and swept, are those of Unix.
var errWindows = fmt.Errorf("a PostgreSQL server can be started on Unix only: set %s to a running one (%w)", envURL, errors.ErrUnsupported)

// canRunServer says why no server of our own can run here.
func canRunServer() error { return errWindows }

func openLock(path string, _ bool) (*os.File, error) {
	return nil, &fs.PathError{Op: "lock", Path: path, Err: errWindows}
}

func ownerOf(fs.FileInfo) account { return account{-1, -1} }

func kill(int, syscall.Signal) error { return errWindows }

func halt(int) error { return errWindows }

func attrs(*account) *syscall.SysProcAttr { return nil }

func processes() ([]procInfo, error) { return nil, errWindows }

func hasMemory(string, uint64) bool { return false }
