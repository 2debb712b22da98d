// Package fencerow makes distributed locks safe on PostgreSQL.
//
// A lock holder that pauses past its lease wakes up and overwrites its
// successor's work. A fencing token, compared by the storage in the same
// statement as the write, stops it; fencerow's driver sees to it that no
// statement forgets the comparison.
//
// The module's packages:
//
//   - driver: the database/sql driver, registered as "fencerow"
//   - tokenctx: the token in the context
//   - rewrite: the check of a statement, without a database
//   - migrations: what the database itself needs
//   - lease: leases and tokens from PostgreSQL
//   - lint: forgotten guards as lint findings, in tests
//
// This package itself holds no code, only the test of the whole.
package fencerow
