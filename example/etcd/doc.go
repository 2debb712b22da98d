// Command etcd is the pause scenario under etcd's own lock, a
// [concurrency.Mutex], with a number of etcd's as the token:
//
//	go run ./example/etcd
//
// Worker A locks, writes, and is paused until its lease is over. etcd gives the
// lock to worker B, which writes too. Then A wakes up, still believes that the
// lock is its own, and writes once more: that write is refused, because it
// carries the older token.
//
// token.go is the part to copy, and [protect] has what to register a table
// with whose tokens don't come from PostgreSQL.
package main
