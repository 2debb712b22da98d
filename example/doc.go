// Command example shows what a fencing token is for, with real processes:
//
//	go run ./example
//
// A scheduler gives the lock on a row to worker A, which is frozen in the
// middle of its work. The lock goes to worker B, which writes the row. Then A
// wakes up, still believes that the lock is its own, and writes too. With
// fencerow that write is refused, because it carries the older token; with
// -unsafe the same run shows how it destroys B's work.
//
// handlers.go is the part to copy: what a service does with the token of a
// request. The rest of the files put the workers on stage.
package main
