// Package compat has tests only: what GORM, bun, sqlx, sqlc and ent do to
// protected tables through fencerow, as the present holder, as a stale one and
// without a token. PostgreSQL is asked afterwards what became of the rows.
//
//	make compat
//
// prints a table of it. Each cell is a test that runs against PostgreSQL with
// and without the wall. The snippets of docs/orm stand in this package, too.
package compat
