package reach

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// What a routine makes, changes or drops is looked at once it has run, which
// takes the server a few milliseconds. What can't lead to a protected table is
// left out, since much of it is made all the time: tables of plain columns, mostly
// temporary ones, and indexes and sequences.

// objectKinds are the kinds of object after whose making, change or end a
// protected table could be reached in another way.
var objectKinds = []string{"view", "materialized", "recursive", "function", "procedure", "routine", "trigger", "rule", "operator", "aggregate", "cast", "type", "domain",
	"policy", "event", "extension", "foreign", "server", "schema", "owned", "language", "transform", "conversion", "constraint"}

// tableLeads are the words by which a table that is made leads to others, or
// calls something.
var tableLeads = []string{"default", "like", "inherits", "partition", "references", "generated", "of", "check", "exclude"}

// makers notes whether something is made, changed or dropped at a token.
func (r *routineReader) makers(i int) {
	switch r.word(i) {
	case "create":
		r.body.makes = r.body.makes || r.makesObject(i+1)
	case "alter":
		r.body.makes = r.body.makes || r.word(i+1) == "table" || slices.Contains(objectKinds, r.word(i+1))
	case "drop":
		r.body.makes = r.body.makes || slices.Contains(objectKinds, r.word(i+1))
	case "import":
		r.body.makes = r.body.makes || r.word(i+1) == "foreign"
	case "execute":
		if r.runsText(i) {
			r.executes(i + 1)
		}
	default:
		r.body.makes = r.body.makes || r.word(i+1) == "(" && rewrite.RunsText(r.token(i).name(), r.schemaOf(i))
	}
}

// makesObject reads CREATE.
func (r *routineReader) makesObject(i int) bool {
	for slices.Contains([]string{"or", "replace", "global", "local", "temp", "temporary", "unlogged"}, r.word(i)) {
		i++
	}
	if kind := r.word(i); kind != "table" {
		return slices.Contains(objectKinds, kind)
	}
	for ; i < len(r.tokens) && r.word(i) != ";" && r.word(i) != "as"; i++ {
		if slices.Contains(tableLeads, r.word(i)) {
			return true
		}
	}
	return false
}

// executes reads EXECUTE: whether the SQL that it runs is what stands in its
// strings, with values that are quoted.
func (r *routineReader) executes(i int) {
	for {
		end := r.operandEnd(i)
		if end < 0 {
			r.body.makes = true
			return
		}
		switch r.word(end + 1) {
		case "||":
			i = end + 2
		case ";", "into", "using", "loop":
			return
		default:
			r.body.makes = true
			return
		}
	}
}

// operandEnd returns the last token of a part of the SQL that EXECUTE runs: a
// string, or what quotes values; -1 for any other.
func (r *routineReader) operandEnd(i int) int {
	t := r.token(i)
	switch {
	case t.kind == stringToken:
		if i > 0 && r.word(i-1) == "||" && len(t.inner) > 0 && t.inner[0].is("(") {
			return -1 // what stands before may be a function's name
		}
		return i
	case t.is("tg_table_name") || t.is("tg_table_schema") || t.is("tg_relname"): // of a trigger
		r.body.opens = true
		return i
	case r.word(i+1) != "(":
		return -1
	case t.is("format") && r.token(i+2).kind == stringToken && (r.word(i+3) == "," || r.word(i+3) == ")") && isPlainFormat(r.token(i+2).inner),
		t.is("quote_ident"), t.is("quote_literal"), t.is("quote_nullable"):
		r.body.opens = true
		return r.closing(i + 1)
	}
	return -1
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

var quotedPlace = regexp.MustCompile(`^(?:[0-9]+\$)?[il]$`)

// isPlainFormat reports whether the values that format() puts into a text are all
// quoted, as names or constants, and none is the name of a function.
func isPlainFormat(tokens []bodyToken) bool {
	for i, t := range tokens {
		switch {
		case t.kind == stringToken && !isPlainFormat(t.inner):
			return false
		case t.kind != punctToken || !strings.Contains(t.text, "%"):
		case !strings.HasSuffix(t.text, "%") || strings.Count(t.text, "%") > 1 || i+1 >= len(tokens) || !quotedPlace.MatchString(tokens[i+1].text):
			return false
		case i+2 < len(tokens) && tokens[i+2].is("(") && !namesTable(tokens[:i]):
			return false
		}
	}
	return true
}

// namesTable reports whether a table's name stands behind these tokens, with a
// schema or without.
func namesTable(tokens []bodyToken) bool {
	for n := len(tokens); n >= 3 && tokens[n-1].is("."); n = len(tokens) {
		tokens = tokens[:n-2] // %I. or name.
		if len(tokens) > 0 && tokens[len(tokens)-1].isOperator() {
			tokens = tokens[:len(tokens)-1]
		}
	}
	if len(tokens) == 0 {
		return false
	}
	last := tokens[len(tokens)-1]
	return last.is("into") || last.is("on") || last.is("table")
}
