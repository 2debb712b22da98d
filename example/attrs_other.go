//go:build unix && !linux

package main

import "syscall"

// attrs gives a worker a process group of its own. It keeps a terminal's
// Ctrl-C for the scheduler, which then cleans up; and should the scheduler be
// killed, the group is an orphaned one, and POSIX has the kernel send SIGHUP
// and SIGCONT to what is frozen in it. A worker that is not frozen sees the end
// of its standard input.
func attrs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
