package sqltree

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// decoder reads the parser's JSON into nodes, checking it against the grammar.
type decoder struct {
	*Arena
	src   string
	sql   string // the text that was parsed
	pos   int
	kinds *Grammar
}

var errForm = errors.New("unexpected form")

// Parse returns the statements of sql, made in the arena.
func (a *Arena) Parse(sql string) ([]*Node, error) {
	tree, err := parser.ParseJSON(sql)
	if err != nil {
		return nil, err
	}
	a.reserve(len(tree))
	d := decoder{Arena: a, src: tree, sql: sql, kinds: NodeTypes()}
	root, err := d.readObject(d.kinds.Named("ParseResult"))
	if err == nil && d.pos != len(tree) {
		err = errForm
	}
	if err != nil {
		return nil, fmt.Errorf("parse tree: %w", err)
	}
	return root.List("stmts"), nil
}

// readObject reads the fields of a node of the given kind.
func (d *decoder) readObject(of *NodeType) (n *Node, err error) {
	if !d.skipByte('{') {
		return nil, errForm
	}
	n = d.new(of)
	from, next := len(d.open), 0
	for first := true; !d.skipByte('}'); first = false {
		if !first && !d.skipByte(',') {
			return nil, errForm
		}
		f, i, err := d.readFieldName(of, next)
		if err != nil {
			return nil, err
		}
		next = i + 1
		if f.isLocation {
			if n.Location, err = d.readLocation(); err != nil {
				return nil, err
			}
			continue
		}
		k, err := d.readValue(f)
		if err != nil {
			return nil, err
		}
		k.In = f
		d.open = append(d.open, k)
	}
	d.adopt(n, from)
	if of.Name == "A_Const" {
		n.IsNonDecimal = !isPlainDecimal(d.sql, n.Offset())
	}
	return n, nil
}

// readFieldName reads the name of a field. The parser writes fields in order, so the
// search begins behind the field before.
func (d *decoder) readFieldName(of *NodeType, next int) (*NodeField, int, error) {
	for i := next; i < len(of.Fields); i++ {
		if f := &of.Fields[i]; strings.HasPrefix(d.src[d.pos:], f.key) {
			d.pos += len(f.key)
			return f, i, nil
		}
	}
	name, err := d.readKey()
	if err != nil {
		return nil, 0, err
	}
	for i := range of.Fields {
		if f := &of.Fields[i]; f.Name == name {
			return f, i, nil
		}
	}
	return nil, 0, fmt.Errorf("unknown field %q of %s", name, of.Name)
}

// isPlainDecimal reports whether a number of the text is a plain decimal integer. The
// tree doesn't tell 10 from 1_0 or 0xA, which older servers read differently.
func isPlainDecimal(sql string, at int) bool {
	end := at
	for end >= 0 && end < len(sql) && sql[end] >= '0' && sql[end] <= '9' {
		end++
	}
	return end > at && (end == len(sql) || !sqltext.IsWordByte(sql[end]) && sql[end] != '.')
}

// readTagged reads a node that carries its kind: {"ColumnRef":{...}}. An empty
// object stands for a null, as in the list that DISTINCT makes.
func (d *decoder) readTagged() (*Node, error) {
	if d.skipWord("null") {
		return d.new(NullType), nil
	}
	if !d.skipByte('{') {
		return nil, errForm
	}
	if d.skipByte('}') {
		return d.new(NullType), nil
	}
	name, err := d.readKey()
	if err != nil {
		return nil, err
	}
	of := d.kinds.Named(name)
	if of == nil {
		return nil, fmt.Errorf("unknown node %q", name)
	}
	n, err := d.readObject(of)
	if err != nil {
		return nil, err
	}
	if !d.skipByte('}') {
		return nil, errForm
	}
	return n, nil
}

func (d *decoder) readValue(f *NodeField) (*Node, error) {
	if d.pos >= len(d.src) {
		return nil, errForm
	}
	switch c := d.src[d.pos]; {
	case c == '[':
		return d.readArray(f)
	case f.isAny:
		return d.readTagged()
	case f.typ != nil:
		return d.readObject(f.typ)
	case c == '"':
		s, err := d.readString()
		n := d.new(ScalarType)
		n.Text = s
		return n, err
	default:
		return d.readLiteral()
	}
}

func (d *decoder) readArray(f *NodeField) (*Node, error) {
	d.pos++
	n, from := d.new(ListType), len(d.open)
	for first := true; !d.skipByte(']'); first = false {
		if !first && !d.skipByte(',') {
			return nil, errForm
		}
		k, err := d.readValue(f)
		if err != nil {
			return nil, err
		}
		d.open = append(d.open, k)
	}
	d.adopt(n, from)
	return n, nil
}

// readLiteral reads a number, true or false.
func (d *decoder) readLiteral() (*Node, error) {
	n := d.new(ScalarType)
	n.Text = d.readUnquoted()
	if n.Text == "true" || n.Text == "false" {
		return n, nil
	}
	if _, err := strconv.ParseInt(n.Text, 10, 64); err != nil {
		return nil, errForm
	}
	n.IsNumber = true
	return n, nil
}

// readLocation reads the number of a location.
func (d *decoder) readLocation() (int32, error) {
	v, start := int32(0), d.pos
	for ; d.pos < len(d.src) && sqltext.IsDigit(d.src[d.pos]) && d.pos < start+9; d.pos++ {
		v = 10*v + int32(d.src[d.pos]-'0')
	}
	if d.pos < len(d.src) && d.pos > start && !sqltext.IsWordByte(d.src[d.pos]) {
		return v, nil
	}
	d.pos = start
	long, err := strconv.ParseInt(d.readUnquoted(), 10, 32)
	if err != nil {
		return 0, errForm
	}
	return int32(long), nil
}

// readUnquoted reads a value that has no quotes.
func (d *decoder) readUnquoted() string {
	start := d.pos
	for d.pos < len(d.src) && (sqltext.IsWordByte(d.src[d.pos]) || d.src[d.pos] == '-' || d.src[d.pos] == '+' || d.src[d.pos] == '.') {
		d.pos++
	}
	return d.src[start:d.pos]
}

func (d *decoder) readKey() (string, error) {
	s, err := d.readString()
	if err == nil && !d.skipByte(':') {
		err = errForm
	}
	return s, err
}

// skipByte skips a byte, and reports whether it was the next one.
func (d *decoder) skipByte(c byte) bool {
	if d.pos < len(d.src) && d.src[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

// skipWord skips a word, and reports whether it was the next one.
func (d *decoder) skipWord(w string) bool {
	if strings.HasPrefix(d.src[d.pos:], w) {
		d.pos += len(w)
		return true
	}
	return false
}

// readString reads a JSON string. Strings without an escape share the tree's memory.
func (d *decoder) readString() (string, error) {
	if !d.skipByte('"') {
		return "", errForm
	}
	start := d.pos
	for d.pos < len(d.src) {
		switch d.src[d.pos] {
		case '"':
			d.pos++
			return d.src[start : d.pos-1], nil
		case '\\':
			return d.readEscapedString(start)
		}
		d.pos++
	}
	return "", errForm
}

func (d *decoder) readEscapedString(start int) (string, error) {
	buf := []byte(d.src[start:d.pos])
	for d.pos < len(d.src) {
		c := d.src[d.pos]
		d.pos++
		switch c {
		case '"':
			return string(buf), nil
		case '\\':
			r, err := d.readEscape()
			if err != nil {
				return "", err
			}
			buf = utf8.AppendRune(buf, r)
		default:
			buf = append(buf, c)
		}
	}
	return "", errForm
}

func (d *decoder) readEscape() (rune, error) {
	if d.pos >= len(d.src) {
		return 0, errForm
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
			return 0, errForm
		}
		v, err := strconv.ParseUint(d.src[d.pos:d.pos+4], 16, 16)
		d.pos += 4
		// The parser escapes control characters and a few ASCII signs only.
		if err != nil || v >= 0xD800 && v < 0xE000 {
			return 0, errForm
		}
		return rune(v), nil
	}
	return 0, errForm
}
