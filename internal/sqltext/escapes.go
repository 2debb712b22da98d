package sqltext

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var stringEscape = regexp.MustCompile(`^(?:[0-7]{1,3}|x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})`)

// DecodeEscape returns what an escape of E'...' stands for, which is given from
// behind its backslash on, and how long it is.
func DecodeEscape(rest string) (text string, length int) {
	switch code := stringEscape.FindString(rest); {
	case code == "":
		r, size := utf8.DecodeRuneInString(rest)
		if at := strings.IndexRune("bfnrt", r); at >= 0 {
			return "\b\f\n\r\t"[at : at+1], size
		}
		return rest[:size], size
	case code[0] == 'u' || code[0] == 'U':
		return decodeRune(code[1:]), len(code)
	case code[0] == 'x':
		return decodeByte(code[1:], 16), len(code)
	default:
		return decodeByte(code, 8), len(code)
	}
}

// Unescape decodes the escapes of what stands between the quotes of E'...'.
func Unescape(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\\")
		b.WriteString(before)
		if !found || rest == "" {
			return b.String()
		}
		text, length := DecodeEscape(rest)
		b.WriteString(text)
		s = rest[length:]
	}
}

var unicodeEscape = regexp.MustCompile(`^(?:[0-9A-Fa-f]{4}|\+[0-9A-Fa-f]{6})`)

// UnescapeUnicode decodes the escapes of what stands between the quotes of U&'...' or
// U&"...".
func UnescapeUnicode(s, escape string) string {
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
		b.WriteString(decodeRune(strings.TrimPrefix(code, "+")))
		s = rest[len(code):]
	}
}

// decodeRune returns the character of a number in hexadecimal digits.
func decodeRune(digits string) string {
	v, _ := strconv.ParseUint(digits, 16, 31)
	return string(rune(v))
}

// decodeByte returns the byte of a number. What is too large for a byte is cut, as
// PostgreSQL does.
func decodeByte(digits string, base int) string {
	v, _ := strconv.ParseUint(digits, base, 16)
	return string([]byte{byte(v)})
}
