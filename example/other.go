//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "example: it freezes a worker with SIGSTOP, which only unix systems have: run it on Linux, macOS or under WSL")
	os.Exit(1)
}
