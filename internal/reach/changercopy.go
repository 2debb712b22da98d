package reach

import "slices"

// Many triggers set a column of a copy of NEW, and return that:
//
//	DECLARE _new record; BEGIN _new := NEW; _new.updated_at := now(); RETURN _new; END
//
// Such a variable is read as if it were NEW itself.

// readCopiesAsNew returns the tokens of a body with NEW in the place of each variable that
// holds nothing but NEW, without the variable's declaration and without the assignments of
// NEW to it.
func readCopiesAsNew(tokens []bodyToken) []bodyToken {
	r := &routineReader{tokens: tokens}
	for i := range tokens {
		if name := r.token(i).name(); name != "" && r.declaresRecord(i) && r.isSafeCopy(name) {
			return readCopiesAsNew(r.withoutCopy(name))
		}
	}
	return tokens
}

// declaresRecord reports whether a variable of type record, without a value, is declared at a
// token.
func (r *routineReader) declaresRecord(i int) bool {
	before := r.word(i - 1)
	return (before == "declare" || before == ";") && r.word(i+1) == "record" && r.word(i+2) == ";"
}

// isSafeCopy reports whether a variable is returned, and its name stands in the body for it
// and for nothing else: it is declared once, and is no column's name and behind no label.
func (r *routineReader) isSafeCopy(name string) bool {
	if slices.Contains([]string{"new", "old", "tg_op"}, name) {
		return false
	}
	declared, isReturned := 0, false
	for i := range r.tokens {
		switch {
		case r.token(i).name() != name:
		case r.word(i-1) == ".":
			return false
		case r.declaresRecord(i):
			declared++
		case r.word(i-1) == "return":
			isReturned = true
		}
	}
	return declared == 1 && isReturned
}

// withoutCopy puts NEW in the place of a variable.
func (r *routineReader) withoutCopy(name string) []bodyToken {
	out := make([]bodyToken, 0, len(r.tokens))
	for i := 0; i < len(r.tokens); i++ {
		t := r.tokens[i]
		if t.name() != name {
			out = append(out, t)
			continue
		}
		if r.declaresRecord(i) {
			i += 2
			continue
		}
		if end := r.copiesNew(i); end > 0 {
			i = end
			continue
		}
		out = append(out, bodyToken{text: "new", kind: wordToken})
	}
	return out
}

// copiesNew returns where the statement ends that begins at a token and assigns NEW to the
// variable there, 0 if it is another.
func (r *routineReader) copiesNew(i int) int {
	if !slices.Contains([]string{";", "begin", "then", "else", "loop"}, r.word(i-1)) {
		return 0
	}
	if r.word(i+1) == ":" {
		i++
	}
	if r.word(i+1) == "=" && r.word(i+2) == "new" && r.word(i+3) == ";" {
		return i + 3
	}
	return 0
}
