package rewrite

import (
	"sync"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldType says what the grammar lets stand in a field of a node.
type fieldType struct {
	kind string // the node kind, "" for a scalar, anyNode where the tree names it
}

// anyNode is the kind of a field that holds a node of any kind; there the
// tree carries the kind itself.
const anyNode = "Node"

// treeSchema knows every node kind of the parser and its fields. It is made
// from the parser's own descriptors, so that a tree that doesn't fit it comes
// from a grammar this package has never seen.
var treeSchema = sync.OnceValue(func() map[string]map[string]fieldType {
	messages := pg_query.File_pg_query_proto.Messages()
	schema := make(map[string]map[string]fieldType, messages.Len())
	for i := range messages.Len() {
		m := messages.Get(i)
		fields := make(map[string]fieldType, m.Fields().Len())
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			var t fieldType
			if f.Kind() == protoreflect.MessageKind {
				t.kind = string(f.Message().Name())
			}
			fields[f.JSONName()] = t
		}
		schema[string(m.Name())] = fields
	}
	return schema
})
