//go:build !cgo

package rewrite

// PostgreSQL's parser is written in C: without cgo nothing can be checked.
var _ = fencerow_needs_CGO_ENABLED_1_and_a_C_compiler
