package sqlfiles

import (
	"errors"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
)

// token is one token of a file; comments are tokens, too.
type token struct {
	kind       parser.TokenKind
	keyword    pg_query.KeywordKind
	start, end int
}

// fault is a place from which on a file can't be read.
type fault struct {
	offset int
	reason string
}

// lex splits code into tokens by PostgreSQL's lexer. Where it fails, the tokens
// before that place are returned with the fault.
func lex(code string) ([]token, *fault) {
	var found *fault
	if at, reason := unreadable(code); at >= 0 {
		code, found = code[:at], &fault{at, reason}
	}
	for {
		tokens, err := scan(code)
		if err == nil {
			return tokens, found
		}
		var perr *parser.Error
		if !errors.As(err, &perr) || perr.Cursorpos < 1 {
			return nil, &fault{0, "the lexer failed"}
		}
		at := byteOffset(code, perr.Cursorpos-1)
		reason, _, _ := strings.Cut(perr.Message, " at or near ") // what is there may be a literal
		if at >= len(code) {
			return nil, &fault{0, reason}
		}
		code, found = code[:at], &fault{at, reason}
	}
}

// scan lets a token end where white space before the next begins: the scanner's
// own ends are wrong for U&"..." and other tokens that take several of its rules.
func scan(code string) ([]token, error) {
	result, err := pg_query.Scan(code)
	if err != nil {
		return nil, err
	}
	tokens := make([]token, len(result.Tokens))
	for i, t := range result.Tokens {
		start, end := int(t.Start), len(code)
		if i+1 < len(result.Tokens) {
			end = int(result.Tokens[i+1].Start)
		}
		end = start + len(strings.TrimRight(code[start:end], " \t\r\n\f\v"))
		tokens[i] = token{t.Token, t.KeywordKind, start, end}
	}
	return tokens, nil
}

// maxRestarts is how many comment and plus signs may stand in one run of
// operator characters: the lexer reads it anew for each.
const maxRestarts = 64

// unreadable returns the first place that must not reach the lexer, -1 if there
// is none.
func unreadable(code string) (int, string) {
	restarts, run := 0, 0
	for i := range len(code) {
		switch c := code[i]; {
		case c == 0:
			return i, "a NUL byte"
		case strings.IndexByte("~!@#^&|`?+-*/%<>=", c) < 0:
			restarts, run = 0, i+1
		case c == '+' || c == '*' && i > 0 && code[i-1] == '/':
			if restarts++; restarts > maxRestarts {
				return run, "a run of too many plus signs"
			}
		}
	}
	return -1, ""
}

// byteOffset is where a character begins: the lexer counts characters in its
// errors.
func byteOffset(text string, character int) int {
	for i := range text {
		if character == 0 {
			return i
		}
		character--
	}
	return len(text)
}

func (t token) isComment() bool {
	return t.kind == parser.LINECOMMENT || t.kind == parser.BLOCKCOMMENT
}

func (t token) isLiteral() bool {
	switch t.kind {
	case parser.SCONST, parser.USCONST, parser.ICONST, parser.FCONST, parser.BCONST, parser.XCONST:
		return true
	}
	return false
}

// isName reports whether the token can be the name of something.
func (t token) isName() bool {
	return t.kind == parser.IDENT || t.keyword != pg_query.KeywordKind_NO_KEYWORD
}

// isReserved reports whether the token is a key word that is no name.
func (t token) isReserved() bool { return t.keyword == pg_query.KeywordKind_RESERVED_KEYWORD }
