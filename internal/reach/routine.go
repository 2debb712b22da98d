package reach

import (
	"cmp"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
)

// What a plain body writes is read from its tokens: which tables stand where a
// statement names the one it writes, and what is called. Comments are left out.
// Strings are read like code where EXECUTE runs them.

// routineBody is what a body says.
type routineBody struct {
	targets   []bodyTarget
	calls     []check.Name      // the schema is "" where none is written
	sequences []map[string]bool // that it sets, by the words of a constant that names one; nil if that isn't known
	words     map[string]bool   // every word, quoted name and operator
	said      map[string]bool   // every word within its strings
	unread    string            // why it isn't plain, so that nothing is told of what it does; "" if it is
	isLost    bool              // then: not even which words are statements
	escapes   bool              // a backslash stands in it
}

func newRoutineBody() *routineBody {
	return &routineBody{words: make(map[string]bool), said: make(map[string]bool)}
}

// bodyTarget is a table that a statement in a body writes.
type bodyTarget struct {
	check.Name
	event   string   // INSERT, UPDATE, DELETE, TRUNCATE, REFRESH, CREATE for a name that is given, or "" for a change of structure
	columns []string // of an UPDATE, where they can be told
}

// stringsSetting is the setting by which a backslash in a string is one or begins an
// escape.
const stringsSetting = "standard_conforming_strings"

// read reads a routine's body, and what runs with it: the defaults of its arguments,
// and its own settings.
func (r *catalogRoutine) read() *routineBody {
	if r.body != nil {
		return r.body
	}
	tokens := lexBody(r.Source, true)
	r.body = scanBody(r.Language, tokens)
	plain := readPlain(r.Language, tokens, r.ArgNames)
	defaults := &plainReader{routineReader: routineReader{tokens: lexBody(r.Defaults, true)}}
	r.body.scan(defaults.tokens, false)
	for _, setting := range r.Settings {
		name, _, _ := strings.Cut(setting, "=")
		if lowerASCII(name) == stringsSetting {
			defaults.fail("sets %s, by which strings are read otherwise", stringsSetting)
		}
		r.body.say(lexBody(setting, false))
	}
	defaults.check(0, len(defaults.tokens))
	r.body.unread, r.body.isLost = cmp.Or(defaults.why, plain.why), plain.isLost
	r.body.escapes = strings.Contains(r.Source, `\`) || strings.Contains(r.Defaults, `\`)
	return r.body
}

// readRoutine reads a body in a language.
func readRoutine(language, source string) *routineBody {
	return (&catalogRoutine{Language: language, Source: source}).read()
}

// scanBody notes what a body names.
func scanBody(language string, tokens []bodyToken) *routineBody {
	body := newRoutineBody()
	body.scan(tokens, language == "plpgsql")
	return body
}

// scan notes what stands in tokens, and in the constants that EXECUTE runs.
func (r *routineBody) scan(tokens []bodyToken, isPLpgSQL bool) {
	reader := &routineReader{tokens: tokens, body: r, plpgsql: isPLpgSQL}
	for i, t := range tokens {
		switch {
		case t.kind == stringToken && reader.word(i-1) == "execute":
			r.scan(lexBody(t.raw, true), false)
			r.say(t.inner)
		case t.kind == stringToken:
			r.say(t.inner)
		default:
			if t.kind != punctToken || t.isOperator() {
				r.words[t.text] = true
			}
			reader.at(i)
		}
	}
}

// say notes the words of a string.
func (r *routineBody) say(tokens []bodyToken) {
	for _, t := range tokens {
		if r.say(t.inner); t.name() != "" {
			r.said[t.text] = true
		}
	}
}

// has reports whether a word stands in the body, in a string or elsewhere.
func (r *routineBody) has(word string) bool { return r.words[word] || r.said[word] }

type routineReader struct {
	tokens  []bodyToken
	body    *routineBody
	plpgsql bool // INTO names a variable
}

// token returns the i-th token, an empty one past the ends.
func (r *routineReader) token(i int) bodyToken {
	if i < 0 || i >= len(r.tokens) {
		return bodyToken{kind: punctToken}
	}
	return r.tokens[i]
}

// word returns the i-th token if it is punctuation or a word without quotes.
func (r *routineReader) word(i int) string {
	if t := r.token(i); t.kind == wordToken || t.kind == punctToken {
		return t.text
	}
	return ""
}

// at notes what begins at a token.
func (r *routineReader) at(i int) {
	r.call(i) // a function may have the name of any of the words below
	r.sets(i)
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
			if next == "binary" { // as before PostgreSQL 7.3
				i++
			}
			r.target(i+1, "INSERT")
		}
	case "truncate":
		r.list(i+1, "TRUNCATE")
	case "refresh":
		if next == "materialized" && r.word(i+2) == "view" {
			r.target(i+3, eventRefresh)
		}
	case "alter", "drop":
		if next == "table" {
			r.list(i+1, "")
		}
		if next == "sequence" {
			r.sequence(i + 2)
		}
	case "create":
		r.creates(i + 1)
	case "into":
		r.selectsInto(i)
	}
}

// sets notes a function that is called, with quotes around its name or without, and sets a
// sequence or a setting.
func (r *routineReader) sets(i int) {
	if r.word(i+1) != "(" {
		return
	}
	switch r.token(i).name() {
	case "setval":
		r.setsSequence(i + 2)
	case "set_config":
		if t := r.token(i + 2); t.kind != stringToken || r.word(i+3) != "," && !strings.Contains(t.raw, ".") {
			r.body.said[stringsSetting] = true // it may be that
		}
	}
}

// schemaOf returns the schema that stands before a name, "" if none does.
func (r *routineReader) schemaOf(i int) string {
	if r.word(i-1) == "." {
		return r.token(i - 2).name()
	}
	return ""
}

// call notes a function that is called, as f(row) or row.f.
func (r *routineReader) call(i int) {
	switch name := r.token(i).name(); {
	case name == "":
	case r.word(i+1) == "(":
		r.body.calls = append(r.body.calls, check.Name{Schema: r.schemaOf(i), Name: name})
	case r.word(i-1) == ".":
		r.body.calls = append(r.body.calls, check.Name{Name: name})
	}
}

// closing returns where the bracket closes that opens at a token, -1 if it
// doesn't.
func (r *routineReader) closing(i int) int {
	for depth := 0; i < len(r.tokens) && r.word(i) != ";"; i++ {
		switch r.word(i) {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// has reports whether words stand beside each other in what is left of the
// statement.
func (r *routineReader) has(i int, words ...string) bool {
	for ; i+len(words) <= len(r.tokens) && r.word(i) != ";"; i++ {
		found := true
		for k, w := range words {
			found = found && r.word(i+k) == w
		}
		if found {
			return true
		}
	}
	return false
}

// name reads a qualified name, and returns where it ends.
func (r *routineReader) name(i int) (check.Name, int) {
	for w := r.word(i); w == "only" || w == "table" || w == "(" || w == "concurrently"; w = r.word(i) {
		i++
	}
	if r.word(i) == "if" && r.word(i+1) == "exists" {
		i += 2
	}
	if r.word(i) == "only" {
		i++
	}
	n := check.Name{Name: r.token(i).name()}
	for i++; r.word(i) == "."; i += 2 {
		n.Schema, n.Name = n.Name, r.token(i+1).name()
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
		for r.word(end) == "*" || r.word(end) == ")" { // ONLY (a)
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
	if n.Name == "" || r.word(i) != "set" {
		return // FOR UPDATE, BEFORE UPDATE ON
	}
	r.body.targets = append(r.body.targets, bodyTarget{Name: n, event: "UPDATE", columns: r.assigned(i + 1)})
}

// assigned returns the columns of SET, or none if they can't be told.
func (r *routineReader) assigned(i int) (columns []string) {
	for depth, left := 0, true; i < len(r.tokens); i++ {
		switch t := r.tokens[i]; {
		case t.is("(") && left: // (a, b) = ...
			for i++; i < len(r.tokens) && !r.tokens[i].is(")"); i++ {
				if name := r.tokens[i].name(); name != "" {
					columns = append(columns, name)
				}
			}
			left = false
		case t.is("(") || t.is("["):
			depth++
		case t.is(")") || t.is("]"):
			if depth--; depth < 0 {
				return columns
			}
		case depth > 0:
		case t.is("from") && r.word(i-1) == "distinct": // IS DISTINCT FROM
		case t.is("where") || t.is("from") || t.is("returning") || t.is(";"):
			return columns
		case t.is(","):
			left = true
		case left && t.name() == "":
			return nil
		case left:
			columns, left = append(columns, t.name()), false
		}
	}
	return columns
}
