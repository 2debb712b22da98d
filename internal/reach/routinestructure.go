package reach

import (
	"slices"

	"github.com/fencerow/fencerow/rewrite"
)

// Statements that make, change or drop objects, as a routine's body has them: what
// gets a name by them, and what they lead to.

// creates reads the name of a table or view that is made.
func (r *routineReader) creates(i int) {
	for slices.Contains([]string{"or", "replace", "global", "local", "temp", "temporary", "unlogged", "recursive", "foreign", "materialized"}, r.word(i)) {
		i++
	}
	switch r.word(i) {
	case "aggregate", "operator", "cast": // which then calls what it names
		r.leads(i + 1)
		return
	case "table", "view":
	default:
		return
	}
	if r.word(i) == "view" || r.word(i-1) == "foreign" {
		r.leads(i)
	}
	for i++; r.word(i) == "if" || r.word(i) == "not" || r.word(i) == "exists"; i++ {
	}
	r.target(i, eventCreate)
	for ; i < len(r.tokens) && r.word(i) != ";"; i++ {
		if r.word(i) == "like" {
			r.target(i+1, eventLike)
		}
	}
}

// leads notes the words of the rest of a statement, those in its strings too.
func (r *routineReader) leads(i int) {
	if r.body.leads == nil {
		r.body.leads = make(map[string]bool)
	}
	for ; i < len(r.tokens) && r.word(i) != ";"; i++ {
		r.body.leads[r.tokens[i].name()] = true
		for _, inner := range r.tokens[i].inner {
			r.body.leads[inner.name()] = true
		}
	}
}

// selectsInto reads the table that SELECT INTO makes. In PL/pgSQL it would be a
// variable, and in a string not every INTO is a statement's.
func (r *routineReader) selectsInto(i int) {
	if before := r.word(i - 1); (before == "insert" || before == "merge") && (r.begins(i-1) || !r.follows(i, "select")) {
		return
	}
	kind := i + 1
	for slices.Contains([]string{"local", "global", "temp", "temporary", "unlogged", "table"}, r.word(kind)) {
		kind++
	}
	if kind == i+1 && (r.plpgsql || !r.selects(i)) {
		return
	}
	r.target(kind, eventCreate)
}

// selects reports whether SELECT stands before a token of its statement.
func (r *routineReader) selects(i int) bool {
	for i--; i >= 0; i-- {
		if w := r.word(i); w == "select" || w == ";" {
			return w == "select"
		}
	}
	return false
}

// moves reads what ALTER brings from another schema, or a schema that it
// changes.
func (r *routineReader) moves(i int) {
	if r.word(i) == "schema" {
		n, end := r.name(i + 1)
		r.body.targets = append(r.body.targets, bodyTarget{Name: rewrite.Name{Schema: n.Name}, event: eventCreate})
		if r.word(end) == "rename" {
			n, _ = r.name(end + 2)
			r.body.targets = append(r.body.targets, bodyTarget{Name: rewrite.Name{Schema: n.Name}, event: eventCreate})
		}
		return
	}
	for slices.Contains([]string{"foreign", "materialized"}, r.word(i)) {
		i++
	}
	switch moves := r.has(i, "set", "schema"); r.word(i) {
	case "table", "view":
		if moves {
			r.target(i+1, eventCreate)
		}
	case "function", "procedure", "routine", "aggregate", "operator": // it may be called under a name that says nothing
		if moves || r.has(i, "rename", "to") {
			r.leads(i + 1)
		}
	}
}

// remakes reads what ALTER makes of a relation, by which the relation is then written
// under another name, or in another way: any that the statement names.
func (r *routineReader) remakes(i int) {
	for slices.Contains([]string{"foreign", "materialized"}, r.word(i)) {
		i++
	}
	if w := r.word(i); w != "table" && w != "view" {
		return
	}
	for k := i + 1; k < len(r.tokens) && r.word(k) != ";"; k++ {
		switch r.word(k) {
		case "attach", "inherit", "of", "references", "options":
			r.leads(i + 1)
		case "rename":
			if r.word(k+1) != "constraint" {
				r.leads(i + 1)
			}
		}
	}
}

// drops reads the tables, or the schemas with all that is in them, that DROP
// takes away.
func (r *routineReader) drops(i int) {
	switch r.word(i) {
	case "table":
		r.list(i, "")
	case "owned":
		r.body.targets = append(r.body.targets, bodyTarget{event: eventCreate})
	case "schema":
		if !r.has(i, "cascade") {
			return
		}
		for more := true; more; {
			var n rewrite.Name
			n, i = r.name(i + 1)
			r.body.targets = append(r.body.targets, bodyTarget{Name: rewrite.Name{Schema: n.Name}, event: eventCreate})
			more = n.Name != "" && r.word(i) == ","
		}
	}
}
