package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// growth is what is added to a statement, as its tree shows it. A text that is
// made by adding to another one is proved to be that: it must parse to the
// other's tree with the growth, and differ in nothing else.
type growth struct {
	nodes map[*sqltree.Node]*grownNode
	short *abridged // the other text is abridged: lists may be longer in the one made of it
}

func newGrowth() growth { return growth{nodes: make(map[*sqltree.Node]*grownNode)} }

// grownNode is what one node has more.
type grownNode struct {
	instead *sqltree.Node   // what stands in its place
	member  *sqltree.Node   // one more member, the last, of the AND list that is its condition
	added   []*sqltree.Node // fields, or more items of its lists
	front   []*sqltree.Node // more items of its lists, before those that it has
	rows    *sqltree.Node   // more items of each of its rows of VALUES
}

func (g growth) of(n *sqltree.Node) *grownNode {
	grown := g.nodes[n]
	if grown == nil {
		grown = new(grownNode)
		g.nodes[n] = grown
	}
	return grown
}

// callGrowth is the growth by calls: each ends the condition of its node or, if
// that is a token, stands in its place.
func callGrowth(calls map[*sqltree.Node]string) (growth, bool) {
	g := growth{nodes: make(map[*sqltree.Node]*grownNode, len(calls))}
	known := make(map[string]*sqltree.Node)
	for at, call := range calls {
		n := callTree(at, call, known)
		if n == nil {
			return g, false
		}
		if at.Is("ParamRef") || at.Is("A_Const") {
			g.of(at).instead = n
		} else {
			g.of(at).member = n
		}
	}
	return g, true
}

// callTree parses a call. Those in the place of placeholders are alike but for the
// number, and are parsed once.
func callTree(at *sqltree.Node, call string, known map[string]*sqltree.Node) *sqltree.Node {
	number := ""
	if at.Is("ParamRef") {
		number = at.Str("number")
		call = strings.ReplaceAll(call, "$"+number+"::", "$1::")
	}
	n, ok := known[call]
	if !ok {
		n = expression(call)
		known[call] = n
	}
	if n == nil || number == "" || number == "1" {
		return n
	}
	return n.WithNumber(number)
}

// proves reports whether a text is the statement root, grown, and nothing else.
func (g growth) proves(root *sqltree.Node, text string) bool {
	after := parseOne(text)
	return after != nil && g.same(root, after)
}

// add notes items that a list of a node has more.
func (g growth) add(at *sqltree.Node, field string, items ...*sqltree.Node) {
	grown := g.of(at)
	grown.added = append(grown.added, listOf(at.Type.Field(field), items))
}

// addFirst notes an item that a list of a node has before the others.
func (g growth) addFirst(at *sqltree.Node, field string, item *sqltree.Node) {
	grown := g.of(at)
	grown.front = append(grown.front, listOf(at.Type.Field(field), []*sqltree.Node{item}))
}

// addToRows notes an item that each row of VALUES has more.
func (g growth) addToRows(values, item *sqltree.Node) {
	if rows := values.List("valuesLists"); len(rows) > 0 {
		g.of(values).rows = listOf(rows[0].Type.Field("items"), []*sqltree.Node{item})
	}
}

func listOf(field *sqltree.NodeField, items []*sqltree.Node) *sqltree.Node {
	list := &sqltree.Node{Type: sqltree.ListType, In: field}
	for _, item := range items {
		if item != nil {
			with := *item
			with.In = nil
			list.Kids = append(list.Kids, &with)
		}
	}
	return list
}

// same reports whether a tree is n, grown, but for places in the text.
func (g growth) same(n, after *sqltree.Node) bool {
	more := g.nodes[n]
	switch {
	case g.short != nil && n.Is("A_Const") && g.short.strings[n.Offset()]:
		return after.Is("A_Const") && n.Field() == after.Field() && after.Get("sval") != nil
	case more == nil:
		return sameHead(n, after) && g.sameKids(n.Kids, after.Kids)
	case more.instead != nil:
		grown := *more.instead
		grown.In = n.In
		return sameTree(&grown, after)
	}
	grown := *n
	grown.Kids = slices.Clone(n.Kids)
	for _, first := range more.front {
		i := slices.IndexFunc(grown.Kids, func(k *sqltree.Node) bool { return k.Field() == first.Field() })
		if i < 0 {
			return false // an empty list has no front
		}
		longer := *grown.Kids[i]
		longer.Kids = append(slices.Clone(first.Kids), longer.Kids...)
		grown.Kids[i] = &longer
	}
	for _, list := range more.added {
		grown.Merge(list)
	}
	if more.member != nil {
		g.restrict(&grown, more.member)
	}
	return sameHead(&grown, after) && g.sameFields(&grown, after, more.rows)
}

// sameFields compares the fields of two nodes, whose rows of VALUES have more items
// in the second one.
func (g growth) sameFields(a, b *sqltree.Node, more *sqltree.Node) bool {
	if more == nil {
		return g.sameKids(a.Kids, b.Kids)
	}
	return slices.EqualFunc(ordered(a.Kids), ordered(b.Kids), func(x, y *sqltree.Node) bool {
		if x.Field() != "valuesLists" {
			return g.same(x, y)
		}
		return sameHead(x, y) && g.sameItems(x.Kids, y.Kids, func(x, y *sqltree.Node) bool { return g.sameRow(x, y, more) })
	})
}

// sameRow compares two rows of VALUES, the second of which has more items.
func (g growth) sameRow(a, b, more *sqltree.Node) bool {
	if !sameHead(a, b) || len(a.Kids) != 1 || len(b.Kids) != 1 || !sameHead(a.Kids[0], b.Kids[0]) || a.Kids[0].Field() != more.Field() {
		return false
	}
	before, after := a.Kids[0].Kids, b.Kids[0].Kids
	return len(after) == len(before)+len(more.Kids) && g.sameKids(before, after[:len(before)]) &&
		slices.EqualFunc(more.Kids, after[len(before):], sameTree)
}

// sameKids compares the children of two nodes.
func (g growth) sameKids(a, b []*sqltree.Node) bool {
	if len(a) != len(b) {
		return g.sameItems(a, b, g.same)
	}
	if !slices.EqualFunc(a, b, func(x, y *sqltree.Node) bool { return x.In == y.In }) {
		a, b = ordered(a), ordered(b)
	}
	return slices.EqualFunc(a, b, g.same)
}

// restrict adds a member to the condition of n, as the grammar does. What the
// condition has more itself, the copy of it that becomes a member has.
func (g growth) restrict(n, member *sqltree.Node) {
	field := "whereClause"
	if n.Is("MergeWhenClause") {
		field = "condition"
	}
	with := *member
	i := slices.IndexFunc(n.Kids, func(k *sqltree.Node) bool { return k.Field() == field })
	if i < 0 {
		with.In = n.Type.Field(field)
		n.Kids = append(n.Kids, &with)
		return
	}
	with.In = nil
	before := *n.Kids[i]
	if more := g.nodes[n.Kids[i]]; more != nil {
		g.nodes[&before] = more
	}
	args := []*sqltree.Node{&before}
	if before.Is("BoolExpr") && before.Str("boolop") == "AND_EXPR" {
		args = slices.Clone(before.List("args"))
	}
	before.In = nil
	and := sqltree.NodeTypes().Named("BoolExpr")
	n.Kids[i] = &sqltree.Node{Type: and, In: n.Type.Field(field), Kids: []*sqltree.Node{
		{Type: sqltree.ScalarType, In: and.Field("boolop"), Text: "AND_EXPR"},
		{Type: sqltree.ListType, In: and.Field("args"), Kids: append(args, &with)},
	}}
}

// sameTree reports whether two trees are the same but for places in the text.
func sameTree(a, b *sqltree.Node) bool { return growth{}.same(a, b) }

// sameItems compares two lists, the first of which may be abridged.
func (g growth) sameItems(a, b []*sqltree.Node, same func(a, b *sqltree.Node) bool) bool {
	if len(a) == len(b) {
		return slices.EqualFunc(a, b, same)
	}
	if g.short == nil || len(a) != 3 || a[0].In != nil {
		return false
	}
	c := g.short.between(a[1], a[2])
	return c != nil && len(b) == len(a)+c.items && same(a[0], b[0]) && same(a[1], b[1]) && same(a[2], b[len(b)-1])
}

// sameHead reports whether two nodes are the same but for their children.
func sameHead(a, b *sqltree.Node) bool {
	return a.Type == b.Type && a.Field() == b.Field() && a.Text == b.Text && a.IsNonDecimal == b.IsNonDecimal
}

// ordered puts a node's fields in order. Lists have no fields.
func ordered(fields []*sqltree.Node) []*sqltree.Node {
	kids := slices.Clone(fields)
	slices.SortStableFunc(kids, func(a, b *sqltree.Node) int { return strings.Compare(a.Field(), b.Field()) })
	return kids
}

// parseOne parses a text of one statement, nil if it is none.
func parseOne(text string) *sqltree.Node {
	if sqltext.Check(text) != nil {
		return nil
	}
	stmts, err := sqltree.Parse(text)
	if err != nil || len(stmts) != 1 {
		return nil
	}
	return stmts[0].Get("stmt")
}

// expression parses an expression.
func expression(text string) *sqltree.Node {
	if item := outputItem(text); item != nil {
		return item.Get("val")
	}
	return nil
}

// outputItem parses an item of a SELECT list.
func outputItem(text string) *sqltree.Node {
	query := parseOne("SELECT " + text)
	if !query.Is("SelectStmt") || len(query.List("targetList")) != 1 {
		return nil
	}
	return query.List("targetList")[0]
}
