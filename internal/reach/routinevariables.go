package reach

import (
	"slices"
	"strings"
)

// named returns what a word may be: a number, one of a trigger's variables, or one
// of the body's own.
func (r *textReader) named(t bodyToken) []string {
	name := t.name()
	if name == "" {
		return anything
	}
	if t.kind == wordToken && name[0] >= '0' && name[0] <= '9' {
		return []string{name}
	}
	switch name {
	case "null":
		return []string{""}
	case "true", "false":
		return []string{name}
	case "tg_table_name", "tg_relname", "tg_relid":
		return []string{string(ownTable)}
	case "tg_argv":
		return []string{string(anyArgument)}
	case "tg_op":
		return []string{"INSERT", "UPDATE", "DELETE", "TRUNCATE"}
	case "tg_table_schema", "tg_when", "tg_level", "tg_nargs", "current_schema", "current_user", "session_user", "current_date", "current_timestamp", "localtimestamp":
		return []string{string(anyName)}
	}
	if r.isColumn {
		return anything
	}
	return r.variable(name)
}

// variable returns what a variable or parameter may be.
func (r *textReader) variable(name string) []string {
	name = r.first(name)
	if r.isValue[name] && !r.isOther[name] {
		return []string{string(anyName)}
	}
	if known, ok := r.assigned[name]; ok {
		return known
	}
	parameter, isParameter := r.parameters[name]
	if r.unknown[name] || r.asking[name] || !isParameter && r.assigns[name] == nil && r.loopValues[name] == nil {
		return anything
	}
	r.asking[name] = true
	defer delete(r.asking, name)
	out := slices.Clone(r.loopValues[name])
	if isParameter {
		out = append(out, parameter)
	}
	more := ""
	for _, e := range r.assigns[name] {
		parts := r.split(e.start, e.end, "||")
		if first := parts[0]; len(parts) == 1 || first.end != first.start+1 || r.variableAt(first.start) != name {
			out = append(out, r.eval(e.start, e.end)...)
			continue
		}
		// text := text || 'more': in whatever order, and perhaps often
		for _, text := range r.eval(parts[1].start, e.end) {
			more = glue(more, withoutNames(text))
		}
	}
	if more != "" {
		out = each(out, func(s string) string { return glue(s, more) })
	}
	if r.isShown[name] {
		out = each(out, shownName)
	}
	if r.isCut[name] {
		out = cut(out)
	}
	if len(out) > maxTexts || len(more) > maxText {
		out = anything
	}
	r.assigned[name] = out
	return out
}

// glue joins texts of which some may be left out: they must not make a word of two.
func glue(a, b string) string {
	if a != "" && b != "" && isNamePart(a[len(a)-1]) && isNamePart(b[0]) {
		return a + string(anyText) + b
	}
	return a + b
}

// withoutNames takes a name that isn't known, and isn't a constant's, for anything: it is not
// told where in a statement it stands.
func withoutNames(s string) string {
	inString := false
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\'':
			inString = !inString
		case (r == anyName || r == anyWord) && !inString:
			return anyText
		}
		return r
	}, s)
}

// join notes that two names are one variable's.
func (r *textReader) join(name, other string) {
	if a, b := r.first(name), r.first(other); a != b {
		r.same[a] = b
	}
}

// first returns the name under which a variable is kept.
func (r *textReader) first(name string) string {
	for r.same[name] != "" {
		name = r.same[name]
	}
	return name
}

// variableAt returns the variable whose name stands at a token, $1 at either of its
// two.
func (r *textReader) variableAt(i int) string {
	if r.word(i) == "$" {
		i++
	}
	name := r.token(i).name()
	if name != "" && r.word(i-1) == "$" {
		name = "$" + name
	}
	return r.first(name)
}

// isOnlyRoutine reports whether the routine's name stands for nothing else in the
// body: a record, a block or what FROM has under that name would come first.
func (r *textReader) isOnlyRoutine() bool {
	for i, t := range r.tokens {
		if t.name() == r.routine && r.word(i+1) != "." {
			return false
		}
	}
	return true
}
