//go:build cgo

// Package parsertest compares the two forms of PostgreSQL's parser, for tests: the one
// of programs that are built with cgo, and the one of others.
package parsertest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pganalyze/pg_query_go/v5/parser"

	"github.com/fencerow/fencerow/internal/parser/pgwasm"
)

// Difference says in what the two parsers differ about a text, "" if in nothing:
// its tree in both forms, its tokens, the text of its tree, and the errors.
// If isDeep is set, the tree is too deep to be written as a text.
func Difference(sql string, isDeep bool) string {
	if d := differ("tokens", sql, parser.ScanToProtobuf, pgwasm.ScanToProtobuf); d != "" {
		return d
	}
	if d := differ("JSON", sql, parser.ParseToJSON, pgwasm.ParseToJSON); d != "" {
		return d
	}
	if d := differ("message", sql, parser.ParseToProtobuf, pgwasm.ParseToProtobuf); d != "" || isDeep {
		return d
	}
	tree, err := parser.ParseToProtobuf(sql)
	if err != nil {
		return ""
	}
	return differ("text", tree, parser.DeparseFromProtobuf, pgwasm.DeparseFromProtobuf)
}

func differ[In, Out string | []byte](what string, input In, native, wasm func(In) (Out, error)) string {
	want, wantErr := native(input)
	got, gotErr := wasm(input)
	if !bytes.Equal([]byte(want), []byte(got)) {
		return fmt.Sprintf("%s: native %q, WebAssembly %q", what, want, got)
	}
	if describeNative(wantErr) != describeWasm(gotErr) {
		return fmt.Sprintf("%s: native error %s, WebAssembly %s", what, describeNative(wantErr), describeWasm(gotErr))
	}
	return ""
}

func describeNative(err error) string {
	var own *parser.Error
	if errors.As(err, &own) {
		return fmt.Sprintf("%q at %d", own.Message, own.Cursorpos)
	}
	return fmt.Sprint(err)
}

func describeWasm(err error) string {
	var own *pgwasm.Error
	if errors.As(err, &own) {
		return fmt.Sprintf("%q at %d", own.Message, own.Cursorpos)
	}
	return fmt.Sprint(err)
}
