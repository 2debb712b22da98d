// Package record keeps the text of every statement that reaches pgx through a
// database/sql pool, and writes them to files that stay the same from one run
// to the next.
package record
