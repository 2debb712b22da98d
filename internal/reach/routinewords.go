package reach

import "slices"

// PL/pgSQL reserves few words, so that a variable, a field or an alias may be called
// like one that a statement begins with.

// begins reports whether a statement is sure to begin at a token.
func (r *routineReader) begins(i int) bool {
	return i == 0 || slices.Contains([]string{";", "begin", "then", "else", "loop"}, r.word(i-1)) && r.word(i-2) != "."
}

// follows reports whether one of the words stands before a token, behind the
// semicolon before it.
func (r *routineReader) follows(i int, words ...string) bool {
	for i--; i >= 0 && r.word(i) != ";"; i-- {
		if slices.Contains(words, r.word(i)) {
			return true
		}
	}
	return false
}

// isInsertInto reports whether INTO is that of INSERT or MERGE. Any other names a
// variable or a table that is made. Behind EXECUTE and FETCH, INSERT and MERGE are
// names.
func (r *routineReader) isInsertInto(i int) bool {
	if before := r.word(i - 1); before != "insert" && before != "merge" {
		return false
	}
	return r.begins(i-1) || !r.follows(i, "execute", "fetch", "move")
}
