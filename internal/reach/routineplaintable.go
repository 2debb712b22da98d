package reach

import (
	"slices"
	"strings"
)

// A plain body may make tables of which everything runs that stands in it, and nothing else:
// what a default calls would run whenever a row is put in.

// definition reads a table's definition, from the word TABLE on. Other types than the server's own
// may stand in it: what a type or a cast of one calls belongs to no relation, and is looked for
// apart from bodies.
func (p *plainReader) definition(i, end int) {
	depth := 0
	for ; i < end; i++ {
		next := -1 // behind what is plain
		switch w := p.word(i); {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case w == "as" && depth == 0:
			return
		case w == "default":
			next = p.constant(i + 1)
		case w == "generated":
			next = p.identity(i + 1)
		case w == "check":
			next = p.comparison(i + 1)
		case w == "like":
			next = p.path(i + 1)
		}
		switch w := p.word(i); {
		case next > 0 && slices.Contains(definitionEnds, p.word(next)):
			i = next - 1
		case tableLeads[w]:
			p.fail("makes a table with %s", strings.ToUpper(w))
			return
		}
	}
}

// definitionEnds are the words that may stand behind the parts of a definition that are looked
// through.
var definitionEnds = []string{",", ")", "not", "null", "primary", "unique", "constraint", "check", "default"}

// constant returns where a column's default ends that begins at a token and calls nothing but what
// the server has for defaults, -1 if it isn't such a one.
func (p *plainReader) constant(i int) int {
	if p.word(i) == "-" {
		i++
	}
	t, next := p.token(i), i+1
	switch {
	case t.kind == stringToken, slices.Contains([]string{"true", "false", "null", "current_timestamp", "current_date"}, p.word(i)):
	case t.kind == wordToken && isNumber(t.text):
		next = p.number(i)
	case (t.is("now") || t.is("gen_random_uuid")) && p.word(next) == "(" && p.word(next+1) == ")":
		next += 2
	case t.is("nextval") && p.word(next) == "(" && p.token(next+1).kind == stringToken:
		if next = p.casts(next + 2); p.word(next) != ")" {
			return -1
		}
		next++
	default:
		return -1
	}
	return p.casts(next)
}

// number returns where a number ends that begins at a token.
func (p *plainReader) number(i int) int {
	if p.word(i+1) == "." {
		if t := p.token(i + 2); t.kind == wordToken && isNumber(t.text) {
			return i + 3
		}
		return i + 2
	}
	return i + 1
}

// casts returns where the casts end that may begin at a token: ::type, ::schema.type(1, 2)[].
func (p *plainReader) casts(i int) int {
	for p.word(i) == ":" && p.word(i+1) == ":" && p.token(i+2).name() != "" {
		for i += 3; p.word(i) == "." && p.token(i+1).name() != ""; {
			i += 2
		}
		if p.word(i) == "(" {
			for i++; isNumber(p.word(i)+"x") || p.word(i) == ","; i++ {
			}
			if p.word(i) != ")" {
				return -1
			}
			i++
		}
		for p.word(i) == "[" && p.word(i+1) == "]" {
			i += 2
		}
	}
	return i
}

// identity returns where GENERATED ... AS IDENTITY ends, from behind its first word on, -1 if it is
// another column that is generated, or has options.
func (p *plainReader) identity(i int) int {
	switch {
	case p.word(i) == "always":
		i++
	case p.word(i) == "by" && p.word(i+1) == "default":
		i += 2
	default:
		return -1
	}
	if p.word(i) != "as" || p.word(i+1) != "identity" {
		return -1
	}
	return i + 2
}

// comparison returns where a condition in brackets ends that only compares columns with constants
// and with each other, -1 if it may call anything.
func (p *plainReader) comparison(i int) int {
	if p.word(i) != "(" {
		return -1
	}
	for depth := 0; i < len(p.tokens); i++ {
		t := p.token(i)
		switch w := p.word(i); {
		case w == "(":
			if before := p.token(i - 1); before.name() != "" && !comparisonWords[p.word(i-1)] {
				return -1
			}
			depth++
		case w == ")":
			if depth--; depth == 0 {
				return i + 1
			}
		case t.kind == wordToken && isNumber(t.text):
			i = p.number(i) - 1
		case w == ".", w == "[", w == ";", w == "select":
			return -1
		case w == ":":
			if next := p.casts(i); next > i {
				i = next - 1
				continue
			}
			return -1
		}
	}
	return -1
}

// comparisonWords may stand before a bracket in a comparison without being the name of a function.
var comparisonWords = setOf("check", "in", "and", "or", "not", "between")

// dropsTemporary reports whether all tables of a DROP, from the first name on, are temporary ones that
// the body itself makes, or are called so by their schema.
func (p *plainReader) dropsTemporary(i, end int) bool {
	for i < end {
		n, next := p.name(i)
		if n.Name == "" || n.Schema != "pg_temp" && (n.Schema != "" || !p.makesTemporary(n.Name)) {
			return false
		}
		if p.word(next) != "," {
			return next == end
		}
		i = next + 1
	}
	return false
}

// makesTemporary reports whether the body makes a temporary table of that name.
func (p *plainReader) makesTemporary(name string) bool {
	for i := range p.tokens {
		if p.word(i) != "create" || p.word(i+1) != "temp" && p.word(i+1) != "temporary" || p.word(i+2) != "table" {
			continue
		}
		at := i + 3
		for p.word(at) == "if" || p.word(at) == "not" || p.word(at) == "exists" {
			at++
		}
		if p.token(at).name() == name && p.word(at+1) != "." {
			return true
		}
	}
	return false
}
