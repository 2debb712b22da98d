package rewrite

import (
	"sync"

	"github.com/fencerow/fencerow/internal/parser"
)

// nodeKind is what the grammar says of a kind of node.
type nodeKind struct {
	name   string
	fields []nodeField // in the order in which the parser writes them
	placed bool        // it has a place in the text
	plain  bool        // see plainNodes
}

// nodeField is a field of a node, and what may stand in it: a node of one kind,
// a node of any kind, whose name the tree carries then, or a scalar.
type nodeField struct {
	name  string
	key   string    // its name as the parser writes it
	kind  *nodeKind // nil for any kind, and for a scalar
	any   bool
	place bool // it is the node's place in the text
}

// The kinds of nodes that the grammar has no name for.
var (
	listNode   = &nodeKind{name: listKind}
	scalarNode = &nodeKind{name: scalarKind}
	nullNode   = &nodeKind{name: nullKind}
)

// field returns the field of that name, nil if there is none.
func (k *nodeKind) field(name string) *nodeField {
	if k == nil {
		return nil
	}
	for i := range k.fields {
		if f := &k.fields[i]; f.name == name {
			return f
		}
	}
	return nil
}

// grammar is all kinds of nodes. Most are found by their length and four of
// their letters.
type grammar struct {
	kinds map[string]*nodeKind
	quick [1 << 12]*nodeKind
}

// nodeKinds knows every node kind of the parser and its fields. It is made
// from the parser's own descriptors, so that a tree that doesn't fit it comes
// from a grammar this package has never seen.
var nodeKinds = sync.OnceValue(func() *grammar {
	described := parser.Grammar()
	g := &grammar{kinds: make(map[string]*nodeKind, len(described))}
	for _, d := range described {
		k := &nodeKind{name: d.Name}
		k.plain = plainNodes[k.name]
		g.kinds[k.name] = k
		if at := &g.quick[place(k.name)]; *at == nil || frequent[k.name] || k.plain && !frequent[(*at).name] {
			*at = k
		}
	}
	for _, d := range described {
		k := g.kinds[d.Name]
		for _, f := range d.Fields {
			k.fields = append(k.fields, g.field(f))
			k.placed = k.placed || f.IsLocation
		}
	}
	return g
})

func (g *grammar) field(f parser.NodeField) nodeField {
	field := nodeField{name: f.Name, key: `"` + f.Name + `":`, place: f.IsLocation, any: f.Kind == parser.AnyNode}
	if !field.any {
		field.kind = g.kinds[f.Kind]
	}
	return field
}

// named returns the kind of that name, nil if there is none.
func (g *grammar) named(name string) *nodeKind {
	if k := g.quick[place(name)]; k != nil && k.name == name {
		return k
	}
	return g.kinds[name]
}

// frequent kinds come before others that share their place.
var frequent = setOf("ColumnRef", "A_Expr", "ParamRef", "FuncCall", "TypeName", "SubLink", "SortBy", "SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt")

func place(name string) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	letters := uint64(n) | uint64(name[0])<<8 | uint64(name[n/4])<<16 | uint64(name[n/2])<<24 | uint64(name[n-1])<<32
	return int(letters * 0x9E3779B97F4A7C15 >> (64 - 12))
}
