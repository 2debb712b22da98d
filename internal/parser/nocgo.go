//go:build !cgo

package parser

// PostgreSQL's parser is C: set CGO_ENABLED=1 and install a C compiler.
var _ = fencerow_needs_cgo_and_a_C_compiler
