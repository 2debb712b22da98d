package rewrite

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/pganalyze/pg_query_go/v5/parser"
)

// node is one node of a parse tree: a node of the grammar (kind is its name,
// as in PostgreSQL's parsenodes.h), a list (kind is listKind) or a scalar
// (kind is scalarKind). Absent fields are absent: the parser writes no zero
// values, so a number that isn't there must never be read as 0.
type node struct {
	kind  string
	field string // the field of the parent it stands in; "" for a list's item
	text  string // a scalar's string or enum name; "true" or "false"
	num   int64  // a scalar's number
	isNum bool
	odd   bool // a number that is not written in plain decimal digits
	kids  []*node
}

const (
	listKind   = "[]"
	scalarKind = "scalar"
	nullKind   = "null"
)

// parse returns the statements of sql as RawStmt nodes. The text must have
// passed checkText before: the parser has no guard for its own stack.
func parse(sql string) ([]*node, error) {
	tree, err := parser.ParseToJSON(sql)
	if err != nil {
		return nil, err
	}
	d := decoder{src: tree, sql: sql, schema: treeSchema()}
	root, err := d.object("ParseResult")
	if err != nil {
		return nil, fmt.Errorf("parse tree: %w", err)
	}
	return root.list("stmts"), nil
}

// get returns the field of n with that name, or nil. A name that the grammar
// doesn't know for this kind is a bug in a rule, and must not read as absent.
func (n *node) get(field string) *node {
	if n == nil {
		return nil
	}
	for _, k := range n.kids {
		if k.field == field {
			return k
		}
	}
	if _, ok := treeSchema()[n.kind][field]; !ok {
		panic("rewrite: " + n.kind + " has no field " + field)
	}
	return nil
}

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
func (n *node) is(kind string) bool { return n != nil && n.kind == kind }

// flag reports whether a boolean field is true.
func (n *node) flag(field string) bool { return n.str(field) == "true" }

// number returns a number field; ok is false if it is absent.
func (n *node) number(field string) (v int64, ok bool) {
	if s := n.get(field); s != nil && s.isNum {
		return s.num, true
	}
	return 0, false
}

// offset returns the byte offset of n in its text, -1 if the parser gave none.
// The parser leaves a location of 0 out.
func (n *node) offset() int {
	if n == nil {
		return -1
	}
	if _, ok := treeSchema()[n.kind]["location"]; !ok {
		return -1
	}
	v, _ := n.number("location")
	return int(v)
}

// stringList returns the strings of a list of String nodes, such as a qualified
// name. ok is false if anything else stands in the list.
func stringList(list []*node) (parts []string, ok bool) {
	parts = make([]string, 0, len(list))
	for _, n := range list {
		if !n.is("String") {
			return nil, false
		}
		parts = append(parts, n.str("sval"))
	}
	return parts, true
}

// decoder reads the parser's JSON into nodes, checking it against the schema.
type decoder struct {
	src    string
	sql    string // the text that was parsed
	pos    int
	schema map[string]map[string]fieldType
	slab   []node
}

var errTree = errors.New("unexpected form")

func (d *decoder) new(kind string) *node {
	if len(d.slab) == 0 {
		d.slab = make([]node, 64)
	}
	n := &d.slab[0]
	d.slab = d.slab[1:]
	n.kind = kind
	return n
}

// object reads the fields of a node of the given kind.
func (d *decoder) object(kind string) (*node, error) {
	fields, ok := d.schema[kind]
	if !ok {
		return nil, fmt.Errorf("unknown node %q", kind)
	}
	if !d.take('{') {
		return nil, errTree
	}
	n := d.new(kind)
	for first := true; !d.take('}'); first = false {
		if !first && !d.take(',') {
			return nil, errTree
		}
		name, err := d.key()
		if err != nil {
			return nil, err
		}
		t, ok := fields[name]
		if !ok {
			return nil, fmt.Errorf("unknown field %q of %s", name, kind)
		}
		k, err := d.value(t)
		if err != nil {
			return nil, err
		}
		k.field = name
		n.kids = append(n.kids, k)
	}
	if kind == "A_Const" {
		n.odd = !plainDecimal(d.sql, n.offset())
	}
	return n, nil
}

// plainDecimal reports whether a plain decimal integer stands in a text: the
// tree doesn't tell 10 from 1_0 or 0xA, and older servers read those otherwise.
func plainDecimal(sql string, at int) bool {
	end := at
	for end >= 0 && end < len(sql) && sql[end] >= '0' && sql[end] <= '9' {
		end++
	}
	return end > at && (end == len(sql) || !isWordByte(sql[end]) && sql[end] != '.')
}

// wrapped reads a node that carries its kind: {"ColumnRef":{...}}. An empty
// object stands for a null, as in the list that DISTINCT makes.
func (d *decoder) wrapped() (*node, error) {
	if d.word("null") {
		return d.new(nullKind), nil
	}
	if !d.take('{') {
		return nil, errTree
	}
	if d.take('}') {
		return d.new(nullKind), nil
	}
	kind, err := d.key()
	if err != nil {
		return nil, err
	}
	n, err := d.object(kind)
	if err != nil {
		return nil, err
	}
	if !d.take('}') {
		return nil, errTree
	}
	return n, nil
}

func (d *decoder) value(t fieldType) (*node, error) {
	if d.pos >= len(d.src) {
		return nil, errTree
	}
	switch c := d.src[d.pos]; {
	case c == '[':
		return d.array(t)
	case t.kind == anyNode:
		return d.wrapped()
	case t.kind != "":
		return d.object(t.kind)
	case c == '"':
		s, err := d.str()
		n := d.new(scalarKind)
		n.text = s
		return n, err
	default:
		return d.literal()
	}
}

func (d *decoder) array(t fieldType) (*node, error) {
	d.pos++
	n := d.new(listKind)
	for first := true; !d.take(']'); first = false {
		if !first && !d.take(',') {
			return nil, errTree
		}
		k, err := d.value(t)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, k)
	}
	return n, nil
}

// literal reads a number, true or false.
func (d *decoder) literal() (*node, error) {
	start := d.pos
	for d.pos < len(d.src) && (isWordByte(d.src[d.pos]) || d.src[d.pos] == '-' || d.src[d.pos] == '+' || d.src[d.pos] == '.') {
		d.pos++
	}
	n := d.new(scalarKind)
	n.text = d.src[start:d.pos]
	if n.text == "true" || n.text == "false" {
		return n, nil
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil {
		return nil, errTree
	}
	n.num, n.isNum = v, true
	return n, nil
}

func (d *decoder) key() (string, error) {
	s, err := d.str()
	if err == nil && !d.take(':') {
		err = errTree
	}
	return s, err
}

func (d *decoder) take(c byte) bool {
	if d.pos < len(d.src) && d.src[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) word(w string) bool {
	if len(d.src)-d.pos >= len(w) && d.src[d.pos:d.pos+len(w)] == w {
		d.pos += len(w)
		return true
	}
	return false
}

// str reads a JSON string. Strings without an escape share the tree's memory.
func (d *decoder) str() (string, error) {
	if !d.take('"') {
		return "", errTree
	}
	start := d.pos
	for d.pos < len(d.src) {
		switch d.src[d.pos] {
		case '"':
			d.pos++
			return d.src[start : d.pos-1], nil
		case '\\':
			return d.escaped(start)
		}
		d.pos++
	}
	return "", errTree
}

func (d *decoder) escaped(start int) (string, error) {
	buf := []byte(d.src[start:d.pos])
	for d.pos < len(d.src) {
		c := d.src[d.pos]
		d.pos++
		switch c {
		case '"':
			return string(buf), nil
		case '\\':
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			buf = utf8.AppendRune(buf, r)
		default:
			buf = append(buf, c)
		}
	}
	return "", errTree
}

func (d *decoder) escape() (rune, error) {
	if d.pos >= len(d.src) {
		return 0, errTree
	}
	c := d.src[d.pos]
	d.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		if d.pos+4 > len(d.src) {
			return 0, errTree
		}
		v, err := strconv.ParseUint(d.src[d.pos:d.pos+4], 16, 16)
		d.pos += 4
		// The parser escapes control characters and a few ASCII signs only.
		if err != nil || v >= 0xD800 && v < 0xE000 {
			return 0, errTree
		}
		return rune(v), nil
	}
	return 0, errTree
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
