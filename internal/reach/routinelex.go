package reach

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// bodyToken is a token of a body, with ASCII letters lower-cased.
type bodyToken struct {
	text  string
	kind  tokenKind
	inner []bodyToken // of a string: what is in it
	raw   string      // of a string: its text

	isEscaped bool // of a string: it is written with escapes
}

type tokenKind uint8

const (
	punctToken tokenKind = iota // a run of operator characters, or another single one
	wordToken                   // without quotes
	nameToken                   // in double quotes, which are left out
	stringToken
)

// is tells a word without quotes, or punctuation.
func (t bodyToken) is(text string) bool { return t.kind <= wordToken && t.text == text }

// name returns what may be a name, "" for anything else.
func (t bodyToken) name() string {
	if t.kind == wordToken || t.kind == nameToken {
		return t.text
	}
	return ""
}

func (t bodyToken) isOperator() bool {
	return t.kind == punctToken && t.text != "" && sqltext.IsOperatorByte(t.text[0])
}

// lexBody splits a body into tokens. In a string that isn't code (it may be a
// piece of it) comments are words like others.
func lexBody(s string, code bool) (into []bodyToken) {
	for s != "" {
		var t bodyToken
		n := 1
		switch {
		case code && strings.HasPrefix(s, "--"):
			n = endOf(s, strings.IndexAny(s, "\n\r"))
		case code && strings.HasPrefix(s, "/*"):
			n, _ = sqltext.CommentEnd(s)
		case s[0] == '"' || s[0] == '\'' || prefixed(s) > 0:
			var joined []bodyToken
			t, joined, n = lexQuoted(s, code)
			into = append(into, joined...)
		case sqltext.IsWordByte(s[0]):
			n = runEnd(s)
			t = bodyToken{text: cutName(lowerASCII(s[:n])), kind: wordToken}
		case sqltext.DollarTag(s) != "":
			tag := sqltext.DollarTag(s)
			n = endOf(s, strings.Index(s[len(tag):], tag)+2*len(tag)-1)
			text := strings.TrimSuffix(s[len(tag):n], tag)
			t = bodyToken{kind: stringToken, inner: lexBody(text, code), raw: text}
		case sqltext.IsOperatorByte(s[0]):
			n = operatorEnd(s, code)
			t.text = s[:n]
		case s[0] > ' ':
			t.text = s[:1]
		}
		if t.text != "" || t.kind == stringToken {
			into = append(into, t)
		}
		s = s[n:]
	}
	return into
}

// prefixed returns how much stands before the quote of E”, U&” and U&"", 0
// if nothing does.
func prefixed(s string) int {
	switch {
	case len(s) > 1 && s[0]|0x20 == 'e' && s[1] == '\'':
		return 1
	case len(s) > 2 && s[0]|0x20 == 'u' && s[1] == '&' && (s[2] == '\'' || s[2] == '"'):
		return 2
	}
	return 0
}

// cutName cuts a name that is longer than PostgreSQL keeps.
func cutName(name string) string {
	for len(name) > sqltext.MaxName {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
	return name
}

// readUescape reads the UESCAPE '!' that a text begins with, behind white space and
// comments. The escape is "" if there is none.
func readUescape(s string) (escape string, n int) {
	const word = "uescape"
	n = endOfBlank(s)
	if len(s) < n+len(word) || !strings.EqualFold(s[n:n+len(word)], word) {
		return "", 0
	}
	n += len(word)
	n += endOfBlank(s[n:])
	if n >= len(s) || s[n] != '\'' {
		return "", 0
	}
	_, size := utf8.DecodeRuneInString(s[n+1:])
	if end := n + 1 + size; size > 0 && end < len(s) && s[end] == '\'' {
		return s[n+1 : end], end + 1
	}
	return "", 0
}

// endOfBlank returns how much white space and how many comments a text begins with.
func endOfBlank(s string) int {
	n := 0
	for n < len(s) {
		switch {
		case strings.IndexByte(" \t\n\r\f\v", s[n]) >= 0:
			n++
		case strings.HasPrefix(s[n:], "--"):
			n += endOf(s[n:], strings.IndexAny(s[n:], "\n\r"))
		case strings.HasPrefix(s[n:], "/*"):
			end, _ := sqltext.CommentEnd(s[n:])
			n += end
		default:
			return n
		}
	}
	return n
}

// lexQuoted reads a string or a quoted name, with its escapes. A string that
// goes on behind the end of a line is one constant. Where the text may be only a
// piece of SQL, so that the quotes may be of other strings, it is read in
// either way: as the pieces, too.
func lexQuoted(s string, code bool) (t bodyToken, pieces []bodyToken, n int) {
	before := prefixed(s)
	quote := s[before]
	length, closed := sqltext.QuotedEnd(s[before:], before == 1)
	n = before + length
	if !closed && quote == '"' || !closed && !code {
		return bodyToken{text: s[:1]}, nil, 1 // a piece of text, with a quote in it
	}
	text := unquote(s[before:n], quote, before == 1, closed)
	whole := text
	for closed && quote == '\'' {
		gap := len(continuation.FindString(s[n:]))
		if gap == 0 {
			break
		}
		length, closed = sqltext.QuotedEnd(s[n+gap-1:], before == 1)
		if !closed && !code {
			break
		}
		piece := unquote(s[n+gap-1:n+gap-1+length], quote, before == 1, closed)
		if !code {
			pieces = append(pieces, bodyToken{kind: stringToken, inner: lexBody(text, false), raw: text})
			text = piece
		}
		whole, n = whole+piece, n+gap-1+length
	}
	if pieces != nil {
		pieces = append(pieces, bodyToken{kind: stringToken, inner: lexBody(text, false), raw: text})
	}
	if before == 2 {
		escape := "\\"
		if other, length := readUescape(s[n:]); other != "" {
			escape, n = other, n+length
		}
		whole = sqltext.UnescapeUnicode(whole, escape)
	}
	if quote == '"' {
		return bodyToken{text: cutName(lowerASCII(whole)), kind: nameToken}, nil, n
	}
	isEscaped := before == 2 || before == 1 && strings.Contains(s[:n], `\`)
	return bodyToken{kind: stringToken, inner: lexBody(whole, false), raw: whole, isEscaped: isEscaped}, pieces, n
}

// continuation is what stands between two pieces of one string, with the quote of
// the second: white space and comments, and the end of a line among them.
var continuation = regexp.MustCompile(`^[ \t\f\v]*(?:--[^\n\r]*)?[\n\r](?:[ \t\f\v\n\r]|--[^\n\r]*[\n\r])*'`)

// unquote takes the quotes away, and decodes what is written in them.
func unquote(s string, quote byte, escapes, closed bool) string {
	text := s[1:]
	if closed {
		text = text[:len(text)-1]
	}
	text = strings.ReplaceAll(text, string([]byte{quote, quote}), string(quote))
	if escapes {
		text = sqltext.Unescape(text)
	}
	return text
}

// operatorEnd returns the length of a run of operator characters, which a
// comment ends.
func operatorEnd(s string, code bool) int {
	n := 1
	for n < len(s) && sqltext.IsOperatorByte(s[n]) {
		if code && (strings.HasPrefix(s[n:], "--") || strings.HasPrefix(s[n:], "/*")) {
			break
		}
		n++
	}
	return n
}

func runEnd(s string) int {
	n := 0
	for n < len(s) && sqltext.IsNameByte(s[n]) {
		n++
	}
	return n
}

// endOf turns the index of a last byte into a length; what has no end goes on
// to the end of the text.
func endOf(s string, last int) int {
	if last < 0 || last >= len(s) {
		return len(s)
	}
	return last + 1
}
