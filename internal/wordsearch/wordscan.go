package wordsearch

import (
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// Sign is the kind of what [EachWord] has found.
type Sign byte

// The signs; OtherSign is anything that has none of its own.
const (
	OtherSign   Sign = iota
	OpeningSign      // ( or [
	ClosingSign
	CommaSign
	PlainWord // a name without quotes, or a key word
	NumberWord
	Placeholder   // $1
	StringLiteral // a string
)

// EachWord finds the words and signs of a text without PostgreSQL's lexer, which
// takes longer than its parser. It reports false for a text with anything in it
// that needs that lexer: strings with escapes or in dollar quotes. Comments are
// passed over.
func EachWord(sql string, found func(kind Sign, start, end int)) bool {
	for i := 0; i < len(sql); {
		start, kind := i, OtherSign
		switch c := sql[i]; {
		case strings.IndexByte(sqltext.Blanks, c) >= 0:
			i++
			continue
		case c == '(' || c == '[':
			kind = OpeningSign
			i++
		case c == ')' || c == ']':
			kind = ClosingSign
			i++
		case c == ',':
			kind = CommaSign
			i++
		case c == '\'' || c == '"':
			end, ok := sqltext.QuotedEnd(sql[i:], false)
			if i += end; !ok || c == '\'' && beginsWithE(sql, start) {
				return false
			}
			if c == '\'' && !joinsString(sql, start) {
				kind = StringLiteral
			}
		case c == '$':
			for i++; i < len(sql) && sqltext.IsDigit(sql[i]); i++ {
			}
			if kind = Placeholder; i == start+1 || i < len(sql) && sqltext.JoinsNext(sql[i]) {
				return false
			}
		case sqltext.IsDigit(c):
			kind = NumberWord
			for i < len(sql) && (sqltext.IsWordByte(sql[i]) || sql[i] == '.') {
				i++
			}
		case sqltext.IsWordByte(c):
			kind = PlainWord
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

// beginsWithE reports whether the string at a place may have escapes: E'...'.
func beginsWithE(sql string, at int) bool { return at > 0 && (sql[at-1] == 'e' || sql[at-1] == 'E') }

// joinsString reports whether the string at a place has a letter before it, as
// B'1' has, or may go on from the one before.
func joinsString(sql string, at int) bool {
	before := strings.TrimRight(sql[:at], sqltext.Blanks)
	return before != "" && (before[len(before)-1] == '\'' || before[len(before)-1] == '&' || len(before) == at && sqltext.JoinsNext(before[at-1]))
}
