package reach

import (
	"slices"
	"strconv"
	"strings"
)

// The values of expressions in a routine's body, as texts with marks for what isn't
// known.

// eval returns what an expression may be.
func (r *textReader) eval(start, end int) []string {
	out := []string{""}
	for _, part := range r.split(start, end, "||") {
		out = product(out, r.operand(part.start, part.end))
	}
	return out
}

// product joins each text with each.
func product(left, right []string) (out []string) {
	for _, a := range left {
		for _, b := range right {
			if len(a)+len(b) > maxText {
				return anything
			}
			if !slices.Contains(out, a+b) {
				out = append(out, a+b)
			}
		}
	}
	if len(out) > maxTexts {
		return anything
	}
	return out
}

// operand returns what a part of an expression may be.
func (r *textReader) operand(start, end int) []string {
	for i := start; i < end; i++ {
		if r.word(i) == "(" || r.word(i) == "[" {
			if i = r.closingOf(i); i < 0 {
				return anything
			}
			continue
		}
		if r.word(i) == ":" && r.word(i+1) == ":" {
			return r.castTo(r.operand(start, i), i+2, end)
		}
	}
	first := r.token(start)
	switch {
	case start >= end:
		return anything
	case first.is("(") && r.closingOf(start) == end-1:
		return r.eval(start+1, end-1)
	case first.is("array") && r.word(start+1) == "[" && r.closingOf(start+1) == end-1:
		return r.either(r.split(start+2, end-1, ","))
	case first.is("tg_argv") && r.word(start+1) == "[" && r.closingOf(start+1) == end-1:
		if n, err := strconv.Atoi(r.word(start + 2)); err == nil && start+4 == end && n < int(anyArgument-firstArgument) {
			return []string{string(firstArgument + rune(n))}
		}
		return []string{string(anyArgument)}
	case end == start+1 && first.kind == stringToken:
		return []string{withoutMarks(first.raw)}
	case end == start+2 && first.is("$"):
		return r.variable("$" + r.word(start+1))
	case end == start+1:
		return r.named(first)
	case end == start+3 && r.word(start+1) == "." && first.name() == r.routine && r.isOnlyRoutine():
		return r.variable(r.token(start + 2).name())
	case r.word(start+1) == "(" && r.closing(start+1) == end-1:
		return r.function(first.name(), r.arguments(start+1))
	case first.is("pg_catalog") && r.word(start+1) == "." && r.word(start+3) == "(" && r.closing(start+3) == end-1:
		return r.function(r.token(start+2).name(), r.arguments(start+3))
	}
	return anything
}

// closingOf is closing for brackets of either kind.
func (r *textReader) closingOf(i int) int {
	for depth := 0; i < len(r.tokens) && r.word(i) != ";"; i++ {
		switch r.word(i) {
		case "(", "[":
			depth++
		case ")", "]":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func each(values []string, change func(string) string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = change(v)
	}
	return out
}

// withoutMarks takes what looks like a mark for anything.
func withoutMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if isMark(r) {
			return anyText
		}
		return r
	}, s)
}

func (r *textReader) either(list []tokenRange) (out []string) {
	for _, e := range list {
		out = append(out, r.eval(e.start, e.end)...)
	}
	if len(out) > maxTexts {
		return anything
	}
	return out
}
