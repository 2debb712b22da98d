package sqltree

import "strconv"

// Node is one node of a parse tree: a node of the grammar (kind is its name,
// as in PostgreSQL's parsenodes.h), a list (kind is listKind) or a scalar
// (kind is scalarKind). Absent fields are absent: the parser writes no zero
// values, so a number that isn't there must never be read as 0.
type Node struct {
	Type *NodeType  // what the grammar says of it
	In   *NodeField // the field of the parent it stands in; nil for a list's item
	Text string     // a scalar's number, string or enum name; "true" or "false"
	Kids []*Node

	Location     int32 // of a node of the grammar; see offset
	IsNumber     bool
	IsNonDecimal bool // a number that is not written in plain decimal digits
}

// The names of kinds that the grammar has no name for: a list, a scalar, an absent
// item of a list.
const (
	ListKind   = "[]"
	ScalarKind = "scalar"
	NullKind   = "null"
)

// Parse returns the statements of sql as RawStmt nodes. The text must have
// passed checkText before: the parser has no guard for its own stack.
func Parse(sql string) ([]*Node, error) { return new(Arena).Parse(sql) }

// Get returns the field of n with that name, or nil. A name that the grammar
// doesn't know for this kind is a bug in a rule, and must not read as absent.
func (n *Node) Get(field string) *Node {
	if n == nil {
		return nil
	}
	for _, k := range n.Kids {
		if k.Field() == field {
			return k
		}
	}
	if !n.HasField(field) {
		panic("sqltree: " + n.Kind() + " has no field " + field)
	}
	return nil
}

// Kind returns the name of the kind of node.
func (n *Node) Kind() string { return n.Type.Name }

// Field returns the name of the field of the parent that n stands in, "" for a
// list's item.
func (n *Node) Field() string {
	if n.In == nil {
		return ""
	}
	return n.In.Name
}

// HasField reports whether the grammar knows a field of that name for n's kind.
func (n *Node) HasField(field string) bool { return n.Type.Field(field) != nil }

// List returns the items of a list field.
func (n *Node) List(field string) []*Node {
	if l := n.Get(field); l != nil {
		return l.Kids
	}
	return nil
}

// Str returns a string or enum field, "" if it is absent.
func (n *Node) Str(field string) string {
	if s := n.Get(field); s != nil {
		return s.Text
	}
	return ""
}

// Is reports whether n is there and of the given kind.
func (n *Node) Is(kind string) bool { return n != nil && n.Kind() == kind }

// Flag reports whether a boolean field is true.
func (n *Node) Flag(field string) bool { return n.Str(field) == "true" }

// Number returns a number field; ok is false if it is absent.
func (n *Node) Number(field string) (v int64, ok bool) {
	s := n.Get(field)
	if s == nil || !s.IsNumber {
		return 0, false
	}
	v, err := strconv.ParseInt(s.Text, 10, 64)
	return v, err == nil
}

// Offset returns the byte offset of n in its text, -1 if the parser gave none.
// The parser leaves a location of 0 out.
func (n *Node) Offset() int {
	if n == nil || !n.Type.hasLocation {
		return -1
	}
	return int(n.Location)
}

// Strings returns the strings of a list of String nodes, such as a qualified
// name. ok is false if anything else stands in the list.
func Strings(list []*Node) (parts []string, ok bool) {
	return AppendStrings(make([]string, 0, len(list)), list)
}

// AppendStrings is stringList in memory that there is.
func AppendStrings(into []string, list []*Node) (parts []string, ok bool) {
	for _, n := range list {
		if !n.Is("String") {
			return nil, false
		}
		into = append(into, n.Str("sval"))
	}
	return into, true
}

// FirstOffset returns the first place in the text that n or a part of it has.
func FirstOffset(n *Node) int {
	if at := n.Offset(); at >= 0 && n.Kind() != ScalarKind {
		return at
	}
	best := -1
	for _, k := range n.Kids {
		if at := FirstOffset(k); at >= 0 && (best < 0 || at < best) {
			best = at
		}
	}
	return best
}
