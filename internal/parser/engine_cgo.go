//go:build cgo

package parser

import (
	"errors"

	"github.com/pganalyze/pg_query_go/v5/parser"

	"github.com/fencerow/fencerow/internal/cstack"
)

// The parser in C, as the compiler of C makes it.

// Start does nothing: the parser in C is there when the program starts.
func Start() {}

// StackSize returns how many bytes of stack the parser has, 0 if that isn't known.
func StackSize() int { return cstack.Size() }

func parseToJSON(sql string) (string, error) {
	tree, err := parser.ParseToJSON(sql)
	return tree, asError(err)
}

func parseToProtobuf(sql string) ([]byte, error) {
	tree, err := parser.ParseToProtobuf(sql)
	return tree, asError(err)
}

func scanToProtobuf(sql string) ([]byte, error) {
	tokens, err := parser.ScanToProtobuf(sql)
	return tokens, asError(err)
}

func deparseFromProtobuf(tree []byte) (string, error) {
	sql, err := parser.DeparseFromProtobuf(tree)
	return sql, asError(err)
}

// asError keeps the type of the parser's own error inside of this package.
func asError(err error) error {
	var own *parser.Error
	if errors.As(err, &own) {
		return &Error{own.Message, own.Cursorpos}
	}
	return err
}
