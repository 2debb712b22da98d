package parser

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// NodeKind is what the grammar says of one kind of node, such as UpdateStmt.
type NodeKind struct {
	Name   string
	Fields []NodeField // in the order in which the parser writes them
}

// NodeField is a field of a kind of node.
type NodeField struct {
	Name       string // as it stands in the JSON of a tree
	Kind       string // of the node that it holds, or AnyNode, or "" for a scalar
	IsLocation bool   // it is the node's place in the text
}

// AnyNode is the kind of a field that may hold a node of any kind.
const AnyNode = "Node"

// Grammar returns all kinds of nodes, from the parser's own descriptors.
func Grammar() []NodeKind {
	messages := pg_query.File_pg_query_proto.Messages()
	kinds := make([]NodeKind, messages.Len())
	for i := range kinds {
		message := messages.Get(i)
		kinds[i].Name = string(message.Name())
		for j := range message.Fields().Len() {
			kinds[i].Fields = append(kinds[i].Fields, nodeField(message.Fields().Get(j)))
		}
	}
	return kinds
}

func nodeField(f protoreflect.FieldDescriptor) NodeField {
	field := NodeField{Name: f.JSONName()}
	switch f.Kind() {
	case protoreflect.Int32Kind:
		field.IsLocation = f.Name() == "location"
	case protoreflect.MessageKind:
		field.Kind = string(f.Message().Name())
	}
	return field
}
