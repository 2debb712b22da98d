package rewrite

import "strconv"

// node is one node of a parse tree: a node of the grammar (kind is its name,
// as in PostgreSQL's parsenodes.h), a list (kind is listKind) or a scalar
// (kind is scalarKind). Absent fields are absent: the parser writes no zero
// values, so a number that isn't there must never be read as 0.
type node struct {
	of   *nodeKind  // what the grammar says of it
	in   *nodeField // the field of the parent it stands in; nil for a list's item
	text string     // a scalar's number, string or enum name; "true" or "false"
	kids []*node

	location int32 // of a node of the grammar; see offset
	isNum    bool
	odd      bool // a number that is not written in plain decimal digits
}

const (
	listKind   = "[]"
	scalarKind = "scalar"
	nullKind   = "null"
)

// parse returns the statements of sql as RawStmt nodes. The text must have
// passed checkText before: the parser has no guard for its own stack.
func parse(sql string) ([]*node, error) { return new(arena).parse(sql) }

// get returns the field of n with that name, or nil. A name that the grammar
// doesn't know for this kind is a bug in a rule, and must not read as absent.
func (n *node) get(field string) *node {
	if n == nil {
		return nil
	}
	for _, k := range n.kids {
		if k.field() == field {
			return k
		}
	}
	if !n.may(field) {
		panic("rewrite: " + n.kind() + " has no field " + field)
	}
	return nil
}

// kind returns the name of the kind of node.
func (n *node) kind() string { return n.of.name }

// field returns the name of the field of the parent that n stands in, "" for a
// list's item.
func (n *node) field() string {
	if n.in == nil {
		return ""
	}
	return n.in.name
}

// may reports whether the grammar knows a field of that name for n's kind.
func (n *node) may(field string) bool { return n.of.field(field) != nil }

// list returns the items of a list field.
func (n *node) list(field string) []*node {
	if l := n.get(field); l != nil {
		return l.kids
	}
	return nil
}

// str returns a string or enum field, "" if it is absent.
func (n *node) str(field string) string {
	if s := n.get(field); s != nil {
		return s.text
	}
	return ""
}

// is reports whether n is there and of the given kind.
func (n *node) is(kind string) bool { return n != nil && n.kind() == kind }

// flag reports whether a boolean field is true.
func (n *node) flag(field string) bool { return n.str(field) == "true" }

// number returns a number field; ok is false if it is absent.
func (n *node) number(field string) (v int64, ok bool) {
	s := n.get(field)
	if s == nil || !s.isNum {
		return 0, false
	}
	v, err := strconv.ParseInt(s.text, 10, 64)
	return v, err == nil
}

// offset returns the byte offset of n in its text, -1 if the parser gave none.
// The parser leaves a location of 0 out.
func (n *node) offset() int {
	if n == nil || !n.of.placed {
		return -1
	}
	return int(n.location)
}

// stringList returns the strings of a list of String nodes, such as a qualified
// name. ok is false if anything else stands in the list.
func stringList(list []*node) (parts []string, ok bool) {
	return appendStrings(make([]string, 0, len(list)), list)
}

// appendStrings is stringList in memory that there is.
func appendStrings(into []string, list []*node) (parts []string, ok bool) {
	for _, n := range list {
		if !n.is("String") {
			return nil, false
		}
		into = append(into, n.str("sval"))
	}
	return into, true
}
