package reach

import (
	"strings"

	"github.com/fencerow/fencerow/internal/check"
)

// Some functions run the SQL that they are given, or set the sequence that they
// are given. A text that calls one isn't proved, but an expression in the database
// may call one as well. What it is given there is often a constant; then it
// does what that says, and otherwise whatever can be done.

// givenLanguage is what the catalog's query says of a routine that is such a function
// under a name of its own.
const givenLanguage = "given"

// sqlFunctions are those functions, beside those of dblink.
var sqlFunctions = func() map[string]bool {
	names := make(map[string]bool)
	for _, name := range check.SQLFunctions() {
		names[name] = true
	}
	return names
}()

func runsGiven(name string) bool { return sqlFunctions[name] || strings.HasPrefix(name, "dblink") }

// catalogExpression is one in the database that calls such a function, or an object
// that is one under another name.
type catalogExpression struct {
	Relation   oid    // which it belongs to, 0 if it belongs to none
	Kind, Name string // of the object, as pg_identify_object tells them
	Source     string // "" if the object is the function itself
}

// expression is what one is found to call.
type expression struct {
	*catalogExpression
	calls []givenCall
}

// givenCall is a call of a function that runs what it is given.
type givenCall struct {
	name  string          // "" if that isn't known
	words map[string]bool // in the constants that it is given; nil if it is given anything else
}

// read finds the calls in an expression.
func (e *catalogExpression) read() *expression {
	out := &expression{catalogExpression: e}
	tokens := lexBody(e.Source, true)
	for i, t := range tokens {
		if i+1 < len(tokens) && tokens[i+1].is("(") && runsGiven(t.name()) {
			out.calls = append(out.calls, givenCall{t.name(), constantWords(tokens[i+1:])})
		}
	}
	if len(out.calls) == 0 {
		out.calls = []givenCall{{}}
	}
	return out
}

// function returns the name of the first function that is called.
func (e *expression) function() string {
	if name := e.calls[0].name; name != "" {
		return name
	}
	return e.Name
}

// constantWords returns the words in the constants between the brackets that tokens
// begin with, or nil if anything else stands there.
func constantWords(tokens []bodyToken) map[string]bool {
	words := make(map[string]bool)
	depth, isType := 0, false // behind ::
	for _, t := range tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			if depth--; depth == 0 {
				return words
			}
		case t.kind == stringToken:
			if noteWords(words, t.inner); words["uescape"] { // what such names stand for isn't read
				return nil
			}
		case t.is(":"), t.is(","):
			isType = t.is(":")
		case t.is("true"), t.is("false"), t.is("null"), t.is("."):
		case t.name() == "" || !isType && !isNumber(t.text):
			return nil
		}
	}
	return nil
}

// noteWords notes every word of a text, those in its strings too.
func noteWords(words map[string]bool, tokens []bodyToken) {
	for _, t := range tokens {
		if noteWords(words, t.inner); t.kind != stringToken && (t.kind != punctToken || t.isOperator()) {
			words[t.text] = true
		}
	}
}

func isNumber(text string) bool { return text[0] >= '0' && text[0] <= '9' }

// spreadExpressions adds up what expressions write: whatever uses their relation may
// run them.
func (b *closureBuilder) spreadExpressions() {
	for _, e := range b.expressions {
		if r := b.relations[e.Relation]; r != nil {
			for _, event := range []string{"INSERT", "UPDATE", "DELETE", "TRUNCATE", eventRead, eventRefresh, eventLike} {
				b.addFor(r.code, event, b.reachedBy(e))
			}
		}
	}
	for _, r := range b.routines {
		if r.Language == givenLanguage {
			b.add(r.writes, b.reachedBy(&expression{calls: []givenCall{{}}}))
		}
	}
}

// reachedBy returns what an expression writes, as far as is known by now.
func (b *closureBuilder) reachedBy(e *expression) tableSet {
	out := b.set()
	for _, call := range e.calls {
		b.given(out, call)
	}
	return out
}

// given adds what a function writes by what it is given.
func (b *closureBuilder) given(out tableSet, call givenCall) {
	isAny := call.words == nil || !isReading(call.name) && hasAny(call.words, []string{"do", "execute", "prepare"}) || strings.HasPrefix(call.name, "schema_") || strings.HasPrefix(call.name, "database_") || strings.HasPrefix(call.name, "cursor_")
	if call.name == "setval" || call.name == "" {
		b.setsSequence(out, call.words)
	}
	switch {
	case call.name == "setval":
	case !isAny:
		out.add(b.named(call.words))
		if call.words["fencing"] && b.facts.Epoch {
			out.put(b.own())
		}
	default:
		for _, r := range b.routines {
			if r.Language != givenLanguage {
				out.add(r.unguarded())
			}
		}
		if b.facts.Epoch {
			out.put(b.own())
		}
		if !isReading(call.name) {
			b.shadowed(out, check.Name{})
			if b.making {
				out.put(0)
			}
		}
	}
}

// isReading reports whether the SQL that a function is given may only read; the functions
// that this calls may write all the same.
func isReading(name string) bool {
	return strings.Contains(name, "_to_xml") || strings.HasPrefix(name, "ts_") || strings.HasPrefix(name, "crosstab") || name == "connectby" || name == "xpath_table"
}

// setsSequence adds the tables whose tokens come from a sequence that may be set: one
// that the words name, or any if they are nil.
func (b *closureBuilder) setsSequence(out tableSet, words map[string]bool) {
	if b.making {
		return
	}
	if words[columnsSequence] {
		if !b.facts.Owned && len(b.calls[columnsSequence]) == 0 {
			return
		}
		words = nil
	}
	if b.facts.Epoch && (words == nil || words["write_epoch"]) {
		out.put(b.own())
	}
	for i, t := range b.tables {
		if b.chosen(i) && t.IssuedBy != (check.Name{}) && (words == nil || words[lowerASCII(t.IssuedBy.Name)]) {
			out.put(i)
		}
	}
}
