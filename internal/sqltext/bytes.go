package sqltext

import "unicode/utf8"

// JoinsNext reports whether a byte may belong to what follows it: as part of a name
// or as the prefix of a string.
func JoinsNext(c byte) bool { return c == '&' || IsNameByte(c) }

// Blanks is the white space of PostgreSQL's lexer.
const Blanks = " \t\r\n\f\v"

// MaxName is the longest identifier PostgreSQL keeps, in bytes (NAMEDATALEN-1).
const MaxName = 63

// IsWordRune is IsWordByte for a rune.
func IsWordRune(r rune) bool { return r >= utf8.RuneSelf || IsWordByte(byte(r)) }

// IsNameByte reports whether a byte may stand in a name without quotes or in a number:
// IsWordByte, and "$".
func IsNameByte(c byte) bool { return c == '$' || IsWordByte(c) }

// IsASCII reports whether a text has nothing but ASCII in it.
func IsASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Lower folds ASCII letters, as PostgreSQL folds identifiers under UTF8. It
// returns s itself where nothing is to fold.
func Lower(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return c-'0' <= 9 }

// IsWordByte reports whether a byte is a letter, a digit, "_" or part of a character
// that isn't ASCII. "$" is not one of them: see IsNameByte.
func IsWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// IsOperatorByte reports whether a byte may stand in one of PostgreSQL's operators.
func IsOperatorByte(c byte) bool { return isOperatorByte[c] }

var isOperatorByte = func() (table [256]bool) {
	for _, c := range []byte("~!@#^&|`?+-*/%<>=") {
		table[c] = true
	}
	return table
}()
