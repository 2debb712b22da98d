package reach

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// SQL that a body makes of pieces and runs is worked out as far as the pieces are
// known: constants, variables that are only ever set to what is known, and what is
// told where the routine is used, which a mark stands for until then. For
// anything else stands a mark that says that it could be anything.

// The marks are of Unicode's private use. Where a constant has one, it is taken
// for anyText.
const (
	anyText        = '\ue000' // any text at all
	anyName        = '\ue001' // part of a name, or a value: nothing that could end either
	ownTable       = '\ue002' // the name of the table that the trigger is on
	anyWord        = '\ue003' // like anyName, but it may be a keyword
	firstArgument  = '\ue010' // TG_ARGV[0], and so on
	anyArgument    = '\ue02f' // one of TG_ARGV
	firstParameter = '\ue030' // $1, and so on
	lastMark       = '\ue0ff'
)

func isMark(r rune) bool      { return r >= anyText && r <= lastMark }
func isParameter(r rune) bool { return r >= firstParameter && r <= lastMark }
func hasMark(s string) bool   { return strings.IndexFunc(s, isMark) >= 0 }

// maxTexts bounds how many texts one expression is followed to, and maxText how
// long they are. Beyond, it could be any.
const (
	maxTexts = 16
	maxText  = 64 << 10
)

var anything = []string{string(anyText)}

// tokenRange is what stands between two tokens.
type tokenRange struct{ start, end int }

// textReader works out the texts of a body.
type textReader struct {
	routineReader
	routine    string              // its name, which may stand before those of its parameters
	parameters map[string]string   // their marks
	assigned   map[string][]string // what variables are set to, as far as they were asked for
	assigns    map[string][]tokenRange
	loopValues map[string][]string // what loops set variables to
	unknown    map[string]bool     // variables that a query or the like sets
	asking     map[string]bool
	isValue    map[string]bool   // variables declared of a type whose values can't end a name or a constant
	isOther    map[string]bool   // those declared of another type
	isCut      map[string]bool   // those declared of a type that may change what they are set to
	isShown    map[string]bool   // those declared of a type that shows names
	same       map[string]string // the first name of a variable that has several
	misleads   bool              // one of the body's names is a word by which the body is read
	isColumn   bool              // a name may be a column's, whatever it is besides
	made       []string
	isMade     bool
	callees    []calledRoutine
}

// newTextReader reads what variables are set to.
func newTextReader(language, routine string, parameters []catalogParameter, tokens []bodyToken) *textReader {
	r := &textReader{routineReader: routineReader{tokens: tokens}, routine: lowerASCII(routine), parameters: make(map[string]string),
		assigned: make(map[string][]string), assigns: make(map[string][]tokenRange), unknown: make(map[string]bool), asking: make(map[string]bool),
		loopValues: make(map[string][]string), isValue: make(map[string]bool), isOther: make(map[string]bool), isCut: make(map[string]bool), isShown: make(map[string]bool), same: make(map[string]string)}
	r.isColumn = language != "plpgsql" && r.namesColumns()
	for i, p := range parameters {
		mark := string(min(firstParameter+rune(i), lastMark))
		if slices.Contains(valueTypes, p.Type) {
			mark = string(anyName)
		}
		place := "$" + strconv.Itoa(i+1)
		r.parameters[place], r.isOther[place] = mark, true
		if p.Name != "" {
			r.join(lowerASCII(p.Name), place)
			r.misleads = r.misleads || slices.Contains(misleadingWords, lowerASCII(p.Name))

		}
	}
	for i := range r.tokens {
		if r.word(i) == "alias" && r.word(i+1) == "for" {
			r.join(r.token(i-1).name(), r.variableAt(i+2))
		}
	}
	start, declares := 0, false
	for i := range r.tokens {
		switch w := r.word(i); w {
		case ";", "declare", "begin", "then", "else", "loop", ">>":
			start, declares = i+1, w == "declare" || declares && w == ";"
			if declares {
				r.declares(start)
			}
		case ":":
			if strings.HasPrefix(r.word(i+1), "=") {
				r.assign(i, start, declares, i+2)
			}
		case "=", "default":
			if declares || w == "=" && r.isVariable(start, i) {
				r.assign(i, start, declares, i+1)
			}
		case "cursor":
			if r.word(i+1) == "(" { // its parameters hide variables
				for k, end := i+2, r.closing(i+1); k < end; k++ {
					r.unknown[r.variableAt(k)] = true
				}
			}
		case "into":
			if !r.isInsertInto(i) {
				r.sets(i+1, "using", "from")
			}
		case "diagnostics", "call":
			r.sets(i + 1)
		case "for", "foreach":
			r.loops(i)
		case "variable_conflict":
			value := r.word(i + 1)
			if value == "=" { // the function's own setting
				value = r.word(i + 2)
			}
			r.isColumn = r.isColumn || value != "error" && value != "use_variable"
		}
	}
	return r
}

// namesColumns reports whether a name may be a column's.
func (r *textReader) namesColumns() bool {
	return slices.ContainsFunc(r.tokens, func(t bodyToken) bool {
		return t.is("from") || t.is("update") || t.is("into") || t.is("using")
	})
}

// declares notes of what type a variable is declared.
func (r *textReader) declares(i int) {
	name := r.variableAt(i)
	r.misleads = r.misleads || slices.Contains(misleadingWords, name)
	if r.word(i+1) == "constant" {
		i++
	}
	isShown := slices.Contains(nameTypes, r.word(i+1))
	r.isShown[name] = r.isShown[name] || isShown
	r.isCut[name] = r.isCut[name] || !isShown && !r.keeps(i+1) && !r.token(i+1).is("alias")
	if next := r.word(i + 2); slices.Contains(valueTypes, r.word(i+1)) && (next == ";" || next == ":" || next == "=" || next == "default" || next == "not") {
		r.isValue[name] = true
	} else {
		r.isOther[name] = true
	}
}

// isVariable reports whether nothing but a variable, or a part of one, stands
// between two tokens.
func (r *textReader) isVariable(start, end int) bool {
	if r.word(start) == "$" {
		start++
	}
	if start >= end || r.token(start).name() == "" {
		return false
	}
	for i := start + 1; i < end; i++ {
		switch r.word(i) {
		case ".":
			i++
		case "[":
			if i = r.closingOf(i); i < 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// assign notes what a variable is set to: the one that is declared, or the one
// that stands before a token.
func (r *textReader) assign(i, start int, declares bool, from int) {
	name := r.variableAt(start)
	if !declares {
		k := i - 1
		for depth := 0; k > 0 && (r.word(k) == "]" || depth > 0); k-- {
			depth += map[string]int{"]": 1, "[": -1}[r.word(k)]
		}
		name = r.variableAt(k)
	}
	end := from
	for end < len(r.tokens) && r.word(end) != ";" {
		end++
	}
	if name != "" && (r.word(from-1) != "=" && strings.HasPrefix(r.word(from-1), "=")) {
		r.unknown[name] = true // the sign of a number stands with it
	}
	r.assigns[name] = append(r.assigns[name], tokenRange{from, end})
}

// sets notes that what stands behind a token is set to something that isn't known.
func (r *textReader) sets(i int, ends ...string) {
	for ; i < len(r.tokens) && r.word(i) != ";" && !slices.Contains(ends, r.word(i)); i++ {
		if name := r.variableAt(i); name != "" {
			r.unknown[name] = true
		}
	}
}

// loops notes what FOR and FOREACH set their variables to.
func (r *textReader) loops(i int) {
	in := i + 1
	for r.token(in).name() != "" && !r.token(in).is("in") || r.word(in) == "," || r.word(in) == "." {
		in++
	}
	end := in
	for end < len(r.tokens) && r.word(end) != "loop" && r.word(end) != ";" {
		end++
	}
	name := r.variableAt(i + 1)
	switch {
	case !r.token(in).is("in") || r.word(end) != "loop":
	case r.word(i) == "foreach" && (in == i+2 || r.word(i+2) == "slice") && r.word(in+1) == "array":
		r.elements(name, in+2, end)
	case in == i+2 && r.isRange(in, end): // a number
		r.loopValues[name] = append(r.loopValues[name], string(anyName))
	default:
		r.sets(i+1, "in")
	}
}

func (r *textReader) isRange(i, end int) bool {
	for ; i < end; i++ {
		if r.word(i) == "." && r.word(i+1) == "." {
			return true
		}
	}
	return false
}

// texts returns the SQL that the body runs.
func (r *textReader) texts() []string {
	if !r.isMade {
		r.made, r.isMade = r.makes(), true
	}
	return r.made
}

func (r *textReader) makes() (out []string) {
	for i := range r.tokens {
		w := r.word(i)
		switch next := r.word(i + 1); {
		case w == "execute" && r.runsText(i):
			out = append(out, r.eval(i+1, r.endOfText(i+1))...)
		case w == "do":
			for k := i + 1; k < i+4; k++ {
				if t := r.token(k); t.kind == stringToken {
					out = append(out, newTextReader("plpgsql", "", nil, lexBody(t.raw, true)).texts()...)
				}
			}
		case next == "(" && rewrite.RunsText(r.token(i).name(), r.schemaOf(i)):
			if name := r.token(i).name(); strings.HasPrefix(name, "schema_") || strings.HasPrefix(name, "database_") {
				out = append(out, "TABLE "+string(anyName)) // any of the schema's or of the database's
				continue
			}
			before := ""
			if rewrite.ReadsText(r.token(i).name()) {
				before = "SELECT "
			}
			for _, arg := range r.arguments(i + 1) {
				for _, text := range r.eval(arg.start, arg.end) {
					out = append(out, before+text)
				}
			}
		}
	}
	return out
}

// endOfText returns where the expression ends that EXECUTE runs.
func (r *textReader) endOfText(i int) int {
	for depth := 0; i < len(r.tokens); i++ {
		switch w := r.word(i); w {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		case ";":
			return i
		case "into", "using", "loop":
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// arguments returns those in the brackets that open at a token, nil if they don't
// close.
func (r *textReader) arguments(open int) []tokenRange {
	end := r.closing(open)
	if end < 0 {
		return []tokenRange{{open, open}}
	}
	if end == open+1 {
		return nil
	}
	return r.split(open+1, end, ",")
}

// split returns what stands between separators.
func (r *textReader) split(start, end int, separator string) (out []tokenRange) {
	depth := 0
	for i := start; i < end; i++ {
		switch w := r.word(i); w {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		case separator:
			if depth == 0 {
				out, start = append(out, tokenRange{start, i}), i+1
			}
		}
	}
	return append(out, tokenRange{start, end})
}
