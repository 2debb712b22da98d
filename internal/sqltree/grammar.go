package sqltree

import (
	"sync"

	"github.com/fencerow/fencerow/internal/parser"
)

// NodeType is what the grammar says of a kind of node.
type NodeType struct {
	Name        string
	Fields      []NodeField // in the order in which the parser writes them
	hasLocation bool        // it has a place in the text
	ID          int         // its number, from 0 on
	next        *NodeType   // another one in the same slot of a grammar
}

// NodeField is a field of a node, and what may stand in it: a node of one kind,
// a node of any kind, whose name the tree carries then, or a scalar.
type NodeField struct {
	Name       string
	key        string    // its name as the parser writes it
	typ        *NodeType // nil for any kind, and for a scalar
	isAny      bool
	isLocation bool // it is the node's place in the text
}

// The kinds of nodes that the grammar has no name for.
var (
	ListType   = &NodeType{Name: ListKind}
	ScalarType = &NodeType{Name: ScalarKind}
	NullType   = &NodeType{Name: NullKind}
)

// Field returns the field of that name, nil if there is none.
func (k *NodeType) Field(name string) *NodeField {
	if k == nil {
		return nil
	}
	for i := range k.Fields {
		if f := &k.Fields[i]; f.Name == name {
			return f
		}
	}
	return nil
}

// Grammar is all kinds of nodes. They are found by their length and four of their
// letters.
type Grammar struct {
	Types map[string]*NodeType
	slots [1 << 12]*NodeType
}

// NodeTypes knows every node kind of the parser and its fields. It is made
// from the parser's own descriptors, so that a tree that doesn't fit it comes
// from a grammar this package has never seen.
var NodeTypes = sync.OnceValue(func() *Grammar {
	described := parser.Grammar()
	g := &Grammar{Types: make(map[string]*NodeType, len(described))}
	for i, d := range described {
		k := &NodeType{Name: d.Name, ID: i}
		g.Types[k.Name] = k
		at := &g.slots[slot(k.Name)]
		if *at == nil || frequent[k.Name] {
			k.next, *at = *at, k
		} else {
			k.next, (*at).next = (*at).next, k
		}
	}
	for _, d := range described {
		k := g.Types[d.Name]
		for _, f := range d.Fields {
			k.Fields = append(k.Fields, g.field(f))
			k.hasLocation = k.hasLocation || f.IsLocation
		}
	}
	return g
})

func (g *Grammar) field(f parser.NodeField) NodeField {
	field := NodeField{Name: f.Name, key: `"` + f.Name + `":`, isLocation: f.IsLocation, isAny: f.Kind == parser.AnyNode}
	if !field.isAny {
		field.typ = g.Types[f.Kind]
	}
	return field
}

// Named returns the kind of that name, nil if there is none.
func (g *Grammar) Named(name string) *NodeType {
	for k := g.slots[slot(name)]; k != nil; k = k.next {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// frequent kinds come before others in their slot.
var frequent = map[string]bool{"ColumnRef": true, "A_Expr": true, "ParamRef": true, "FuncCall": true, "TypeName": true, "SubLink": true, "SortBy": true, "SelectStmt": true, "InsertStmt": true, "UpdateStmt": true, "DeleteStmt": true}

// slot returns where a grammar has the kinds of a name like that.
func slot(name string) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	letters := uint64(n) | uint64(name[0])<<8 | uint64(name[n/4])<<16 | uint64(name[n/2])<<24 | uint64(name[n-1])<<32
	return int(letters * 0x9E3779B97F4A7C15 >> (64 - 12))
}
