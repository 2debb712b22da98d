//go:build !cgo

package parser

import (
	"errors"

	"github.com/fencerow/fencerow/internal/parser/pgwasm"
)

// The parser in C, as WebAssembly.

// Start makes the parser ready in the background, which takes seconds: a text that is
// parsed before has to wait.
func Start() { pgwasm.Start() }

// StackSize returns how many bytes of stack the parser has, 0 if that isn't known.
func StackSize() int { return pgwasm.StackSize }

func parseToJSON(sql string) (string, error) {
	tree, err := pgwasm.ParseToJSON(sql)
	return tree, asError(err)
}

func parseToProtobuf(sql string) ([]byte, error) {
	tree, err := pgwasm.ParseToProtobuf(sql)
	return tree, asError(err)
}

func scanToProtobuf(sql string) ([]byte, error) {
	tokens, err := pgwasm.ScanToProtobuf(sql)
	return tokens, asError(err)
}

func deparseFromProtobuf(tree []byte) (string, error) {
	sql, err := pgwasm.DeparseFromProtobuf(tree)
	return sql, asError(err)
}

// asError keeps the type of the parser's own error inside of this package.
func asError(err error) error {
	var own *pgwasm.Error
	if errors.As(err, &own) {
		return &Error{own.Message, own.Cursorpos}
	}
	return err
}
