package parser

import (
	"bytes"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/encoding/protowire"
)

// Token is one token of a text. Comments are tokens, too.
type Token struct {
	Kind       TokenKind
	word       wordClass
	Start, End int // in bytes
}

// TokenKind is the kind of a token. The zero value is no kind of token.
type TokenKind int32

// wordClass tells how a key word may be used.
type wordClass int8

const reservedWord = wordClass(pg_query.KeywordKind_RESERVED_KEYWORD)

// Scan splits a text into its tokens, comments included.
//
// The scanner's own ends can't be used: for U&"..." and other tokens that take
// several rules of the lexer they are those of the last rule. Between the start
// of a token and that of the next there is nothing but white space behind it.
func Scan(sql string) ([]Token, error) {
	message, err := scanToProtobuf(sql)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, 0, bytes.Count(message, []byte{tokenTag}))
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
			end = tokens[i+1].Start
		}
		t.End = t.Start + len(strings.TrimRight(sql[t.Start:end], " \t\r\n\f\v"))
	}
	return tokens, nil
}

// The fields of the scanner's result, which are read one by one: as Go values the
// tokens of a text take three times the memory of its tree.
const (
	tokensField  = 2
	startField   = 1
	kindField    = 4
	keywordField = 5

	tokenTag = tokensField<<3 | byte(protowire.BytesType)
)

// readToken reads the kind of a token and where it starts.
func readToken(message []byte) (t Token) {
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
			t.Start = int(value)
		case kindField:
			t.Kind = TokenKind(value)
		case keywordField:
			t.word = wordClass(value)
		}
		message = message[n+m:]
	}
	return t
}

// IsComment reports whether the token is a comment of either kind.
func (t Token) IsComment() bool { return t.Kind == LINECOMMENT || t.Kind == BLOCKCOMMENT }

// IsLiteral reports whether the token is a string, a number or another constant.
func (t Token) IsLiteral() bool {
	switch t.Kind {
	case SCONST, USCONST, ICONST, FCONST, BCONST, XCONST:
		return true
	}
	return false
}

// IsName reports whether the token may be the name of something: an identifier, or
// any key word.
func (t Token) IsName() bool {
	return t.Kind == IDENT || t.word != wordClass(pg_query.KeywordKind_NO_KEYWORD)
}

// IsReserved reports whether the token is a key word that can't be a name.
func (t Token) IsReserved() bool { return t.word == reservedWord }
