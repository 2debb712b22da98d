package rewrite

import (
	"bytes"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
	"google.golang.org/protobuf/encoding/protowire"
)

// token is one token of a text.
type token struct {
	kind       pg_query.Token
	start, end int
}

// scan splits a text into its tokens, comments included.
//
// The scanner's own ends can't be used: for U&"..." and other tokens that take
// several rules of the lexer they are those of the last rule. Between the start
// of a token and that of the next there is nothing but white space behind it.
func scan(sql string) ([]token, error) {
	message, err := parser.ScanToProtobuf(sql)
	if err != nil {
		return nil, err
	}
	tokens := make([]token, 0, bytes.Count(message, []byte{tokenTag}))
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message = message[n:]
		if number != tokensField || kind != protowire.BytesType {
			n = protowire.ConsumeFieldValue(number, kind, message)
		} else {
			var one []byte
			one, n = protowire.ConsumeBytes(message)
			tokens = append(tokens, readToken(one))
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message = message[n:]
	}
	for i := range tokens {
		t, end := &tokens[i], len(sql)
		if i+1 < len(tokens) {
			end = tokens[i+1].start
		}
		t.end = t.start + len(strings.TrimRight(sql[t.start:end], " \t\r\n\f\v"))
	}
	return tokens, nil
}

// The fields of the scanner's result, which are read one by one: as Go values a
// text's tokens take three times the memory of its tree.
const (
	tokensField = 2
	startField  = 1
	kindField   = 4

	tokenTag = tokensField<<3 | byte(protowire.BytesType)
)

// readToken reads a token's kind and start.
func readToken(message []byte) (t token) {
	for len(message) > 0 {
		number, _, n := protowire.ConsumeTag(message)
		if n < 0 {
			return t
		}
		value, m := protowire.ConsumeVarint(message[n:]) // all its fields are numbers
		if m < 0 {
			return t
		}
		switch number {
		case startField:
			t.start = int(value)
		case kindField:
			t.kind = pg_query.Token(value)
		}
		message = message[n+m:]
	}
	return t
}

// lexed is a text whose tokens are found once, however often they are asked for:
// that takes longer than the parser needs for the text.
type lexed struct {
	sql    string
	tokens []token
	err    error
	done   bool
}

func (l *lexed) scan() ([]token, error) {
	if !l.done {
		l.tokens, l.err = scan(l.sql)
		l.done = true
	}
	return l.tokens, l.err
}

// significant returns the tokens that are no comments.
func (l *lexed) significant() []token {
	tokens, err := l.scan()
	if err != nil {
		return nil
	}
	if !slices.ContainsFunc(tokens, isComment) {
		return tokens
	}
	return slices.DeleteFunc(slices.Clone(tokens), isComment)
}

func isComment(t token) bool {
	return t.kind == pg_query.Token_SQL_COMMENT || t.kind == pg_query.Token_C_COMMENT
}

func isLiteral(t token) bool {
	switch t.kind {
	case pg_query.Token_SCONST, pg_query.Token_USCONST, pg_query.Token_ICONST, pg_query.Token_FCONST, pg_query.Token_BCONST, pg_query.Token_XCONST:
		return true
	}
	return false
}
