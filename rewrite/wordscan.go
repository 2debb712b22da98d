package rewrite

import (
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

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
		case strings.IndexByte(sqltext.Blanks, c) >= 0:
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
			end, ok := sqltext.QuotedEnd(sql[i:], false)
			if i += end; !ok || c == '\'' && hasEscapes(sql, start) {
				return false
			}
			if c == '\'' && !joinsString(sql, start) {
				kind = longText
			}
		case c == '$':
			for i++; i < len(sql) && sqltext.IsDigit(sql[i]); i++ {
			}
			if kind = placeholder; i == start+1 || i < len(sql) && sqltext.JoinsNext(sql[i]) {
				return false
			}
		case sqltext.IsDigit(c):
			kind = numberWord
			for i < len(sql) && (sqltext.IsWordByte(sql[i]) || sql[i] == '.') {
				i++
			}
		case sqltext.IsWordByte(c):
			kind = plainWord
			for i < len(sql) && sqltext.JoinsNext(sql[i]) {
				i++
			}
		case strings.HasPrefix(sql[i:], "--"):
			if i = strings.IndexAny(sql[start:], "\n\r") + start; i < start {
				i = len(sql)
			}
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			end, ok := sqltext.CommentEnd(sql[i:])
			if !ok {
				return false
			}
			i += end
			continue
		default:
			i++
		}
		found(kind, start, i)
	}
	return true
}

// hasEscapes reports whether the string at a place may have escapes: E'...'.
func hasEscapes(sql string, at int) bool { return at > 0 && (sql[at-1] == 'e' || sql[at-1] == 'E') }

// joinsString reports whether the string at a place has a letter before it, as
// B'1' has, or may go on from the one before.
func joinsString(sql string, at int) bool {
	before := strings.TrimRight(sql[:at], sqltext.Blanks)
	return before != "" && (before[len(before)-1] == '\'' || before[len(before)-1] == '&' || len(before) == at && sqltext.JoinsNext(before[at-1]))
}
