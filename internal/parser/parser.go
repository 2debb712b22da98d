// Package parser is the only package that knows PostgreSQL's parser, which is
// written in C: github.com/pganalyze/pg_query_go. It splits a text into tokens,
// makes its tree, writes a tree as a text again, and lists the kinds of nodes that
// the grammar has. Whoever replaces the parser replaces this package.
//
// A program that is built without cgo has the same parser as WebAssembly (package
// pgwasm), which gives the same answers and takes longer.
//
// The parser has no guard for its own stack: a text must have passed the bounds of
// package sqltext before it is parsed.
package parser

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
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

// ParseJSON returns the tree of a text as the JSON that the parser writes.
func ParseJSON(sql string) (string, error) {
	if err := checkPlaceholders(sql); err != nil {
		return "", err
	}
	return parseToJSON(sql)
}

// ParseMessages returns the statements of a text as the parser's own messages. It
// takes longer than ParseJSON, and is for tests and benchmarks that compare.
func ParseMessages(sql string) ([]protoreflect.Message, error) {
	tree, err := parseMessage(sql)
	if err != nil {
		return nil, err
	}
	statements := make([]protoreflect.Message, len(tree.Stmts))
	for i, statement := range tree.Stmts {
		statements[i] = statement.ProtoReflect()
	}
	return statements, nil
}

func parseMessage(sql string) (*pg_query.ParseResult, error) {
	if err := checkPlaceholders(sql); err != nil {
		return nil, err
	}
	message, err := parseToProtobuf(sql)
	if err != nil {
		return nil, err
	}
	tree := &pg_query.ParseResult{}
	if err := proto.Unmarshal(message, tree); err != nil {
		return nil, err
	}
	return tree, nil
}

// checkPlaceholders refuses a placeholder whose number is too large, as PostgreSQL 17
// does and the grammar of 16 doesn't: what it makes of such a number depends on the C
// library, and may be the number of another placeholder.
func checkPlaceholders(sql string) error {
	if !mayHaveLargePlaceholder(sql) {
		return nil
	}
	tokens, err := Scan(sql)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.Kind != PARAM {
			continue
		}
		text := sql[t.Start:t.End]
		if number, err := strconv.ParseInt(text[1:], 10, 64); err != nil || number > math.MaxInt32 {
			return &Error{
				Message:   fmt.Sprintf("parameter number too large at or near %q", text),
				Character: utf8.RuneCountInString(sql[:t.Start]) + 1,
			}
		}
	}
	return nil
}

// mayHaveLargePlaceholder reports whether a $ has ten digits behind it, wherever it
// stands.
func mayHaveLargePlaceholder(sql string) bool {
	const digits = 10 // of the largest number that fits
	for {
		at := strings.IndexByte(sql, '$')
		if at < 0 {
			return false
		}
		sql = sql[at+1:]
		n := 0
		for n < len(sql) && '0' <= sql[n] && sql[n] <= '9' {
			n++
		}
		if n >= digits {
			return true
		}
	}
}
