package sqltext

import (
	"fmt"
	"strings"
)

// SplitNames splits a list of SQL SplitNames, folding what isn't quoted.
func SplitNames(list string, separator byte) ([]string, error) {
	var out []string
	for rest := strings.TrimSpace(list); rest != ""; {
		name, after, err := readName(rest, separator)
		if err != nil {
			return nil, err
		}
		out = append(out, name)
		after = strings.TrimSpace(after)
		if after == "" {
			return out, nil
		}
		if after[0] != separator {
			return nil, fmt.Errorf("unexpected %q", after)
		}
		if rest = strings.TrimSpace(after[1:]); rest == "" {
			return nil, fmt.Errorf("trailing %q", separator)
		}
	}
	return out, nil
}

// readName reads the name that a text begins with, and returns what follows it.
func readName(s string, separator byte) (name, rest string, err error) {
	if s[0] != '"' {
		end := strings.IndexAny(s, string(separator)+" \t\n\r\"")
		if end < 0 {
			end = len(s)
		}
		if end == 0 {
			return "", "", fmt.Errorf("a name is missing before %q", s)
		}
		return Lower(s[:end]), s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		return b.String(), s[i+1:], nil
	}
	return "", "", fmt.Errorf("a quoted name does not end")
}
