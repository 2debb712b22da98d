package reach

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// A type may make another text of a value: it cuts it, pads it, or shows the name
// that it stands for.

var (
	// nameTypes are types whose values are shown as names, with their quotes.
	nameTypes = []string{"regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"}
	// valueTypes are those of which no value could be a name, or end a constant.
	valueTypes = []string{"int", "integer", "bigint", "smallint", "int2", "int4", "int8", "date", "uuid", "numeric", "boolean", "bool", "timestamptz",
		"timestamp with time zone", "timestamp without time zone", "interval", "real", "double precision", "float8"}
	// keepingTypes leave a text as it is, unless they have a length.
	keepingTypes = []string{"text", "varchar", "record"}
)

// castTo returns what values may be once they are of a type, or of one after the
// other.
func (r *textReader) castTo(values []string, i, end int) []string {
	for k := i; k < end; k++ {
		if t := r.token(k); t.name() == "" && !slices.Contains([]string{"(", ")", "[", "]", ".", ",", ":"}, t.text) {
			return anything
		}
	}
	for start := i; start < end; {
		next := start
		for next < end && r.word(next) != ":" {
			next++
		}
		values = r.ofType(values, start, next)
		start = next + 2
	}
	return values
}

// ofType returns what values may be once they are of the type that stands between
// two tokens.
func (r *textReader) ofType(values []string, i, end int) []string {
	if r.word(i) == "pg_catalog" && r.word(i+1) == "." {
		i += 2
	}
	isWhole := end == i+1 || r.word(i+1) == "("
	switch {
	case isWhole && slices.Contains(valueTypes, r.word(i)):
		return []string{string(anyName)}
	case end == i+1 && slices.Contains(nameTypes, r.word(i)):
		return each(values, shownName)
	case r.keeps(i):
		return values
	}
	return cut(values)
}

// keeps reports whether the type that stands at a token leaves texts as they are.
func (r *textReader) keeps(i int) bool {
	if r.word(i) == "pg_catalog" && r.word(i+1) == "." {
		i += 2
	}
	return slices.Contains(keepingTypes, r.word(i)) && r.word(i+1) != "(" && r.word(i+1) != "."
}

// shownName returns how a name is shown, if it is plain or told later: with quotes and
// a schema, or without.
func shownName(v string) string {
	if v == "" || sqltext.IsDigit(v[0]) || strings.ContainsRune(v, anyText) || strings.IndexFunc(v, func(c rune) bool { return !isMark(c) && !sqltext.IsWordRune(c) }) >= 0 {
		return string(anyName)
	}
	return v
}

// cut returns what may be left of texts: anything, unless there is nothing in them that
// could stand between names.
func cut(values []string) []string {
	for _, v := range values {
		if strings.IndexFunc(v, isSpecial) >= 0 {
			return anything
		}
	}
	return []string{string(anyWord)}
}

// elements notes the elements of a list that FOREACH goes through. One that is
// written as {a, b} is told if it has no quotes or escapes.
func (r *textReader) elements(name string, start, end int) {
	for _, v := range r.eval(start, end) {
		list := strings.TrimSpace(v)
		switch {
		case !strings.ContainsAny(v, `{}"\\`):
			r.loopValues[name] = append(r.loopValues[name], v)
		case strings.ContainsAny(v, `"\\`) || strings.Count(v, "{") > 1 || !strings.HasPrefix(list, "{") || strings.Index(v, "}") != strings.LastIndex(v, "}"):
			r.loopValues[name] = append(r.loopValues[name], string(anyText))
		default:
			r.loopValues[name] = append(r.loopValues[name], v)
			for element := range strings.SplitSeq(strings.Trim(list, "{}"), ",") {
				r.loopValues[name] = append(r.loopValues[name], strings.TrimSpace(element))
			}
		}
	}
}
