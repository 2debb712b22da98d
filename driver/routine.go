package driver

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// What a routine does is read from the words of its body, which is lower-cased:
// which tables stand where a statement names the one it writes, and what is
// called. Comments are left out, and strings are read like code, since they may
// be run. A body that runs SQL made of strings could write whatever it names.

// routineBody is what a body says.
type routineBody struct {
	targets []bodyTarget
	calls   []rewrite.Name  // the schema is "" where none is written
	words   map[string]bool // every word and quoted name
	dynamic bool            // it runs SQL that it makes, or is of a language that isn't read
}

// bodyTarget is a table that a statement in a body writes.
type bodyTarget struct {
	rewrite.Name
	event   string   // INSERT, UPDATE, DELETE, TRUNCATE or "" for a change of structure
	columns []string // of an UPDATE, where they can be told
}

// readRoutine reads a body in a language.
func readRoutine(language, source string) *routineBody {
	return readWords(language, lexBody(source, nil, true))
}

func readWords(language string, words []string) *routineBody {
	r := &routineReader{words: words}
	// an aggregate's language is internal
	r.body = &routineBody{words: make(map[string]bool, len(r.words)), dynamic: language != "sql" && language != "plpgsql" && language != "internal"}
	for i, w := range r.words {
		if !isPunct(w) {
			r.body.words[w] = true
		}
		r.at(i)
	}
	return r.body
}

type routineReader struct {
	words []string
	body  *routineBody
}

// word returns the i-th word, "" past the ends.
func (r *routineReader) word(i int) string {
	if i < 0 || i >= len(r.words) {
		return ""
	}
	return r.words[i]
}

// at notes what begins at a word.
func (r *routineReader) at(i int) {
	switch next := r.word(i + 1); r.word(i) {
	case "insert":
		if next == "into" {
			r.target(i+2, "INSERT")
			if r.has(i, "do", "update") {
				r.target(i+2, "UPDATE")
			}
		}
	case "merge":
		if next == "into" {
			for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
				r.target(i+2, event)
			}
		}
	case "delete":
		if next == "from" {
			r.target(i+2, "DELETE")
		}
	case "update":
		r.update(i + 1)
	case "copy":
		if r.has(i, "from") {
			r.target(i+1, "INSERT")
		}
	case "truncate":
		r.list(i+1, "TRUNCATE")
	case "alter", "drop":
		if next == "table" {
			r.list(i+1, "")
		}
	case "trigger", "rule", "policy":
		// what a body makes of these, or takes away, may reach what it names
		before := []string{r.word(i - 1), r.word(i - 2), r.word(i - 3)}
		r.body.dynamic = r.body.dynamic || slices.Contains(before, "create") || before[0] == "drop" || before[0] == "alter"
	case "execute":
		r.body.dynamic = r.body.dynamic || next != "function" && next != "procedure" && next != "on"
	case "query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "dblink_exec", "dblink":
		r.body.dynamic = true
	case "(":
		if name := r.nameBefore(i); name.Name != "" {
			r.body.calls = append(r.body.calls, name)
		}
	}
}

// has reports whether words stand beside each other in what is left of the
// statement.
func (r *routineReader) has(i int, words ...string) bool {
	for ; i+len(words) <= len(r.words) && r.words[i] != ";"; i++ {
		if slices.Equal(r.words[i:i+len(words)], words) {
			return true
		}
	}
	return false
}

// name reads a qualified name, and returns where it ends.
func (r *routineReader) name(i int) (rewrite.Name, int) {
	for r.word(i) == "only" || r.word(i) == "table" || r.word(i) == "(" {
		i++
	}
	if r.word(i) == "if" && r.word(i+1) == "exists" {
		i += 2
	}
	if r.word(i) == "only" {
		i++
	}
	n := rewrite.Name{Name: plainWord(r.word(i))}
	for i++; r.word(i) == "."; i += 2 {
		n.Schema, n.Name = n.Name, plainWord(r.word(i+1))
	}
	return n, i
}

func (r *routineReader) target(i int, event string) {
	if n, _ := r.name(i); n.Name != "" {
		r.body.targets = append(r.body.targets, bodyTarget{Name: n, event: event})
	}
}

// list reads the tables of TRUNCATE, ALTER TABLE or DROP TABLE.
func (r *routineReader) list(i int, event string) {
	for {
		n, end := r.name(i)
		if n.Name == "" {
			return
		}
		r.body.targets = append(r.body.targets, bodyTarget{Name: n, event: event})
		if r.word(end) == "*" {
			end++
		}
		if r.word(end) != "," {
			return
		}
		i = end + 1
	}
}

// update reads an UPDATE's table and columns.
func (r *routineReader) update(i int) {
	n, i := r.name(i)
	start := i
	for i < start+4 && r.word(i) != "set" {
		i++
	}
	inString := slices.Contains(r.words[min(start, len(r.words)):min(i, len(r.words))], "'")
	if n.Name == "" || r.word(i) != "set" && !inString {
		return // FOR UPDATE, BEFORE UPDATE ON
	}
	t := bodyTarget{Name: n, event: "UPDATE"}
	if r.word(i) == "set" {
		t.columns = r.assigned(i + 1)
	}
	r.body.targets = append(r.body.targets, t)
}

// assigned returns the columns of SET, or none if they can't be told.
func (r *routineReader) assigned(i int) (columns []string) {
	for depth, left := 0, true; i < len(r.words); i++ {
		switch w := r.words[i]; {
		case w == "(" && left: // (a, b) = ...
			for i++; i < len(r.words) && r.words[i] != ")"; i++ {
				if !isPunct(r.words[i]) {
					columns = append(columns, r.words[i])
				}
			}
			left = false
		case w == "(" || w == "[":
			depth++
		case w == ")" || w == "]":
			if depth--; depth < 0 {
				return columns
			}
		case depth > 0:
		case w == "'" && left:
			return nil // the columns are in another string
		case w == "'":
			for i++; i < len(r.words) && r.words[i] != "'"; i++ {
			}
		case w == "where" || w == "from" || w == "returning" || w == ";":
			return columns
		case w == ",":
			left = true
		case left:
			columns, left = append(columns, w), false
		}
	}
	return columns
}

// nameBefore reads the qualified name that ends before a word.
func (r *routineReader) nameBefore(i int) rewrite.Name {
	n := rewrite.Name{Name: plainWord(r.word(i - 1))}
	if r.word(i-2) == "." {
		n.Schema = plainWord(r.word(i - 3))
	}
	return n
}

// plainWord returns a word, "" for punctuation.
func plainWord(w string) string {
	if isPunct(w) {
		return ""
	}
	return w
}

// isPunct tells punctuation; a quoted name that looks like it is taken for it,
// too.
func isPunct(w string) bool { return len(w) <= 1 && (w == "" || !isWordByte(w[0])) }

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '_' || b == '$' || b >= 0x80
}

// lexBody splits a body into words, quoted names without their quotes, and
// single punctuation; what is in a string is split likewise, between two "'".
func lexBody(s string, into []string, code bool) []string {
	for s != "" {
		n := 1
		switch {
		case isWordByte(s[0]) && s[0] != '$':
			n = runEnd(s)
			into = append(into, s[:n])
		case code && strings.HasPrefix(s, "--"):
			n = endOf(s, strings.IndexByte(s, '\n'))
		case code && strings.HasPrefix(s, "/*"):
			n = endOfComment(s)
		case s[0] == '"' && strings.IndexByte(s[1:], '"') >= 0:
			n = closing(s, '"', false)
			into = append(into, strings.ReplaceAll(s[1:n-1], `""`, `"`))
		case code && s[0] == '\'':
			n = closing(s, '\'', len(into) > 0 && into[len(into)-1] == "e")
			into = append(lexBody(strings.Trim(s[:n], "'"), append(into, "'"), false), "'")
		case code && dollarTag(s) != "":
			tag := dollarTag(s)
			n = endOf(s, strings.Index(s[len(tag):], tag)+2*len(tag)-1)
			into = append(lexBody(strings.TrimSuffix(s[len(tag):n], tag), append(into, "'"), code), "'")
		case s[0] > ' ':
			into = append(into, s[:1])
		}
		s = s[n:]
	}
	return into
}

func runEnd(s string) int {
	n := 0
	for n < len(s) && isWordByte(s[n]) {
		n++
	}
	return n
}

// endOf turns the index of a last byte into a length; what has no end goes on
// to the end of the text.
func endOf(s string, last int) int {
	if last < 0 || last >= len(s) {
		return len(s)
	}
	return last + 1
}

// closing returns the length of what stands between quotes, which are doubled
// inside or, in an escape string, behind a backslash.
func closing(s string, quote byte, escapes bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && escapes:
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(s)
}

// endOfComment returns the length of a comment; they nest.
func endOfComment(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth, i = depth+1, i+1
		case "*/":
			if depth, i = depth-1, i+1; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// dollarTag returns the $tag$ that a text begins with, if any.
func dollarTag(s string) string {
	if s[0] != '$' || len(s) > 1 && s[1] >= '0' && s[1] <= '9' {
		return ""
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '$' {
			return s[:i+1]
		}
		if !isWordByte(s[i]) {
			break
		}
	}
	return ""
}
