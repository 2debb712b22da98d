package reach

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// plainFunctions return numbers, dates and the like.
var plainFunctions = []string{"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "date_part", "extract", "length", "char_length", "md5", "hashtext", "nextval", "currval",
	"random", "gen_random_uuid", "pg_backend_pid", "txid_current", "current_schema", "abs", "floor", "mod", "array_length", "cardinality", "count", "date_trunc", "to_char"}

// plainTemplate is one of to_char by which it shows nothing but digits.
var plainTemplate = regexp.MustCompile(`(?i)^(?:[-:_. ]|yyyy|yy|iyyy|iw|ww|mm|ddd|dd|hh24|hh12|hh|mi|ssss|ss|ms|us|q|fm|0|9)*$`)

// cuttingFunctions return parts of what they are given, or change it.
var cuttingFunctions = []string{"replace", "substr", "substring", "left", "right", "split_part", "regexp_replace", "translate", "overlay", "reverse", "lpad", "rpad", "repeat"}

// function returns what a function may return.
func (r *textReader) function(name string, args []tokenRange) []string {
	values := make([][]string, len(args))
	value := func(i int) []string {
		if values[i] == nil {
			values[i] = r.eval(args[i].start, args[i].end)
		}
		return values[i]
	}
	switch {
	case slices.Contains(plainFunctions, name):
		if name == "to_char" && (len(args) != 2 || slices.ContainsFunc(value(1), func(v string) bool { return !plainTemplate.MatchString(v) })) {
			return anything
		}
		return []string{string(anyName)}
	case len(args) == 0 || slices.ContainsFunc(args, func(e tokenRange) bool { return r.word(e.start) == "variadic" }):
		return anything
	}
	switch name {
	case "format":
		return r.format(value(0), args[1:])
	case "concat", "concat_ws":
		separators, out := []string{""}, []string{""}
		if name == "concat_ws" {
			separators, args, values = value(0), args[1:], values[1:]
		}
		for i := range args {
			if i > 0 {
				out = product(out, separators)
			}
			out = product(out, value(i))
		}
		return out
	case "quote_ident":
		return each(value(0), func(v string) string { return quoteName(v, false) })
	case "quote_literal", "quote_nullable":
		return each(value(0), quoteValue)
	case "trim", "btrim", "ltrim", "rtrim":
		if len(args) == 1 {
			return each(value(0), func(v string) string {
				if strings.TrimSpace(v) != v {
					return string(anyText)
				}
				return v
			})
		}
	case "lower", "upper", "nullif":
		return value(0)
	case "coalesce":
		return r.either(args)
	}
	if !slices.Contains(cuttingFunctions, name) {
		return anything
	}
	var parts []string
	for i := range args {
		parts = append(parts, value(i)...)
	}
	return cut(parts)
}

// isSpecial reports whether a character could stand between names, or bring any
// text along.
func isSpecial(r rune) bool {
	return r != anyName && r != anyWord && r != ownTable && (isMark(r) || !sqltext.IsWordRune(r))
}

func isNamePart(c byte) bool { return sqltext.IsNameByte(c) }

// quoteName is %I and quote_ident. A parameter is told later, so that whether it
// needs its quotes isn't known; where it goes on as one name, it is left without.
func quoteName(v string, goesOn bool) string {
	v = strings.ReplaceAll(v, string(anyText), string(anyName))
	isLater := strings.IndexFunc(v, func(r rune) bool { return isParameter(r) || r >= firstArgument && r <= anyArgument }) >= 0
	isPlain := v != "" && !sqltext.IsDigit(v[0]) && strings.IndexFunc(v, func(r rune) bool { return !sqltext.IsWordRune(r) }) < 0
	if isPlain && (!isLater || goesOn) {
		return v
	}
	return sqltext.QuoteName(v)
}

// quoteValue is %L and quote_literal.
func quoteValue(v string) string {
	if hasMark(v) {
		return "'" + string(anyName) + "'"
	}
	return sqltext.QuoteLiteral(v)
}

// format returns what format() may return.
func (r *textReader) format(formats []string, args []tokenRange) (out []string) {
	for _, f := range formats {
		out = append(out, r.formatOne(f, args)...)
	}
	if len(out) > maxTexts {
		return anything
	}
	return out
}

func (r *textReader) formatOne(f string, args []tokenRange) []string {
	out, next := []string{""}, 0
	for f != "" {
		before, rest, found := strings.Cut(f, "%")
		out = product(out, []string{before})
		if !found {
			return out
		}
		end := strings.IndexFunc(rest, func(c rune) bool { return c != '$' && c != '-' && (c < '0' || c > '9') })
		if end < 0 {
			return anything
		}
		if place, _, hasPlace := strings.Cut(rest[:end], "$"); hasPlace {
			n, err := strconv.Atoi(place)
			if err != nil || n < 1 {
				return anything
			}
			next = n - 1
		}
		kind := rest[end]
		if f = rest[end+1:]; kind == '%' {
			out = product(out, []string{"%"})
			continue
		}
		if next >= len(args) {
			return anything
		}
		values := r.eval(args[next].start, args[next].end)
		switch next++; kind {
		case 's':
		case 'I':
			goesOn := f != "" && isNamePart(f[0]) || before != "" && isNamePart(before[len(before)-1])
			values = each(values, func(v string) string { return quoteName(v, goesOn) })
		case 'L':
			values = each(values, quoteValue)
		default:
			return anything
		}
		out = product(out, values)
	}
	return out
}
