// Package pgwasm is PostgreSQL's parser for programs that are built without cgo:
// libpg_query, compiled to WebAssembly, which wazero compiles once more to machine
// code when it is first needed. It gives the same answers as pg_query_go's functions.
//
// The file libpg_query.wasm is that of github.com/wasilibs/go-pgquery, which was
// built from the C sources of pg_query_go v5.1.0. It is kept here, and not fetched
// as a module, for two reasons: a program that needs a later go-pgquery for something
// else would get another grammar; and go-pgquery compiles the parser anew for each
// caller who comes while the others are busy, and again after two garbage
// collections, which takes seconds each time.
package pgwasm

import (
	"errors"
	"fmt"
)

//go:generate go run ./fetch

// Error is the complaint of the parser or the scanner about a text.
type Error struct {
	Message   string
	Cursorpos int // the number of the character, from 1, 0 if it isn't known
}

// Error returns the parser's message.
func (e *Error) Error() string { return e.Message }

// ErrFailed is what an error wraps if the parser came to no answer.
var ErrFailed = errors.New("the SQL parser failed")

// ParseToJSON returns the tree of a text as JSON.
func ParseToJSON(sql string) (tree string, err error) {
	err = run(sql, parse, func(result []byte) { tree = string(result) })
	return tree, err
}

// ParseToProtobuf returns the tree of a text as a protobuf message.
func ParseToProtobuf(sql string) (tree []byte, err error) {
	err = run(sql, parseProtobuf, func(result []byte) { tree = append(tree, result...) })
	return tree, err
}

// ScanToProtobuf returns the tokens of a text as a protobuf message.
func ScanToProtobuf(sql string) (tokens []byte, err error) {
	err = run(sql, scan, func(result []byte) { tokens = append(tokens, result...) })
	return tokens, err
}

// DeparseFromProtobuf writes a tree, a protobuf message, as a text.
func DeparseFromProtobuf(tree []byte) (sql string, err error) {
	err = run(string(tree), deparse, func(result []byte) { sql = string(result) })
	return sql, err
}

// run calls a function of the parser on an instance of it. The result is only valid
// while read runs.
func run(input string, f function, read func(result []byte)) error {
	in, err := acquire()
	if err != nil {
		return fmt.Errorf("%w to start: %w", ErrFailed, err)
	}
	defer release(in)
	return in.call(input, f, read)
}
