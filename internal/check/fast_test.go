package check

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
	"github.com/fencerow/fencerow/internal/sqltree"
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
	require.Equal(t, said(p.planIn(new(workspace), sql)), said(p.fullPlan(sql)), "%q", sql)
}

func utf8Text(sql string) bool {
	v := sqltext.Check(sql)
	return v == nil || v.Kind != sqltext.NulByte && v.Kind != sqltext.NotUTF8
}

// requireSameTree compares a text's tree with the parser's own, and the bounds of
// its depth.
func requireSameTree(t require.TestingT, sql string) {
	stmts, err := sqltree.Parse(sql)
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
func treeDifference(n *sqltree.Node, m protoreflect.Message) string {
	if m.Descriptor().Name() == parser.AnyNode {
		of := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
		switch {
		case of == nil && n.Type == sqltree.NullType:
			return ""
		case of == nil:
			return different(n, sqltree.NullKind, n.Kind())
		}
		m = m.Get(of).Message()
	}
	if n.Kind() != string(m.Descriptor().Name()) {
		return different(n, m.Descriptor().Name(), n.Kind())
	}
	kids := 0
	difference := ""
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.JSONName() == "location" && f.Kind() == protoreflect.Int32Kind {
			if int64(n.Offset()) != v.Int() {
				difference = different(n, v.Int(), n.Offset())
			}
			return difference == ""
		}
		kid := n.Get(f.JSONName())
		if kid == nil && n.Is("Integer") && v.Int() < 0 {
			return true // the tree leaves out what isn't positive
		}
		if kids++; kid == nil {
			difference = different(n, f.JSONName(), "nothing")
		} else {
			difference = valueDifference(kid, f, v)
		}
		return difference == ""
	})
	for _, k := range n.Kids {
		if k.Type == sqltree.ScalarType && k.Text == "" {
			kids++ // an empty string is left out of the message
		}
	}
	if difference == "" && kids != len(n.Kids) {
		difference = different(n, kids, len(n.Kids))
	}
	return difference
}

func valueDifference(n *sqltree.Node, f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case f.IsList():
		if n.Kind() != sqltree.ListKind || v.List().Len() != len(n.Kids) {
			return different(n, v.List().Len(), len(n.Kids))
		}
		for i, k := range n.Kids {
			if d := valueDifferenceOne(k, f, v.List().Get(i)); d != "" {
				return d
			}
		}
		return ""
	default:
		return valueDifferenceOne(n, f, v)
	}
}

func valueDifferenceOne(n *sqltree.Node, f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	var want string
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
		if got, ok := parentOf(n, f.JSONName()).Number(f.JSONName()); !ok || fmt.Sprint(got) != want {
			return different(n, want, n.Text)
		}
	}
	if n.Kind() != sqltree.ScalarKind || n.Text != want {
		return different(n, want, n.Text)
	}
	return ""
}

// parent returns a node that has n in a field, to be read by its accessors.
func parentOf(n *sqltree.Node, field string) *sqltree.Node {
	return &sqltree.Node{Type: &sqltree.NodeType{Fields: []sqltree.NodeField{{Name: field}}}, Kids: []*sqltree.Node{n}}
}

func different(n *sqltree.Node, want, got any) string {
	return fmt.Sprintf("%s %s: want %v, got %v", n.Kind(), n.Field(), want, got)
}
