package driver

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// bodyToken is a token of a body, with ASCII letters lower-cased.
type bodyToken struct {
	text  string
	kind  tokenKind
	inner []bodyToken // of a string: what is in it
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

const operatorBytes = "+-*/<>=~!@#%^&|`?"

func (t bodyToken) isOperator() bool {
	return t.kind == punctToken && t.text != "" && strings.IndexByte(operatorBytes, t.text[0]) >= 0
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '$' || b >= 0x80
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
			n = endOfComment(s)
		case s[0] == '"' || s[0] == '\'' || prefixed(s) > 0:
			var joined []bodyToken
			t, joined, n = lexQuoted(s, code)
			into = append(into, joined...)
		case isWordByte(s[0]) && s[0] != '$':
			n = runEnd(s)
			t = bodyToken{text: cutName(lowerASCII(s[:n])), kind: wordToken}
		case dollarTag(s) != "":
			tag := dollarTag(s)
			n = endOf(s, strings.Index(s[len(tag):], tag)+2*len(tag)-1)
			t = bodyToken{kind: stringToken, inner: lexBody(strings.TrimSuffix(s[len(tag):n], tag), code)}
		case strings.IndexByte(operatorBytes, s[0]) >= 0:
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

// maxName is the longest name that PostgreSQL keeps, in bytes: a longer one is cut.
const maxName = 63

func cutName(name string) string {
	for len(name) > maxName {
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
			n += endOfComment(s[n:])
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
	length, closed := closing(s[before:], quote, before == 1)
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
		length, closed = closing(s[n+gap-1:], quote, before == 1)
		if !closed && !code {
			break
		}
		piece := unquote(s[n+gap-1:n+gap-1+length], quote, before == 1, closed)
		if !code {
			pieces = append(pieces, bodyToken{kind: stringToken, inner: lexBody(text, false)})
			text = piece
		}
		whole, n = whole+piece, n+gap-1+length
	}
	if pieces != nil {
		pieces = append(pieces, bodyToken{kind: stringToken, inner: lexBody(text, false)})
	}
	if before == 2 {
		escape := "\\"
		if other, length := readUescape(s[n:]); other != "" {
			escape, n = other, n+length
		}
		whole = unescapeUnicode(whole, escape)
	}
	if quote == '"' {
		return bodyToken{text: cutName(lowerASCII(whole)), kind: nameToken}, nil, n
	}
	return bodyToken{kind: stringToken, inner: lexBody(whole, false)}, pieces, n
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
		text = unescape(text)
	}
	return text
}

var unicodeEscape = regexp.MustCompile(`^(?:[0-9A-Fa-f]{4}|\+[0-9A-Fa-f]{6})`)

// unescapeUnicode decodes the escapes of U&"".
func unescapeUnicode(s, escape string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, escape)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		code := unicodeEscape.FindString(rest)
		if code == "" { // doubled
			b.WriteString(escape)
			s = strings.TrimPrefix(rest, escape)
			continue
		}
		writeRune(&b, strings.TrimPrefix(code, "+"), 16)
		s = rest[len(code):]
	}
}

var stringEscape = regexp.MustCompile(`^(?:[0-7]{1,3}|x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})`)

// unescape decodes the escapes of an E string.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\\")
		b.WriteString(before)
		if !found || rest == "" {
			return b.String()
		}
		switch code := stringEscape.FindString(rest); {
		case code == "":
			r, size := utf8.DecodeRuneInString(rest)
			if at := strings.IndexRune("bfnrt", r); at >= 0 {
				r = rune("\b\f\n\r\t"[at])
			}
			b.WriteRune(r)
			rest = rest[size:]
		case code[0] == 'u' || code[0] == 'U':
			writeRune(&b, code[1:], 16)
			rest = rest[len(code):]
		default:
			digits, base := strings.CutPrefix(code, "x")
			v, _ := strconv.ParseUint(digits, map[bool]int{true: 16, false: 8}[base], 16)
			b.WriteByte(byte(v))
			rest = rest[len(code):]
		}
		s = rest
	}
}

func writeRune(b *strings.Builder, digits string, base int) {
	v, _ := strconv.ParseUint(digits, base, 31)
	b.WriteRune(rune(v))
}

// operatorEnd returns the length of a run of operator characters, which a
// comment ends.
func operatorEnd(s string, code bool) int {
	n := 1
	for n < len(s) && strings.IndexByte(operatorBytes, s[n]) >= 0 {
		if code && (strings.HasPrefix(s[n:], "--") || strings.HasPrefix(s[n:], "/*")) {
			break
		}
		n++
	}
	return n
}

func runEnd(s string) int {
	n := 0
	for n < len(s) && isWordByte(s[n]) {
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

// closing returns the length of what stands between quotes, which are doubled
// inside or, in an escape string, behind a backslash; and whether it ends.
func closing(s string, quote byte, escapes bool) (int, bool) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escapes:
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1, true
		}
	}
	return len(s), false
}

// endOfComment returns the length of a comment; they nest.
func endOfComment(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth, i = depth+1, i+1
		case "*/":
			if depth, i = depth-1, i+1; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// dollarTag returns the $tag$ that a text begins with, if any.
func dollarTag(s string) string {
	if s[0] != '$' || len(s) > 1 && s[1] >= '0' && s[1] <= '9' {
		return ""
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '$' {
			return s[:i+1]
		}
		if !isWordByte(s[i]) {
			break
		}
	}
	return ""
}
