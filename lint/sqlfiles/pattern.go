package sqlfiles

import (
	"fmt"
	"path"
	"strings"
)

// pattern is a path in which elements may have wildcards.
type pattern []string

func newPattern(text string) (pattern, error) {
	clean := strings.Trim(strings.TrimPrefix(text, "./"), "/")
	if clean == "" {
		return nil, fmt.Errorf("pattern %q means no path: write a file or directory, such as db/migrations or *.mysql.sql", text)
	}
	if !strings.Contains(clean, "/") && text == clean {
		clean = "**/" + clean
	}
	p := pattern(strings.Split(clean, "/"))
	for _, element := range p {
		if _, err := path.Match(element, ""); err != nil {
			return nil, fmt.Errorf("pattern %q: %w: close the bracket, or escape it by a backslash", text, err)
		}
	}
	return p, nil
}

func (p pattern) String() string { return strings.Join(p, "/") }

// matches reports whether a path, or a directory that it is in, is meant.
func (p pattern) matches(parts []string) bool {
	if len(p) == 0 {
		return true
	}
	if p[0] == "**" {
		return p[1:].matches(parts) || len(parts) > 0 && p.matches(parts[1:])
	}
	if len(parts) == 0 {
		return false
	}
	ok, err := path.Match(p[0], parts[0])
	return err == nil && ok && p[1:].matches(parts[1:])
}
