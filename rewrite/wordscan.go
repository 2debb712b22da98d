package rewrite

import "strings"

// wordKind is what eachWord has found.
type wordKind byte

const (
	otherSign   wordKind = iota
	openingSign          // ( or [
	closingSign
	commaSign
	plainWord // a name without quotes, or a key word
	numberWord
	placeholder // $1
	longText    // a string
)

// eachWord finds the words and signs of a text without PostgreSQL's lexer, which
// takes longer than its parser. It reports false for a text with anything in it
// that needs that lexer: strings with escapes or in dollar quotes. Comments are
// passed over.
func eachWord(sql string, found func(kind wordKind, start, end int)) bool {
	for i := 0; i < len(sql); {
		start, kind := i, otherSign
		switch c := sql[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			i++
			continue
		case c == '(' || c == '[':
			kind = openingSign
			i++
		case c == ')' || c == ']':
			kind = closingSign
			i++
		case c == ',':
			kind = commaSign
			i++
		case c == '\'' || c == '"':
			if i = afterQuote(sql, i); i < 0 || c == '\'' && hasEscapes(sql, start) {
				return false
			}
			if c == '\'' && !joinsString(sql, start) {
				kind = longText
			}
		case c == '$':
			for i++; i < len(sql) && isDigit(sql[i]); i++ {
			}
			if kind = placeholder; i == start+1 || i < len(sql) && joins(sql[i]) {
				return false
			}
		case isDigit(c):
			kind = numberWord
			for i < len(sql) && (isWordByte(sql[i]) || sql[i] == '.') {
				i++
			}
		case isWordByte(c):
			kind = plainWord
			for i < len(sql) && joins(sql[i]) {
				i++
			}
		case strings.HasPrefix(sql[i:], "--"):
			if i = strings.IndexAny(sql[start:], "\n\r") + start; i < start {
				i = len(sql)
			}
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			if i = afterComment(sql, i); i < 0 {
				return false
			}
			continue
		default:
			i++
		}
		found(kind, start, i)
	}
	return true
}

// afterQuote returns where a string or a quoted name ends, -1 if it doesn't.
func afterQuote(sql string, at int) int {
	quote := sql[at]
	for at++; ; at += 2 {
		n := strings.IndexByte(sql[at:], quote)
		if n < 0 {
			return -1
		}
		if at += n; at+1 == len(sql) || sql[at+1] != quote {
			return at + 1
		}
	}
}

// hasEscapes reports whether the string at a place may have escapes: E'...'.
func hasEscapes(sql string, at int) bool { return at > 0 && (sql[at-1] == 'e' || sql[at-1] == 'E') }

// joinsString reports whether the string at a place has a letter before it, as
// B'1' has, or may go on from the one before.
func joinsString(sql string, at int) bool {
	before := strings.TrimRight(sql[:at], blanks)
	return before != "" && (before[len(before)-1] == '\'' || before[len(before)-1] == '&' || len(before) == at && joins(before[at-1]))
}

// afterComment returns where a comment ends that may have others in it, -1 if it
// doesn't.
func afterComment(sql string, at int) int {
	depth := 0
	for i := at; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
