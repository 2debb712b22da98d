package main

import "syscall"

// attrs makes the kernel kill a worker when the thread that started it ends,
// which works on a frozen one too. A process group of its own keeps a
// terminal's Ctrl-C for the scheduler, which then cleans up.
func attrs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
