package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
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
	result, err := pg_query.Scan(sql)
	if err != nil {
		return nil, err
	}
	tokens := make([]token, len(result.Tokens))
	for i, t := range result.Tokens {
		end := len(sql)
		if i+1 < len(result.Tokens) {
			end = int(result.Tokens[i+1].Start)
		}
		start := int(t.Start)
		end = start + len(strings.TrimRight(sql[start:end], " \t\r\n\f\v"))
		tokens[i] = token{t.Token, start, end}
	}
	return tokens, nil
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
