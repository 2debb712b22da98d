package rewrite

import (
	"slices"
	"strings"
)

// growth is what is added to a statement, as its tree shows it. A text that is
// made by adding to another one is proved to be that: it must parse to the
// other's tree with the growth, and differ in nothing else.
type growth struct {
	members map[*node]*node   // one more member, the last, of the AND list that is the condition of a node
	instead map[*node]*node   // what stands in the place of a node
	added   map[*node][]*node // fields that a node has more, or more items of its lists
	front   map[*node][]*node // more items of its lists, before those that it has
}

func newGrowth() growth {
	return growth{members: make(map[*node]*node), instead: make(map[*node]*node), added: make(map[*node][]*node), front: make(map[*node][]*node)}
}

// callGrowth is the growth by calls: each ends the condition of its node or, if
// that is a token, stands in its place.
func callGrowth(calls map[*node]string) (growth, bool) {
	g := newGrowth()
	for at, call := range calls {
		n := expression(call)
		if n == nil {
			return g, false
		}
		if at.is("ParamRef") || at.is("A_Const") {
			g.instead[at] = n
		} else {
			g.members[at] = n
		}
	}
	return g, true
}

// proves reports whether a text is the statement root, grown, and nothing else.
func (g growth) proves(root *node, text string) bool {
	after := parseOne(text)
	return after != nil && sameTree(g.tree(root), after)
}

// add notes items that a list of a node has more.
func (g growth) add(at *node, field string, items ...*node) {
	g.added[at] = append(g.added[at], listOf(at.of.field(field), items))
}

// addFirst notes an item that a list of a node has before the others.
func (g growth) addFirst(at *node, field string, item *node) {
	g.front[at] = append(g.front[at], listOf(at.of.field(field), []*node{item}))
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

// tree returns n, grown.
func (g growth) tree(n *node) *node {
	if other := g.instead[n]; other != nil {
		grown := *other
		grown.in = n.in
		return &grown
	}
	grown := *n
	grown.kids = make([]*node, 0, len(n.kids)+1)
	for _, kid := range n.kids {
		grown.kids = append(grown.kids, g.tree(kid))
	}
	for _, more := range g.front[n] {
		i := slices.IndexFunc(grown.kids, func(k *node) bool { return k.field() == more.field() })
		if i < 0 {
			continue // an empty list has no front: nothing is proved
		}
		longer := *grown.kids[i]
		longer.kids = append(slices.Clone(more.kids), longer.kids...)
		grown.kids[i] = &longer
	}
	for _, more := range g.added[n] {
		grown.merge(more)
	}
	if member := g.members[n]; member != nil {
		grown.restrict(member)
	}
	return &grown
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

// restrict adds a member to the condition of n, as the grammar does.
func (n *node) restrict(member *node) {
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
func sameTree(a, b *node) bool {
	if a.kind() != b.kind() || a.field() != b.field() || a.text != b.text || a.odd != b.odd {
		return false
	}
	if slices.EqualFunc(a.kids, b.kids, func(x, y *node) bool { return x.in == y.in }) {
		return slices.EqualFunc(a.kids, b.kids, sameTree)
	}
	return slices.EqualFunc(ordered(a), ordered(b), sameTree)
}

// ordered puts a node's fields in order. Lists have no fields.
func ordered(n *node) []*node {
	kids := slices.Clone(n.kids)
	slices.SortStableFunc(kids, func(a, b *node) int { return strings.Compare(a.field(), b.field()) })
	return kids
}

// parseOne parses a text of one statement, nil if it is none.
func parseOne(text string) *node {
	if checkText(text) != nil {
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
