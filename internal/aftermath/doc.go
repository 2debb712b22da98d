// Package aftermath interprets what is known of a statement once it has been sent: how
// many rows each part of it wrote, by the counts that came back, and what an error of the
// wall says of the write that it ended.
//
// The package knows neither database/sql nor a connection: package driver is one interface
// on top of it, and another may be built on the same floor.
//
//   - counts.go: how many rows a part wrote, found and should have written
//   - wall.go: the errors of the triggers of fencing.wall and fencing.seal
package aftermath
