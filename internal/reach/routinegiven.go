package reach

import (
	"slices"
)

// calledRoutine is a call in a body.
type calledRoutine struct {
	schema, name string
	at           int
}

// called returns the calls of functions that could be the database's own.
func (r *textReader) called() []calledRoutine {
	if r.callees == nil {
		r.callees = []calledRoutine{}
		for i, t := range r.tokens {
			if name := t.name(); name != "" && (r.word(i+1) == "(" || r.word(i-1) == ".") {
				r.callees = append(r.callees, calledRoutine{r.schemaOf(i), name, i})
			}
		}
	}
	return r.callees
}

// given returns what a call gives for the marks of a routine's parameters.
func (r *textReader) given(at int, f *reachedRoutine) func(mark rune) []string {
	values := make(map[rune][]string)
	if r.word(at+1) == "(" {
		for i, arg := range r.arguments(at + 1) {
			place := min(i, len(f.parameters)-1)
			if ends := map[bool]int{r.word(arg.start+1) == "=>": 2, r.word(arg.start+1) == ":" && r.word(arg.start+2) == "=": 3}[true]; ends > 0 {
				place = slices.IndexFunc(f.parameters, func(p catalogParameter) bool { return lowerASCII(p.Name) == r.token(arg.start).name() })
				arg.start += ends
			}
			if place >= 0 {
				values[firstParameter+rune(place)] = append(values[firstParameter+rune(place)], r.eval(arg.start, arg.end)...)
			}
		}
		for mark, value := range f.defaults() {
			if values[mark] == nil {
				values[mark] = value
			}
		}
	}
	return func(mark rune) []string {
		if isParameter(mark) && values[mark] == nil {
			return anything
		}
		if isParameter(mark) {
			return values[mark]
		}
		return []string{string(mark)}
	}
}

// defaults returns what stands for parameters that aren't given.
func (f *catalogRoutine) defaults() map[rune][]string {
	out := make(map[rune][]string)
	if f.Defaults == "" {
		return out
	}
	r := newTextReader("sql", "", nil, lexBody(f.Defaults, true))
	list := r.split(0, len(r.tokens), ",")
	for i, e := range list {
		out[firstParameter+rune(len(f.parameters)-len(list)+i)] = r.eval(e.start, e.end)
	}
	return out
}
