package rewrite

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
)

// FuzzFastAndSlow looks for texts on which what is fast in the check says
// something else than what is plain: the search for words, the bounds that spare
// the scanner, the tree made of the parser's JSON beside the parser's own, and a
// plan made in memory that was used before.
func FuzzFastAndSlow(f *testing.F) {
	seed(f)
	p := casesPolicy(f, Lease)
	f.Fuzz(func(t *testing.T, sql string) { requireFastIsSlow(t, p, sql) })
}

// The statements of testdata, each also cut short and with another in front.
func TestFastAndSlow(t *testing.T) {
	p := casesPolicy(t, Lease)
	for i, sql := range corpus(t) {
		requireFastIsSlow(t, p, sql)
		requireFastIsSlow(t, p, sql[:len(sql)*(i%7)/7])
		requireFastIsSlow(t, p, "SELECT 1"+[]string{"", "\n", "--", "/*", "'", "$", "U&"}[i%7]+sql)
	}
}

// Generated statements, of which -rapid.checks says how many.
func TestFastAndSlowGenerated(t *testing.T) {
	policies := map[Mode]*Policy{Strict: casesPolicy(t, Strict), Lease: casesPolicy(t, Lease)}
	rapid.Check(t, func(t *rapid.T) {
		s := genStatement.Draw(t, "statement")
		requireFastIsSlow(t, policies[s.mode], s.sql)
	})
}

func requireFastIsSlow(t require.TestingT, p *Policy, sql string) {
	require.Equal(t, p.plainHit(sql) == "", p.hit(sql) == "", "%q: plainly %q, fast %q", sql, p.plainHit(sql), p.hit(sql))
	if tokens, err := parser.Scan(sql); err == nil && utf8Text(sql) && !sqltext.MaySetColumns(sql) {
		require.False(t, sqltext.CopiesColumns(slices.DeleteFunc(tokens, parser.Token.IsComment)), "%q", sql)
	}
	if sqltext.Check(sql) == nil {
		requireSameTree(t, sql)
	}
	require.Equal(t, said(p.planIn(new(arena), sql)), said(p.fullPlan(sql)), "%q", sql)
}

func utf8Text(sql string) bool {
	v := sqltext.Check(sql)
	return v == nil || v.Kind != sqltext.NulByte && v.Kind != sqltext.NotUTF8
}

// requireSameTree compares a text's tree with the parser's own, and the bounds of
// its depth.
func requireSameTree(t require.TestingT, sql string) {
	stmts, err := parse(sql)
	parsed, slowErr := parser.ParseMessages(sql)
	require.Equal(t, slowErr == nil, err == nil, "%q: %v, %v", sql, err, slowErr)
	if err != nil {
		return
	}
	tokens, err := parser.Scan(sql)
	require.NoError(t, err, "%q", sql)
	require.LessOrEqual(t, sqltext.Depth(tokens), sqltext.CountMarks(sql), "%q", sql)
	require.Len(t, stmts, len(parsed), "%q", sql)
	for i, stmt := range parsed {
		require.Empty(t, treeDifference(stmts[i], stmt), "%q", sql)
	}
}

// treeDifference says what of a node is not as in the parser's message.
func treeDifference(n *node, m protoreflect.Message) string {
	if m.Descriptor().Name() == parser.AnyNode {
		of := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
		switch {
		case of == nil && n.of == nullNode:
			return ""
		case of == nil:
			return different(n, nullKind, n.kind())
		}
		m = m.Get(of).Message()
	}
	if n.kind() != string(m.Descriptor().Name()) {
		return different(n, m.Descriptor().Name(), n.kind())
	}
	kids := 0
	difference := ""
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.JSONName() == "location" && f.Kind() == protoreflect.Int32Kind {
			if int64(n.offset()) != v.Int() {
				difference = different(n, v.Int(), n.offset())
			}
			return difference == ""
		}
		kid := n.get(f.JSONName())
		if kid == nil && n.is("Integer") && v.Int() < 0 {
			return true // the tree leaves out what isn't positive
		}
		if kids++; kid == nil {
			difference = different(n, f.JSONName(), "nothing")
		} else {
			difference = valueDifference(kid, f, v)
		}
		return difference == ""
	})
	for _, k := range n.kids {
		if k.of == scalarNode && k.text == "" {
			kids++ // an empty string is left out of the message
		}
	}
	if difference == "" && kids != len(n.kids) {
		difference = different(n, kids, len(n.kids))
	}
	return difference
}

func valueDifference(n *node, f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case f.IsList():
		if n.kind() != listKind || v.List().Len() != len(n.kids) {
			return different(n, v.List().Len(), len(n.kids))
		}
		for i, k := range n.kids {
			if d := valueDifferenceOne(k, f, v.List().Get(i)); d != "" {
				return d
			}
		}
		return ""
	default:
		return valueDifferenceOne(n, f, v)
	}
}

func valueDifferenceOne(n *node, f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	want := ""
	switch f.Kind() {
	case protoreflect.MessageKind:
		return treeDifference(n, v.Message())
	case protoreflect.EnumKind:
		want = string(f.Enum().Values().ByNumber(v.Enum()).Name())
	case protoreflect.StringKind:
		want = v.String()
	case protoreflect.BoolKind:
		want = strconv.FormatBool(v.Bool())
	default:
		want = fmt.Sprint(v.Interface())
		if got, ok := n.parent(f.JSONName()).number(f.JSONName()); !ok || fmt.Sprint(got) != want {
			return different(n, want, n.text)
		}
	}
	if n.kind() != scalarKind || n.text != want {
		return different(n, want, n.text)
	}
	return ""
}

// parent returns a node that has n in a field, to be read by its accessors.
func (n *node) parent(field string) *node {
	return &node{of: &nodeKind{fields: []nodeField{{name: field}}}, kids: []*node{n}}
}

func different(n *node, want, got any) string {
	return fmt.Sprintf("%s %s: want %v, got %v", n.kind(), n.field(), want, got)
}
