package sqltext

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
)

// Text is a text whose tokens are found once, however often they are asked for:
// finding them takes longer than the parser needs for the text.
type Text struct {
	SQL    string
	tokens []parser.Token
	err    error
	done   bool
}

// Tokens returns the tokens of the text, comments included.
func (l *Text) Tokens() ([]parser.Token, error) {
	if !l.done {
		l.tokens, l.err = parser.Scan(l.SQL)
		l.done = true
	}
	return l.tokens, l.err
}

// Significant returns the tokens that are not comments.
func (l *Text) Significant() []parser.Token {
	tokens, err := l.Tokens()
	if err != nil {
		return nil
	}
	if !slices.ContainsFunc(tokens, parser.Token.IsComment) {
		return tokens
	}
	return slices.DeleteFunc(slices.Clone(tokens), parser.Token.IsComment)
}

// HasOtherPlaceholders reports whether the text may have placeholders of another
// kind than PostgreSQL's.
func (l *Text) HasOtherPlaceholders() bool {
	tokens, err := l.Tokens()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(tokens, func(t parser.Token) bool {
		word := l.SQL[t.Start:t.End]
		return word == "?" || word == "@" || word == ":"
	})
}

// WordAt returns the token at an offset, "" if it is a literal.
func (l *Text) WordAt(offset int) string {
	tokens, err := l.Tokens()
	if err != nil {
		return ""
	}
	for _, t := range tokens {
		if t.Start == offset && !t.IsLiteral() {
			return l.SQL[t.Start:t.End]
		}
	}
	return ""
}
