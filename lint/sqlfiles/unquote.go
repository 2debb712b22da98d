package sqlfiles

import (
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// unquote returns what a string literal says, and where in the literal each of
// its bytes is, with its end. It returns a word that is not a string as it is.
func unquote(word string) (string, []int) {
	if tag := sqltext.DollarTag(word); tag != "" && len(word) >= 2*len(tag) && strings.HasSuffix(word, tag) {
		text := word[len(tag) : len(word)-len(tag)]
		offsets := make([]int, len(text)+1)
		for i := range offsets {
			offsets[i] = len(tag) + i
		}
		return text, offsets
	}
	open := strings.IndexByte(word, '\'')
	if open < 0 || word == "" {
		return "", nil
	}
	escapes := word[0]|0x20 == 'e'
	var b strings.Builder
	var offsets []int
	inside := true
	for i := open + 1; i < len(word); i++ {
		c := word[i]
		switch {
		case !inside: // between the parts of a literal that goes on in a further line
			inside = c == '\''
		case c == '\'' && i+1 < len(word) && word[i+1] == '\'':
			b.WriteByte(c)
			offsets = append(offsets, i)
			i++
		case c == '\'':
			inside = false
		case escapes && c == '\\' && i+1 < len(word):
			text, length := sqltext.DecodeEscape(word[i+1:])
			for range len(text) {
				offsets = append(offsets, i)
			}
			b.WriteString(text)
			i += length
		default:
			b.WriteByte(c)
			offsets = append(offsets, i)
		}
	}
	return b.String(), append(offsets, len(word))
}
