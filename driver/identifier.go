package driver

import (
	"fmt"
	"slices"
	"strings"
)

// splitName reads a table's name as SQL writes it, with or without a schema.
func splitName(name string) (schema, table string, err error) {
	parts, err := identifiers(name, '.')
	if err != nil || len(parts) == 0 || len(parts) > 2 || slices.Contains(parts, "") {
		return "", "", fmt.Errorf("fencerow: malformed table name %q: write it as in SQL, such as orders, app.orders or \"Order Items\"", name)
	}
	if len(parts) == 1 {
		return "", parts[0], nil
	}
	return parts[0], parts[1], nil
}

// identifiers splits a list of SQL identifiers, folding what isn't quoted.
func identifiers(list string, separator byte) ([]string, error) {
	var out []string
	for rest := strings.TrimSpace(list); rest != ""; {
		name, after, err := identifier(rest, separator)
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

func identifier(s string, separator byte) (name, rest string, err error) {
	if s[0] != '"' {
		end := strings.IndexAny(s, string(separator)+" \t\n\r\"")
		if end < 0 {
			end = len(s)
		}
		if end == 0 {
			return "", "", fmt.Errorf("a name is missing before %q", s)
		}
		return lowerASCII(s[:end]), s[end:], nil
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

// lowerASCII folds a name as PostgreSQL does under UTF8.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
