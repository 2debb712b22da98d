package rewrite

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
)

// lexed is a text whose tokens are found once, however often they are asked for:
// that takes longer than the parser needs for the text.
type lexed struct {
	sql    string
	tokens []parser.Token
	err    error
	done   bool
}

func (l *lexed) scan() ([]parser.Token, error) {
	if !l.done {
		l.tokens, l.err = parser.Scan(l.sql)
		l.done = true
	}
	return l.tokens, l.err
}

// significant returns the tokens that are no comments.
func (l *lexed) significant() []parser.Token {
	tokens, err := l.scan()
	if err != nil {
		return nil
	}
	if !slices.ContainsFunc(tokens, parser.Token.IsComment) {
		return tokens
	}
	return slices.DeleteFunc(slices.Clone(tokens), parser.Token.IsComment)
}
