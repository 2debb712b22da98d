package reach

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/rewrite"
)

// Code that runs SQL which it makes writes what the texts name. What of a text is
// known only where the code is used, a parameter or the name of a trigger's table, is put in
// there. A text of which too little is known to tell the tables it writes counts
// for each that has no wall.

// madeText is a text that code makes and runs.
type madeText struct {
	body     *routineBody
	isAny    bool       // it could write any table
	calls    bool       // it could call any function
	reads    bool       // it could read any relation
	copies   bool       // it could make a table like any other
	patterns [][]string // names of which only these parts are known, in this order
}

// maxNesting bounds how deep texts are followed that make others, and maxMade how
// many of them one body may run. Beyond, they could write any table.
const (
	maxNesting = 4
	maxMade    = 256
)

// readText reads a text once.
func (c *catalog) readText(text string) *madeText {
	if c.texts == nil {
		c.texts = make(map[string]*madeText)
	}
	if c.texts[text] == nil {
		c.texts[text] = newMadeText(lexBody(text, true))
	}
	return c.texts[text]
}

func newMadeText(tokens []bodyToken) *madeText {
	m := &madeText{body: readWords("sql", tokens)}
	m.body.dynamic, m.body.text = true, newTextReader("sql", "", nil, tokens)
	isUnknown, hasValue := false, false
	for i, t := range tokens {
		name, isQuoted := t.text, t.kind == nameToken
		if t.kind == stringToken {
			isUnknown = isUnknown || strings.ContainsRune(t.raw, anyText)
			hasValue = hasValue || hasMark(t.raw)
			continue
		}
		isUnknown = isUnknown || !isQuoted && (strings.ContainsRune(name, anyText) || isAnyWord(name) || i == 0 && strings.Trim(name, string(anyName)) == "")
		if isQuoted { // what its type shows may be the name without quotes
			for _, inner := range lexBody(name, false) {
				m.body.words[inner.name()] = true
			}
		}
		if parts, known := knownParts(name); known {
			continue
		} else if len(parts) > 0 {
			m.patterns = append(m.patterns, append([]string{name}, parts...))
		} else {
			m.reads = true
		}
	}
	m.isAny = isUnknown // whatever stands before: the rest may end that statement, and be another
	isOpen := func(name string) bool {
		parts, known := knownParts(name)
		return !known && len(parts) == 0 || name != "" && sqltext.IsDigit(name[0]) // an oid
	}
	m.isAny = m.isAny || slices.ContainsFunc(m.body.targets, func(t bodyTarget) bool {
		return t.event != eventLike && (isOpen(t.Name.Name) || t.Name.Name == "" && hasMark(t.Schema))
	})
	m.copies = slices.ContainsFunc(m.body.targets, func(t bodyTarget) bool { return t.event == eventLike && hasMark(t.Name.Name) })
	for word := range m.body.leads { // what is made could be written by another statement of the code
		m.isAny = m.isAny || isOpen(word)
	}
	m.isAny = m.isAny || (m.reads || hasValue) && hasAny(m.body.words, []string{"do", "execute", "prepare", "setval", "attach"})
	m.isAny = m.isAny || m.reads && m.body.words["sequence"] && hasAny(m.body.words, []string{"alter", "drop"})
	m.calls = m.calls || slices.ContainsFunc(m.body.calls, func(call rewrite.Name) bool { return isOpen(call.Name) })
	return m
}

// isAnyWord reports whether a word without quotes could be a keyword that statements
// begin with.
func isAnyWord(word string) bool {
	return strings.ContainsRune(word, anyWord) && !strings.ContainsAny(word, "_0123456789")
}

// knownParts returns what is known of a name of which the rest could be anything. A
// name is known if there is no such rest, or it will be told where the code is
// used.
func knownParts(name string) (parts []string, known bool) {
	marks := []rune(name)
	if slices.ContainsFunc(marks, func(c rune) bool { return c == ownTable || c >= firstArgument && c <= anyArgument }) {
		return nil, true
	}
	return strings.FieldsFunc(name, isMark), !hasMark(name) || len(marks) == 1 && isParameter(marks[0])
}

// fits reports whether a name could be one of a pattern.
func fits(pattern []string, name string) bool {
	whole, parts := pattern[0], pattern[1:]
	if !isMark([]rune(whole)[0]) {
		if !strings.HasPrefix(name, parts[0]) {
			return false
		}
	}
	last := parts[len(parts)-1]
	if strings.HasSuffix(whole, last) && !strings.HasSuffix(name, last) {
		return false
	}
	for _, part := range parts {
		_, rest, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = rest
	}
	return true
}

// everything returns what code could write of which nothing is told: each table
// that has no wall.
func (b *closureBuilder) everything() tableSet {
	out := b.set()
	for i, t := range b.tables {
		if b.chosen(i) && !t.HasWall {
			out.put(i)
		}
	}
	return out
}

// writtenBy returns what a text writes.
func (b *closureBuilder) writtenBy(text string) tableSet {
	m := b.facts.readText(text)
	if m.isAny || b.nesting >= maxNesting {
		return b.everything()
	}
	b.nesting++
	defer func() { b.nesting-- }()
	out := b.written(m.body)
	for _, pattern := range m.patterns {
		for name, relations := range b.byName {
			for _, r := range relations {
				if fits(pattern, name) {
					r.all(out, m.body.words["cascade"])
				}
			}
		}
		for name, routines := range b.calls {
			for _, r := range routines {
				if fits(pattern, name) {
					out.add(r.fromAnywhere())
				}
			}
		}
	}
	for _, r := range b.relations {
		if m.copies {
			out.add(r.code[eventLike])
		}
	}
	for _, r := range b.onRead {
		if m.reads {
			out.add(r.code[eventRead])
		}
	}
	for _, r := range b.routines {
		if m.calls {
			out.add(r.fromAnywhere())
		}
	}
	return out
}

// fromAnywhere returns what a call of the routine writes without a guard, if
// nothing is known of what it is given.
func (r *reachedRoutine) fromAnywhere() tableSet {
	if r.guarded {
		return nil
	}
	if r.open.isEmpty() {
		return r.writes
	}
	out := slices.Clone(r.writes)
	out.add(r.open)
	return out
}

// texts returns the SQL that a body runs, by the routines that it calls, too, if it tells
// them what to run.
func (b *closureBuilder) texts(body *routineBody) []string {
	if body.text == nil || b.making {
		return nil
	}
	out := slices.Clone(body.text.texts())
	for _, call := range body.text.called() {
		for _, f := range b.calls[call.name] {
			if call.schema != "" && call.schema != lowerASCII(f.Schema) && !hasMark(call.schema) || f.guarded {
				continue
			}
			for _, text := range f.texts {
				if strings.IndexFunc(text, isParameter) >= 0 {
					out = append(out, fill(text, body.text.given(call.at, f))...)
				}
			}
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxMade {
		return anything
	}
	return out
}

// spreadTexts notes what a routine writes by the texts that it runs, and which of
// them depend on what it is given.
func (b *closureBuilder) spreadTexts(r *reachedRoutine) {
	if r.open == nil {
		r.open = b.set()
	}
	texts := b.texts(r.body)
	if slices.Equal(r.texts, anything) {
		texts = r.texts // there were too many
	}
	if !slices.Equal(texts, r.texts) {
		r.texts, b.changed = texts, true
	}
	for _, text := range texts {
		if strings.IndexFunc(text, isParameter) >= 0 {
			for _, t := range fill(text, func(rune) []string { return anything }) {
				b.add(r.open, b.writtenBy(t))
			}
		}
	}
	isUntold := b.isUnread(r.body) || slices.ContainsFunc(texts, func(text string) bool { return b.facts.readText(text).isAny }) ||
		slices.ContainsFunc(r.body.calls, func(call rewrite.Name) bool {
			return slices.ContainsFunc(b.calls[call.Name], func(f *reachedRoutine) bool { return f.untold })
		})
	if isUntold && !r.untold {
		r.untold, b.changed = true, true
	}
}

// firedTexts returns what a trigger's function writes by the name of its table and its
// arguments.
func (b *closureBuilder) firedTexts(t *catalogTrigger, f *reachedRoutine, r *reachedRelation) tableSet {
	out := b.set()
	if f.guarded || r == nil {
		return out
	}
	args := triggerArguments(t)
	told := func(mark rune) []string {
		switch {
		case mark == ownTable:
			return []string{withoutMarks(lowerASCII(r.Name))}
		case mark == anyArgument:
			return args
		case mark >= firstArgument && mark < anyArgument && int(mark-firstArgument) < len(args):
			return args[mark-firstArgument : mark-firstArgument+1]
		case mark >= firstArgument && mark < anyArgument:
			return []string{""}
		}
		return []string{string(mark)}
	}
	for _, text := range f.texts {
		if strings.IndexFunc(text, func(c rune) bool { return c >= ownTable && c <= anyArgument }) >= 0 {
			for _, filled := range fill(text, told) {
				out.add(b.writtenBy(filled))
			}
		}
	}
	return out
}

// writtenByTrigger returns what a routine could write on some table, with some arguments, by
// the texts that it makes of these.
func (b *closureBuilder) writtenByTrigger(r *reachedRoutine) tableSet {
	out := b.set()
	for _, text := range r.texts {
		if strings.IndexFunc(text, func(c rune) bool { return c >= ownTable && c <= anyArgument }) >= 0 {
			for _, filled := range fill(text, func(rune) []string { return anything }) {
				out.add(b.writtenBy(filled))
			}
		}
	}
	return out
}

// fill puts in for the marks of a text what is told.
func fill(text string, told func(mark rune) []string) []string {
	out, rest := []string{""}, text
	for rest != "" {
		i := strings.IndexFunc(rest, func(c rune) bool { return isMark(c) && c > anyName && c != anyWord })
		if i < 0 {
			i = len(rest)
		}
		out, rest = product(out, []string{rest[:i]}), rest[i:]
		for _, mark := range rest {
			out, rest = product(out, told(mark)), rest[len(string(mark)):]
			break
		}
	}
	return out
}
