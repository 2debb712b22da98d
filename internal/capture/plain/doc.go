// Package plain has the tables of programs that write their SQL themselves or
// with a builder.
package plain

import _ "embed"

// Schema makes the tables.
//
//go:embed schema.sql
var Schema string
