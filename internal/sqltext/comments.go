package sqltext

import "strings"

// CommentEnd returns where the comment ends that a text begins with: /* ... */, with
// others in it. A comment that doesn't end goes on to the end of the text.
func CommentEnd(text string) (end int, ok bool) {
	depth := 0
	for i := 0; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return i + 1, true
		}
	}
	return len(text), false
}

// QuotedEnd returns where the string or quoted name ends that a text begins with.
// Its quotes are doubled inside or, in a string with escapes, behind a backslash.
// What doesn't end goes on to the end of the text.
func QuotedEnd(text string, hasEscapes bool) (end int, ok bool) {
	quote := text[0]
	if !hasEscapes {
		for at := 1; ; at += 2 {
			n := strings.IndexByte(text[at:], quote)
			if n < 0 {
				return len(text), false
			}
			if at += n; at+1 == len(text) || text[at+1] != quote {
				return at + 1, true
			}
		}
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] != quote:
		case i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1, true
		}
	}
	return len(text), false
}

// DollarTag returns the $tag$ that a text begins with, "" if it begins with none.
func DollarTag(text string) string {
	if text == "" || text[0] != '$' || len(text) > 1 && IsDigit(text[1]) {
		return ""
	}
	for i := 1; i < len(text); i++ {
		if text[i] == '$' {
			return text[:i+1]
		}
		if !IsWordByte(text[i]) {
			break
		}
	}
	return ""
}
