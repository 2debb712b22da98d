package reach

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// The bits of pg_trigger.tgtype.
const (
	rowTrigger    = 1
	beforeTrigger = 2
	insertEvent   = 4
	updateEvent   = 16
)

// rowChange is what a trigger may change in the row that is to be written.
type rowChange struct {
	whole   bool     // any column
	columns []string // lower-cased
}

// changes reports whether a column may be changed.
func (c rowChange) changes(column string) bool {
	return c.whole || slices.Contains(c.columns, lowerASCII(column))
}

// changeOf returns what a trigger may change in a row before it is written.
func (b *closureBuilder) changeOf(t *catalogTrigger) rowChange {
	f := b.changers[t.Function]
	switch {
	case f == nil || !t.Fires || t.Type&(rowTrigger|beforeTrigger) != rowTrigger|beforeTrigger || t.Type&(insertEvent|updateEvent) == 0:
		return rowChange{}
	case f.Language != "plpgsql":
		return changeByArguments(f, triggerArguments(t))
	}
	change, known := b.changes[t.Function]
	if !known {
		change = readChange(f.Source, !b.facts.Equals)
		b.changes[t.Function] = change
	}
	return change
}

// triggerArguments returns what a trigger gives its function; at least one, which may
// be "".
func triggerArguments(t *catalogTrigger) []string {
	return strings.Split(strings.TrimSuffix(sqltext.Unescape(t.Args), "\x00"), "\x00")
}

// changeByArguments returns what triggers of PostgreSQL and its extensions
// change, which are told the column. What others do can't be read.
func changeByArguments(f *catalogRoutine, args []string) rowChange {
	switch f.Language + " " + f.Name {
	case "internal suppress_redundant_updates_trigger", "c lo_manage":
		return rowChange{}
	case "internal tsvector_update_trigger", "internal tsvector_update_trigger_column", "c moddatetime", "c insert_username":
		return rowChange{columns: []string{lowerASCII(args[0])}}
	}
	return rowChange{whole: true}
}

// spreadChange follows what a trigger changes besides the columns that an UPDATE
// sets: keys among them are handed on.
func (b *closureBuilder) spreadChange(t *catalogTrigger) {
	r := b.relations[t.Relation]
	if r == nil || t.Type&updateEvent == 0 {
		return
	}
	change := b.changeOf(t)
	events := []string{"UPDATE"}
	if len(t.Columns) > 0 {
		events = nil
		for _, column := range t.Columns {
			events = append(events, "UPDATE:"+column)
		}
	}
	handed := b.set()
	for event, tables := range r.cascade {
		if column, isColumn := strings.CutPrefix(event, "UPDATE:"); isColumn && change.changes(column) {
			handed.add(tables)
		}
	}
	for _, event := range events {
		b.addFor(r.cascade, event, handed)
	}
}

// tokenChanged returns the tables whose token a trigger on a relation may
// change. A guarded function is taken at its word where it can't be read.
func (b *closureBuilder) tokenChanged(t *catalogTrigger, r *reachedRelation) tableSet {
	out, change := b.set(), b.changeOf(t)
	if b.isGuarded(t.Function, check.Name{Schema: t.Schema, Name: t.Name}) {
		change.whole = false
	}
	for i := range r.family.all {
		if change.changes(b.tables[i].TokenColumn) {
			out.put(i)
		}
	}
	return out
}

// readChange reads what a trigger's function in PL/pgSQL changes in NEW. hasBuiltinEquals says
// that rows are compared by PostgreSQL's own operators.
func readChange(source string, hasBuiltinEquals bool) rowChange {
	tokens := lexBody(source, true)
	plain := readPlain("plpgsql", tokens, nil)
	r := &changeReader{routineReader: routineReader{tokens: readCopiesAsNew(tokens)}, hasBuiltinEquals: hasBuiltinEquals}
	r.change.whole = plain.isLost || plain.hasRow
	for i := range r.tokens {
		r.at(i)
	}
	return r.change
}

type changeReader struct {
	routineReader
	change           rowChange
	hasBuiltinEquals bool
}

// at notes what is changed at a token.
func (r *changeReader) at(i int) {
	switch r.word(i) {
	case "into":
		if !r.isInsertInto(i) {
			r.targets(i + 1)
		}
	case "call", "diagnostics": // may set what they are given
		for k := i + 1; k < len(r.tokens) && r.word(k) != ";"; k++ {
			r.set(k)
		}
	case "return":
		r.change.whole = r.change.whole || !r.returnsRow(i+1)
	}
	if r.token(i).name() == "new" && r.isTarget(i) {
		r.set(i)
	}
}

// set notes that NEW, or the column of it that stands at a token, is set.
func (r *changeReader) set(i int) {
	if r.token(i).name() != "new" {
		return
	}
	if column := r.token(i + 2).name(); r.word(i+1) == "." && column != "" {
		r.change.columns = append(r.change.columns, column)
	} else {
		r.change.whole = true
	}
}

// targets reads the variables behind INTO.
func (r *changeReader) targets(i int) {
	for r.word(i) == "strict" {
		i++
	}
	for ; r.token(i).name() != ""; i++ {
		for r.token(i).name() != "new" && r.word(i+1) == "." {
			i += 2 // a label
		}
		r.set(i)
		for depth := 0; i+1 < len(r.tokens) && (depth > 0 || r.word(i+1) == "." || r.word(i+1) == "[" || r.word(i) == "."); i++ {
			switch r.word(i + 1) {
			case "[":
				depth++
			case "]":
				depth--
			}
		}
		if i++; r.word(i) != "," {
			return
		}
	}
}

// isTarget reports whether NEW, or a column of it, is assigned to where it
// stands: at the beginning of a statement, or as the variable of a loop. A
// declaration begins like that, too.
func (r *changeReader) isTarget(i int) bool {
	start := i - 1
	for r.word(start) == "." {
		start -= 2 // a label
	}
	switch before := r.word(start); before {
	case "then", "else": // also of an expression
		for i++; i < len(r.tokens) && (r.word(i) == "." || r.word(i) == "[" || r.word(i-1) == "." || r.word(i-1) == "[" || r.word(i) == "]"); i++ {
		}
		return r.word(i) == ":" || strings.HasPrefix(r.word(i), "=")
	case "":
		return start < 0
	case ",":
		return r.isLoopList(start)
	default:
		return slices.Contains([]string{";", "begin", "loop", "declare", ">>", "for", "foreach"}, before)
	}
}

// isLoopList reports whether a comma stands in the list of variables between FOR and
// IN.
func (r *changeReader) isLoopList(i int) bool {
	for ; r.word(i) == "," || r.word(i) == "." || r.token(i).name() != "" && r.word(i) != "in"; i-- {
		if r.word(i) == "for" {
			return true
		}
	}
	return false
}

// returnsRow reports whether what is returned is the row itself, or nothing;
// the old row only where a row is deleted.
func (r *changeReader) returnsRow(i int) bool {
	var words []string
	for k := i; k < len(r.tokens) && r.word(k) != ";"; k++ {
		if w := r.token(k).text; w != "(" && w != ")" {
			words = append(words, w)
		}
	}
	switch strings.Join(words, " ") {
	case "", "new", "null", "coalesce new , old":
		return true
	case "old":
		return r.isForDelete(i-1) || r.hasBuiltinEquals && r.isForEqual(i-1)
	}
	return false
}

// isForDelete reports whether a statement stands behind IF TG_OP = 'DELETE'.
func (r *changeReader) isForDelete(i int) bool {
	then := i - 1
	for ; then >= 0 && r.word(then) != "then"; then-- {
		if slices.Contains([]string{"if", "else", "elsif", "elseif", "end", "loop", "begin", "when", "exception", "case"}, r.word(then)) {
			return false
		}
	}
	var words []string
	for k := then - 1; k >= 0 && !slices.Contains([]string{"if", "elsif", "elseif"}, r.word(k)); k-- {
		switch t := r.tokens[k]; {
		case t.kind == stringToken && len(t.inner) == 1:
			words = append(words, "'"+t.inner[0].text)
		case t.text != "(" && t.text != ")":
			words = append(words, t.text)
		}
	}
	condition := strings.Join(words, " ")
	return condition == "'delete = tg_op" || condition == "tg_op = 'delete"
}

// isForEqual reports whether a statement is the first behind ELSE of IF NEW IS DISTINCT FROM
// OLD, or behind THEN of the opposite: there the old row is the new one.
func (r *changeReader) isForEqual(i int) bool {
	is, then := "is not distinct from", i-1
	if r.word(then) == "else" {
		is = "is distinct from"
		for then--; then >= 0 && r.word(then) != "then"; then-- {
			if slices.Contains([]string{"if", "else", "elsif", "elseif", "end", "loop", "begin", "exception", "when", "case"}, r.word(then)) {
				return false
			}
		}
	}
	if r.word(then) != "then" {
		return false
	}
	start := then - 1
	for start >= 0 && r.word(start) != "if" && r.word(start) != ";" {
		start--
	}
	if r.word(start) != "if" || r.word(start-1) == "end" {
		return false
	}
	var words []string
	for k := start + 1; k < then; k++ {
		switch w := r.tokens[k].text; {
		case r.tokens[k].kind == stringToken, r.tokens[k].kind == nameToken && w != "new" && w != "old":
			return false
		case w != "(" && w != ")":
			words = append(words, w)
		}
	}
	condition := strings.Join(words, " ")
	for _, row := range []string{"%s", "%s . *", "row %s . *"} {
		before, after := strings.ReplaceAll(row, "%s", "old"), strings.ReplaceAll(row, "%s", "new")
		if condition == before+" "+is+" "+after || condition == after+" "+is+" "+before {
			return true
		}
	}
	return false
}
