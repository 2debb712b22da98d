package reach

import (
	"slices"
)

// Statements that make or change objects, as a plain body may have them.

// creates reads the name of a table or view that is made, or of a sequence.
func (r *routineReader) creates(i int) {
	for slices.Contains([]string{"or", "replace", "global", "local", "temp", "temporary", "unlogged", "recursive", "foreign", "materialized"}, r.word(i)) {
		i++
	}
	kind := r.word(i)
	for i++; r.word(i) == "if" || r.word(i) == "not" || r.word(i) == "exists"; i++ {
	}
	switch kind {
	case "table", "view":
		r.target(i, eventCreate)
	case "sequence":
		r.sequence(i)
	}
}

// selectsInto reads the table that SELECT INTO makes. In PL/pgSQL it would be a
// variable.
func (r *routineReader) selectsInto(i int) {
	if r.isInsertInto(i) || r.plpgsql {
		return
	}
	for i++; slices.Contains([]string{"local", "global", "temp", "temporary", "unlogged", "table"}, r.word(i)); i++ {
	}
	r.target(i, eventCreate)
}

// sequence notes a sequence whose name begins at a token: it is made, changed or
// dropped.
func (r *routineReader) sequence(i int) {
	words := make(map[string]bool)
	for ; i < len(r.tokens) && r.word(i) != ";"; i++ {
		words[r.token(i).name()] = true
	}
	r.body.sequences = append(r.body.sequences, words)
}

// setsSequence reads the first argument of setval: the words of a constant, or nil for
// any sequence.
func (r *routineReader) setsSequence(i int) {
	t := r.token(i)
	end := i + 1
	for r.word(end) == ":" || r.word(end) == "." || end > i+1 && r.token(end).name() != "" { // a cast
		end++
	}
	var words map[string]bool
	switch {
	case t.kind == stringToken && !t.isEscaped && r.word(end) == ",":
		words = namesIn(t.inner)
	case t.is("pg_get_serial_sequence") && r.word(i+1) == "(" && r.word(r.closing(i+1)+1) == ",":
		words = map[string]bool{columnsSequence: true}
	}
	r.body.sequences = append(r.body.sequences, words)
}

// columnsSequence stands for a sequence that a column has.
const columnsSequence = "pg_get_serial_sequence"

// namesIn returns the names of a constant that names a relation, nil if it may name it by
// its number.
func namesIn(tokens []bodyToken) map[string]bool {
	words := make(map[string]bool)
	for _, t := range tokens {
		if t.name() == "" && !t.is(".") || t.kind == wordToken && isNumber(t.text) {
			return nil
		}
		words[t.text] = true
	}
	return words
}
