// Package parser is the only package that knows PostgreSQL's parser, which is
// written in C: github.com/pganalyze/pg_query_go. It splits a text into tokens,
// makes its tree, writes a tree as a text again, and lists the kinds of nodes that
// the grammar has. Whoever replaces the parser replaces this package.
//
// The parser has no guard for its own stack: a text must have passed the bounds of
// package sqltext before it is parsed.
package parser

import (
	"errors"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Error is the parser's or the scanner's complaint about a text.
type Error struct {
	Message string // may quote a literal of the text behind " at or near "

	// Character is the number of the character at which it was found, from 1, and 0
	// if that isn't known. It counts characters, not bytes.
	Character int
}

// Error returns the parser's message.
func (e *Error) Error() string { return e.Message }

// asError keeps the type of the parser's own error inside of this package.
func asError(err error) error {
	var own *parser.Error
	if errors.As(err, &own) {
		return &Error{own.Message, own.Cursorpos}
	}
	return err
}

// ParseJSON returns the tree of a text as the JSON that the parser writes.
func ParseJSON(sql string) (string, error) {
	tree, err := parser.ParseToJSON(sql)
	if err != nil {
		return "", asError(err)
	}
	return tree, nil
}

// ParseMessages returns the statements of a text as the parser's own messages. It
// takes longer than ParseJSON, and is for tests and benchmarks that compare.
func ParseMessages(sql string) ([]protoreflect.Message, error) {
	tree, err := pg_query.Parse(sql)
	if err != nil {
		return nil, asError(err)
	}
	statements := make([]protoreflect.Message, len(tree.Stmts))
	for i, statement := range tree.Stmts {
		statements[i] = statement.ProtoReflect()
	}
	return statements, nil
}
