//go:build !linux

package main

import "syscall"

// attrs puts a worker into its own process group, which keeps a terminal's
// Ctrl-C from it.
func attrs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
