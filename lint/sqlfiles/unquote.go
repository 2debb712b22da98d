package sqlfiles

import (
	"strconv"
	"strings"
)

// unquote returns what a string literal says, and where in the literal each of
// its bytes is, with its end. What is no string is returned as it is.
func unquote(word string) (string, []int) {
	if tag := dollarQuote.FindString(word); tag != "" && len(word) >= 2*len(tag) && strings.HasSuffix(word, tag) {
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
			text, length := escaped(word[i+1:])
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

// escaped returns what stands behind a backslash says, and how long it is.
func escaped(rest string) (string, int) {
	digits := func(from, most, base int) (string, int) {
		end := from
		for end < len(rest) && end < from+most && strings.IndexByte("0123456789abcdef"[:base], rest[end]|0x20) >= 0 {
			end++
		}
		n, err := strconv.ParseUint(rest[from:end], base, 32)
		if err != nil {
			return rest[:1], 1
		}
		if most > 3 {
			return string(rune(n)), end
		}
		return string([]byte{byte(n)}), end
	}
	switch c := rest[0]; c {
	case 'b', 'f', 'n', 'r', 't':
		return string("\b\f\n\r\t"[strings.IndexByte("bfnrt", c)]), 1
	case 'x':
		return digits(1, 2, 16)
	case 'u':
		return digits(1, 4, 16)
	case 'U':
		return digits(1, 8, 16)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return digits(0, 3, 8)
	}
	return rest[:1], 1
}
