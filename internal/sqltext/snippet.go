package sqltext

import (
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/parser"
)

// SnippetLength bounds the line of SQL that a message shows, in bytes.
const SnippetLength = 160

// redact replaces the literals of sql by "?" and drops comments, keeping line
// breaks. It returns where the token at offset is in the result, and its width.
func redact(sql string, tokens []parser.Token, offset int) (text string, at, width int) {
	var b strings.Builder
	last := 0
	for _, t := range tokens {
		b.WriteString(sql[last:t.Start])
		word := sql[t.Start:t.End]
		breaks := strings.Repeat("\n", strings.Count(word, "\n"))
		switch {
		case t.IsLiteral():
			word = "?" + breaks
		case t.IsComment():
			word = breaks
		}
		if t.Start <= offset && offset < t.End {
			at, width = b.Len(), len(strings.TrimRight(word, "\n"))
		}
		b.WriteString(word)
		last = t.End
	}
	b.WriteString(sql[last:])
	return printable(b.String()), at, width
}

// printable keeps what a terminal would obey, as in a quoted name, out of
// messages: a blank takes the place of each such byte.
func printable(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}

// clip shortens a long line to the surroundings of the bytes from column on,
// and expands tabs so that a caret below lines up. Column is 1-based after.
func clip(line string, column, width int) (string, int, int) {
	column, width = min(column, len(line)), min(width, max(0, len(line)-column))
	start, end := 0, len(line)
	if len(line) > SnippetLength {
		start = max(0, column-SnippetLength/2)
		end = min(len(line), start+SnippetLength)
		for start > 0 && !utf8.RuneStart(line[start]) {
			start--
		}
		for end < len(line) && !utf8.RuneStart(line[end]) {
			end++
		}
		width = min(width, end-column)
	}
	head, tail := "", ""
	if start > 0 {
		head = "... "
	}
	if end < len(line) {
		tail = " ..."
	}
	flat := strings.ReplaceAll(line[start:end], "\t", " ")
	return head + flat + tail, len(head) + column - start + 1, width
}

// Snippet is the line of a text that a message shows, without its literals.
type Snippet struct {
	Line          int // its number, from 1
	Text          string
	Column, Width int // which bytes of it are meant, from 1
}

// SnippetAt returns the line of a text in which the token at an offset begins.
func SnippetAt(sql string, tokens []parser.Token, offset int) Snippet {
	text, at, width := redact(sql, tokens, offset)
	start := strings.LastIndexByte(text[:at], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
	}
	s := Snippet{Line: strings.Count(text[:start], "\n") + 1}
	s.Text, s.Column, s.Width = clip(strings.TrimRight(text[start:end], "\r"), at-start, width)
	return s
}

// Redact returns a text on one line for a message: its literals are "?", since a
// literal may be somebody's data, and its comments are left out. It is empty for a
// text that can't be scanned: what its literals are is then unknown.
func Redact(sql string) string {
	l := Text{SQL: sql}
	if l.Check(l.IsTooDeep) != nil {
		return ""
	}
	tokens, err := l.Tokens()
	if err != nil {
		return ""
	}
	return RedactTokens(sql, tokens)
}

// RedactTokens is Redact for a text whose tokens are known.
func RedactTokens(sql string, tokens []parser.Token) string {
	text, _, _ := redact(sql, tokens, 0)
	return strings.Join(strings.Fields(text), " ")
}
