package check

import (
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/wordsearch"
)

// The search for words as it reads most plainly, which what is quick is held to.

// plainHit returns the first word of a text by which it could reach a protected
// table, "" if there is none.
func (p *Policy) plainHit(text string) string {
	q := p.quick
	if q.never {
		return text
	}
	ascii, writes, system := true, false, ""
	for i := 0; i < len(text); {
		c := text[i]
		if !sqltext.IsWordByte(c) {
			if c == 0 {
				return "NUL"
			}
			i++
			continue
		}
		start := i
		for i < len(text) && sqltext.IsWordByte(text[i]) {
			ascii = ascii && text[i] < utf8.RuneSelf
			i++
		}
		run := text[start:i]
		if len(run) > sqltext.MaxName || run[len(run)-1]|0x20 == 'u' && i < len(text) && text[i] == '&' {
			return run // may be cut to another name, or spell one with escapes
		}
		kind := q.plainKind(sqltext.Lower(run))
		if kind&wordsearch.Hit != 0 {
			return run
		}
		if kind&wordsearch.Catalog != 0 {
			system = run
		}
		writes = writes || kind&wordsearch.Write != 0
	}
	if system != "" && writes {
		return system // it may write a catalog
	}
	if !ascii && !utf8.ValidString(text) {
		return "invalid UTF-8"
	}
	return ""
}

// plainKind looks a run up. Where a number or a placeholder may end inside it,
// what follows is looked up too.
func (q *quickSet) plainKind(run string) wordsearch.Meaning {
	kind := q.plainWord(run)
	for i := 1; i < len(run) && sqltext.IsDigit(run[0]); i++ {
		if sqltext.IsDigit(run[i-1]) && !sqltext.IsDigit(run[i]) {
			kind |= q.plainWord(run[i:])
		}
	}
	return kind
}

func (q *quickSet) plainWord(word string) wordsearch.Meaning {
	switch {
	case q.listed[word] || strings.HasPrefix(word, "dblink") || sqlFunctions[word]:
		return wordsearch.Hit
	case strings.HasPrefix(word, "pg_") && !quickSystem[word] || word == "information_schema":
		return wordsearch.Catalog
	case quickWrites[word]:
		return wordsearch.Write
	}
	return 0
}
