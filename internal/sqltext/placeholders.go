package sqltext

import (
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
)

// onlyPlaceholders reports whether "$" stands in placeholders only and no
// backslash in the text at all.
func onlyPlaceholders(sql string) bool {
	for i := range len(sql) {
		switch sql[i] {
		case '\\':
			return false
		case '$':
			if i+1 == len(sql) || sql[i+1] < '0' || sql[i+1] > '9' || i > 0 && JoinsNext(sql[i-1]) {
				return false
			}
		}
	}
	return true
}

// readAlike reports whether every lexer takes a token for the same.
func readAlike(kind parser.TokenKind, text string) bool {
	switch kind {
	case parser.PARAM, parser.LINECOMMENT, parser.BLOCKCOMMENT:
		return true
	case parser.SCONST:
		return text[0] == '$' || quotedOnce(text, "'")
	case parser.IDENT:
		return quotedOnce(text, `"`)
	}
	return false
}

// quotedOnce reports whether a token is one quoted piece: no prefix, and not
// continued on another line.
func quotedOnce(text, quote string) bool {
	if len(text) < 2 || !strings.HasPrefix(text, quote) || !strings.HasSuffix(text, quote) {
		return false
	}
	return !strings.Contains(strings.ReplaceAll(text[1:len(text)-1], quote+quote, ""), quote)
}

// ArePlaceholdersPlain reports whether a client that writes the arguments into a
// text itself is certain to find its placeholders where PostgreSQL does: "$"
// and backslashes stand in placeholders, comments, and strings and quoted names
// that every lexer reads alike. Another text could be changed by an argument
// into one that was never checked.
func ArePlaceholdersPlain(sql string) bool {
	if onlyPlaceholders(sql) {
		return true
	}
	if Check(sql) != nil {
		return false
	}
	tokens, err := parser.Scan(sql)
	if err != nil {
		return false
	}
	for _, t := range tokens {
		text := sql[t.Start:t.End]
		if strings.ContainsAny(text, `\$`) && (t.Start > 0 && JoinsNext(sql[t.Start-1]) || !readAlike(t.Kind, text)) {
			return false
		}
	}
	return true
}
