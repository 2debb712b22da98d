package rewrite

import (
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/parser"
)

// snippetLength bounds the line of SQL that a message shows, in bytes.
const snippetLength = 160

// locate fills in the snippet of a violation: the line of sql where it is,
// without any literal, since a literal may be somebody's data. A text that
// can't be scanned has no snippet: what its literals are is then unknown.
func (v *Violation) locate(sql string) {
	tokens, err := parser.Scan(sql)
	if err == nil {
		v.locateIn(sql, tokens)
	}
}

// locate fills in the snippets of what was found, scanning the text once.
func (c *checker) locate() {
	var tokens []parser.Token
	for _, v := range c.found {
		if v.offset < 0 {
			continue
		}
		if tokens == nil {
			var err error
			if tokens, err = c.lex.scan(); err != nil {
				return
			}
		}
		v.locateIn(c.sql, tokens)
	}
}

func (v *Violation) locateIn(sql string, tokens []parser.Token) {
	if v.offset < 0 || v.offset >= len(sql) {
		return
	}
	text, at, width := redact(sql, tokens, v.offset)
	start := strings.LastIndexByte(text[:at], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
	}
	line := strings.TrimRight(text[start:end], "\r")
	v.Line = strings.Count(text[:start], "\n") + 1
	v.Snippet, v.Column, v.Width = clip(line, at-start, width)
}

// Redact returns a text on one line for a message: its literals are "?", since a
// literal may be somebody's data, and its comments are left out. It is empty for a
// text that can't be scanned: what its literals are is then unknown.
func Redact(sql string) string {
	l := lexed{sql: sql}
	if l.check(l.tooDeep) != nil {
		return ""
	}
	tokens, err := l.scan()
	if err != nil {
		return ""
	}
	text, _, _ := redact(sql, tokens, 0)
	return strings.Join(strings.Fields(text), " ")
}

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
	if len(line) > snippetLength {
		start = max(0, column-snippetLength/2)
		end = min(len(line), start+snippetLength)
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
