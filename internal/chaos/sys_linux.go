package main

import "syscall"

// attrs makes a worker end when this process does, also one that is stopped.
// Its own process group keeps a terminal's Ctrl-C from it.
func attrs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
