//go:build unix

package pgdownload

import "syscall"

// restrictNewFiles keeps new files from other users, until the function that it returns
// is called.
func restrictNewFiles() func() {
	old := syscall.Umask(0o077)
	return func() { syscall.Umask(old) }
}
