package rewrite

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// growth is what is added to a statement, as its tree shows it. A text that is
// made by adding to another one is proved to be that: it must parse to the
// other's tree with the growth, and differ in nothing else.
type growth struct {
	nodes map[*node]*grownNode
	short *abridged // the other text is abridged: lists may be longer in the one made of it
}

func newGrowth() growth { return growth{nodes: make(map[*node]*grownNode)} }

// grownNode is what one node has more.
type grownNode struct {
	instead *node   // what stands in its place
	member  *node   // one more member, the last, of the AND list that is its condition
	added   []*node // fields, or more items of its lists
	front   []*node // more items of its lists, before those that it has
	rows    *node   // more items of each of its rows of VALUES
}

func (g growth) of(n *node) *grownNode {
	grown := g.nodes[n]
	if grown == nil {
		grown = new(grownNode)
		g.nodes[n] = grown
	}
	return grown
}

// callGrowth is the growth by calls: each ends the condition of its node or, if
// that is a token, stands in its place.
func callGrowth(calls map[*node]string) (growth, bool) {
	g := growth{nodes: make(map[*node]*grownNode, len(calls))}
	known := make(map[string]*node)
	for at, call := range calls {
		n := callTree(at, call, known)
		if n == nil {
			return g, false
		}
		if at.is("ParamRef") || at.is("A_Const") {
			g.of(at).instead = n
		} else {
			g.of(at).member = n
		}
	}
	return g, true
}

// callTree parses a call. Those in the place of placeholders are alike but for the
// number, and are parsed once.
func callTree(at *node, call string, known map[string]*node) *node {
	number := ""
	if at.is("ParamRef") {
		number = at.str("number")
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
	return n.withNumber(number)
}

// withNumber returns a copy of n whose placeholders all have the number.
func (n *node) withNumber(number string) *node {
	other := *n
	if n.is(scalarKind) && n.isNum && n.field() == "number" {
		other.text = number
	}
	other.kids = make([]*node, len(n.kids))
	for i, kid := range n.kids {
		other.kids[i] = kid.withNumber(number)
	}
	return &other
}

// proves reports whether a text is the statement root, grown, and nothing else.
func (g growth) proves(root *node, text string) bool {
	after := parseOne(text)
	return after != nil && g.same(root, after)
}

// add notes items that a list of a node has more.
func (g growth) add(at *node, field string, items ...*node) {
	grown := g.of(at)
	grown.added = append(grown.added, listOf(at.of.field(field), items))
}

// addFirst notes an item that a list of a node has before the others.
func (g growth) addFirst(at *node, field string, item *node) {
	grown := g.of(at)
	grown.front = append(grown.front, listOf(at.of.field(field), []*node{item}))
}

// addToRows notes an item that each row of VALUES has more.
func (g growth) addToRows(values, item *node) {
	if rows := values.list("valuesLists"); len(rows) > 0 {
		g.of(values).rows = listOf(rows[0].of.field("items"), []*node{item})
	}
}

func listOf(field *nodeField, items []*node) *node {
	list := &node{of: listNode, in: field}
	for _, item := range items {
		if item != nil {
			with := *item
			with.in = nil
			list.kids = append(list.kids, &with)
		}
	}
	return list
}

// same reports whether a tree is n, grown, but for places in the text.
func (g growth) same(n, after *node) bool {
	more := g.nodes[n]
	switch {
	case g.short != nil && n.is("A_Const") && g.short.strings[n.offset()]:
		return after.is("A_Const") && n.field() == after.field() && after.get("sval") != nil
	case more == nil:
		return sameHead(n, after) && g.sameKids(n.kids, after.kids)
	case more.instead != nil:
		grown := *more.instead
		grown.in = n.in
		return sameTree(&grown, after)
	}
	grown := *n
	grown.kids = slices.Clone(n.kids)
	for _, first := range more.front {
		i := slices.IndexFunc(grown.kids, func(k *node) bool { return k.field() == first.field() })
		if i < 0 {
			return false // an empty list has no front
		}
		longer := *grown.kids[i]
		longer.kids = append(slices.Clone(first.kids), longer.kids...)
		grown.kids[i] = &longer
	}
	for _, list := range more.added {
		grown.merge(list)
	}
	if more.member != nil {
		g.restrict(&grown, more.member)
	}
	return sameHead(&grown, after) && g.sameFields(&grown, after, more.rows)
}

// sameFields compares the fields of two nodes, whose rows of VALUES have more items
// in the second one.
func (g growth) sameFields(a, b *node, more *node) bool {
	if more == nil {
		return g.sameKids(a.kids, b.kids)
	}
	return slices.EqualFunc(ordered(a.kids), ordered(b.kids), func(x, y *node) bool {
		if x.field() != "valuesLists" {
			return g.same(x, y)
		}
		return sameHead(x, y) && g.sameItems(x.kids, y.kids, func(x, y *node) bool { return g.sameRow(x, y, more) })
	})
}

// sameRow compares two rows of VALUES, the second of which has more items.
func (g growth) sameRow(a, b, more *node) bool {
	if !sameHead(a, b) || len(a.kids) != 1 || len(b.kids) != 1 || !sameHead(a.kids[0], b.kids[0]) || a.kids[0].field() != more.field() {
		return false
	}
	before, after := a.kids[0].kids, b.kids[0].kids
	return len(after) == len(before)+len(more.kids) && g.sameKids(before, after[:len(before)]) &&
		slices.EqualFunc(more.kids, after[len(before):], sameTree)
}

// sameKids compares the children of two nodes.
func (g growth) sameKids(a, b []*node) bool {
	if len(a) != len(b) {
		return g.sameItems(a, b, g.same)
	}
	if !slices.EqualFunc(a, b, func(x, y *node) bool { return x.in == y.in }) {
		a, b = ordered(a), ordered(b)
	}
	return slices.EqualFunc(a, b, g.same)
}

// merge appends to a list, or adds a field that isn't there.
func (n *node) merge(more *node) {
	i := slices.IndexFunc(n.kids, func(k *node) bool { return k.field() == more.field() })
	if i < 0 {
		n.kids = append(n.kids, more)
		return
	}
	longer := *n.kids[i]
	longer.kids = append(slices.Clone(longer.kids), more.kids...)
	n.kids[i] = &longer
}

// restrict adds a member to the condition of n, as the grammar does. What the
// condition has more itself, the copy of it that becomes a member has.
func (g growth) restrict(n, member *node) {
	field := "whereClause"
	if n.is("MergeWhenClause") {
		field = "condition"
	}
	with := *member
	i := slices.IndexFunc(n.kids, func(k *node) bool { return k.field() == field })
	if i < 0 {
		with.in = n.of.field(field)
		n.kids = append(n.kids, &with)
		return
	}
	with.in = nil
	before := *n.kids[i]
	if more := g.nodes[n.kids[i]]; more != nil {
		g.nodes[&before] = more
	}
	args := []*node{&before}
	if before.is("BoolExpr") && before.str("boolop") == "AND_EXPR" {
		args = slices.Clone(before.list("args"))
	}
	before.in = nil
	and := nodeKinds().named("BoolExpr")
	n.kids[i] = &node{of: and, in: n.of.field(field), kids: []*node{
		{of: scalarNode, in: and.field("boolop"), text: "AND_EXPR"},
		{of: listNode, in: and.field("args"), kids: append(args, &with)},
	}}
}

// sameTree reports whether two trees are the same but for places in the text.
func sameTree(a, b *node) bool { return growth{}.same(a, b) }

// sameItems compares two lists, the first of which may be abridged.
func (g growth) sameItems(a, b []*node, same func(a, b *node) bool) bool {
	if len(a) == len(b) {
		return slices.EqualFunc(a, b, same)
	}
	if g.short == nil || len(a) != 3 || a[0].in != nil {
		return false
	}
	c := g.short.between(a[1], a[2])
	return c != nil && len(b) == len(a)+c.items && same(a[0], b[0]) && same(a[1], b[1]) && same(a[2], b[len(b)-1])
}

// sameHead reports whether two nodes are the same but for their children.
func sameHead(a, b *node) bool {
	return a.of == b.of && a.field() == b.field() && a.text == b.text && a.odd == b.odd
}

// ordered puts a node's fields in order. Lists have no fields.
func ordered(fields []*node) []*node {
	kids := slices.Clone(fields)
	slices.SortStableFunc(kids, func(a, b *node) int { return strings.Compare(a.field(), b.field()) })
	return kids
}

// parseOne parses a text of one statement, nil if it is none.
func parseOne(text string) *node {
	if sqltext.Check(text) != nil {
		return nil
	}
	stmts, err := parse(text)
	if err != nil || len(stmts) != 1 {
		return nil
	}
	return stmts[0].get("stmt")
}

// expression parses an expression.
func expression(text string) *node {
	if item := outputItem(text); item != nil {
		return item.get("val")
	}
	return nil
}

// outputItem parses an item of a SELECT list.
func outputItem(text string) *node {
	query := parseOne("SELECT " + text)
	if !query.is("SelectStmt") || len(query.list("targetList")) != 1 {
		return nil
	}
	return query.list("targetList")[0]
}
