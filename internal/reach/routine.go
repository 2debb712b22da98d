package reach

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// What a routine does is read from the tokens of its body: which tables stand
// where a statement names the one it writes, and what is called. Comments are
// left out, and strings are read like code, since they may be run. A body that
// runs SQL made of strings could write whatever it names.

// routineBody is what a body says.
type routineBody struct {
	targets []bodyTarget
	calls   []rewrite.Name  // the schema is "" where none is written
	words   map[string]bool // every word, quoted name and operator
	casts   map[string]bool // the words that stand for the type of a cast or a variable
	dynamic bool            // it runs SQL that it makes, or is of a language that isn't read
	makes   bool            // it makes, changes or drops objects by which protected tables could be reached
	opens   bool            // it runs SQL on tables whose names it is given
	text    *textReader     // of what it runs, nil if it isn't read
	escapes bool            // a backslash stands in it
	leads   map[string]bool // the words of statements that make a view, a partition or the like, by which what they name could be written
}

// bodyTarget is a table that a statement in a body writes.
type bodyTarget struct {
	rewrite.Name
	event   string   // INSERT, UPDATE, DELETE, TRUNCATE, REFRESH, CREATE for a name that is given, or "" for a change of structure
	columns []string // of an UPDATE, where they can be told
}

// readRoutine reads a body in a language.
func readRoutine(language, source string) *routineBody {
	return readWords(language, lexBody(source, true))
}

// read reads a routine's body.
func (r *catalogRoutine) read() *routineBody {
	if r.body != nil {
		return r.body
	}
	tokens := lexBody(r.Source, true)
	r.parameters = r.readParameters()
	r.body = readWords(r.Language, tokens)
	r.body.escapes = strings.Contains(r.Source, `\`)
	if r.Language == "sql" || r.Language == "plpgsql" || r.Language == "internal" {
		r.body.text = newTextReader(r.Language, r.Name, r.parameters, tokens)
	}
	return r.body
}

// readParameters returns what a caller gives: all but OUT of a function, and
// the columns of its table.
func (r *catalogRoutine) readParameters() (out []catalogParameter) {
	for i, argType := range r.ArgTypes {
		p := catalogParameter{Type: argType}
		if i < len(r.ArgNames) {
			p.Name = r.ArgNames[i]
		}
		if i >= len(r.ArgModes) || slices.Contains([]string{"i", "b", "v"}, r.ArgModes[i]) || r.Procedure {
			out = append(out, p)
		}
	}
	return out
}

func readWords(language string, tokens []bodyToken) *routineBody {
	// an aggregate's language is internal
	body := &routineBody{words: make(map[string]bool, len(tokens)), casts: make(map[string]bool),
		dynamic: language != "sql" && language != "plpgsql" && language != "internal"}
	body.makes = body.dynamic
	read(tokens, &routineReader{body: body, plpgsql: language == "plpgsql"})
	return body
}

// read reads a body, or what stands in one of its strings.
func read(tokens []bodyToken, r *routineReader) {
	body := r.body
	r.tokens = tokens
	for i, t := range tokens {
		if t.kind == stringToken {
			read(t.inner, &routineReader{body: body, inString: true})
			continue
		}
		if t.kind != punctToken || t.isOperator() {
			body.words[t.text] = true
		}
		r.at(i)
	}
}

type routineReader struct {
	tokens   []bodyToken
	body     *routineBody
	inString bool // the statement may go on in another string
	plpgsql  bool // INTO names a variable
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
	r.makers(i)
	r.call(i) // a function may have the name of any of the words below
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
	case "alter":
		if next == "table" {
			r.list(i+1, "")
		}
		r.moves(i + 1)
		r.remakes(i + 1)
	case "drop":
		r.drops(i + 1)
	case "create":
		r.creates(i + 1)
	case "into":
		r.selectsInto(i)
	case "inherits":
		r.leads(i)
	case "partition":
		if next == "of" {
			r.leads(i)
		}
	case "rename":
		if next == "to" {
			r.target(i+2, eventCreate)
		}
	case "import":
		if next == "foreign" { // tables of whatever names
			r.body.targets = append(r.body.targets, bodyTarget{event: eventCreate})
		}
	case "trigger", "rule", "policy":
		// what a body makes of these, or takes away, may reach what it names
		before := []string{r.word(i - 1), r.word(i - 2), r.word(i - 3)}
		r.body.dynamic = r.body.dynamic || slices.Contains(before, "create") || before[0] == "drop" || before[0] == "alter"
	case "execute":
		r.body.dynamic = r.body.dynamic || r.runsText(i)
	default:
		r.body.dynamic = r.body.dynamic || next == "(" && rewrite.RunsText(r.token(i).name(), r.schemaOf(i))
	}
}

// schemaOf returns the schema that stands before a name, "" if none does.
func (r *routineReader) schemaOf(i int) string {
	if r.word(i-1) == "." {
		return r.token(i - 2).name()
	}
	return ""
}

// call notes a function that is called, as f(row) or row.f, and a cast's type.
func (r *routineReader) call(i int) {
	name, before, next := r.token(i).name(), r.word(i-1), r.word(i+1)
	switch {
	case name == "":
	case next == "(":
		r.body.calls = append(r.body.calls, rewrite.Name{Schema: r.schemaOf(i), Name: name})
	case before == ".":
		r.body.calls = append(r.body.calls, rewrite.Name{Name: name})
	}
	if name != "" {
		r.cast(i)
	}
}

// cast notes a type's name: behind a colon or AS, or before %TYPE or %ROWTYPE,
// where any of the names may be a table's.
func (r *routineReader) cast(i int) {
	start := i - 1
	for r.word(start) == "." {
		start -= 2
	}
	isOfTable := r.word(i+1) == "%" && (r.word(i+2) == "rowtype" || r.word(i+2) == "type")
	if b := r.word(start); b == ":" || b == "as" && r.word(i+1) == ")" || isOfTable {
		r.body.casts[r.token(i).name()] = true
	}
	for k := i - 2; isOfTable && k > start; k -= 2 {
		r.body.casts[r.token(k).name()] = true
	}
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
func (r *routineReader) name(i int) (rewrite.Name, int) {
	for w := r.word(i); w == "only" || w == "table" || w == "(" || w == "concurrently"; w = r.word(i) {
		i++
	}
	if r.word(i) == "if" && r.word(i+1) == "exists" {
		i += 2
	}
	if r.word(i) == "only" {
		i++
	}
	n := rewrite.Name{Name: r.token(i).name()}
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
	goesOn := r.inString && start+4 >= len(r.tokens) || r.token(start).kind == stringToken
	if n.Name == "" || r.word(i) != "set" && !goesOn {
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
			return nil // made of strings
		case left:
			columns, left = append(columns, t.name()), false
		}
	}
	if r.inString {
		return nil // the rest may be in another string
	}
	return columns
}
