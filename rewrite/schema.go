package rewrite

import (
	"sync"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
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

// anyNode is the kind of a field that holds a node of any kind in the parser's
// descriptors.
const anyNode = "Node"

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
	messages := pg_query.File_pg_query_proto.Messages()
	g := &grammar{kinds: make(map[string]*nodeKind, messages.Len())}
	for i := range messages.Len() {
		k := &nodeKind{name: string(messages.Get(i).Name())}
		k.plain = plainNodes[k.name]
		g.kinds[k.name] = k
		if at := &g.quick[place(k.name)]; *at == nil || frequent[k.name] || k.plain && !frequent[(*at).name] {
			*at = k
		}
	}
	for i := range messages.Len() {
		m := messages.Get(i)
		k := g.kinds[string(m.Name())]
		for j := range m.Fields().Len() {
			field := g.field(m.Fields().Get(j))
			k.fields = append(k.fields, field)
			k.placed = k.placed || field.place
		}
	}
	return g
})

func (g *grammar) field(f protoreflect.FieldDescriptor) nodeField {
	out := nodeField{name: f.JSONName(), key: `"` + f.JSONName() + `":`}
	switch {
	case f.Kind() == protoreflect.Int32Kind:
		out.place = f.Name() == "location"
	case f.Kind() == protoreflect.MessageKind && f.Message().Name() == anyNode:
		out.any = true
	case f.Kind() == protoreflect.MessageKind:
		out.kind = g.kinds[string(f.Message().Name())]
	}
	return out
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
