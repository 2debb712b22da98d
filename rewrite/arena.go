package rewrite

import (
	"sync"

	"github.com/fencerow/fencerow/internal/sqltext"
)

// arena is the memory of a check: nodes, and the lists of their children, come
// from large pieces, since a tree is made of hundreds of either.
type arena struct {
	nodes []node  // what is left of a piece
	lists []*node // and of one of lists
	open  []*node // the children, so far, of the nodes that are being read

	firstNodes []node // the first pieces, which are used again
	firstLists []*node
	spilled    bool // they weren't enough

	checker checker // that reads the tree
}

// arenas are those that no check is using.
var arenas = sync.Pool{New: func() any { return new(arena) }}

const (
	nodeBytes  = 16      // how much of a tree's JSON makes one node, at the least most of the time
	morePieces = 64      // of a further piece of memory
	keptNodes  = 1 << 14 // the largest arena that is used again
)

// check returns a checker of a text.
func (a *arena) check(p *Policy, sql string) *checker {
	c := &a.checker
	c.policy, c.sql, c.arena, c.lex = p, sql, a, sqltext.Text{SQL: sql}
	c.params, c.stmts, c.madeBy = c.room[:0], nil, nil
	return c
}

// reserve makes room for a tree.
func (a *arena) reserve(jsonBytes int) {
	if room := jsonBytes/nodeBytes + 1; len(a.firstNodes) < room {
		a.firstNodes, a.firstLists = make([]node, room), make([]*node, room)
	}
	a.nodes, a.lists = a.firstNodes, a.firstLists
}

// release gives the memory back. Nothing may hold on to a node by then: what is
// left of it has no kind, so that every use of it panics.
func (a *arena) release() {
	if a.spilled || len(a.firstNodes) > keptNodes {
		return
	}
	a.checker = checker{}
	clear(a.firstNodes[:len(a.firstNodes)-len(a.nodes)])
	clear(a.firstLists[:len(a.firstLists)-len(a.lists)])
	a.nodes, a.lists, a.open = nil, nil, a.open[:0]
	arenas.Put(a)
}

// new returns a node.
func (a *arena) new(of *nodeKind) *node {
	if len(a.nodes) == 0 {
		a.nodes, a.spilled = make([]node, morePieces), true
	}
	n := &a.nodes[0]
	a.nodes = a.nodes[1:]
	n.of = of
	return n
}

// adopt makes what has been opened since from the children of n.
func (a *arena) adopt(n *node, from int) {
	kids := a.open[from:]
	if len(kids) == 0 {
		return
	}
	if len(a.lists) < len(kids) {
		a.lists, a.spilled = make([]*node, max(morePieces, len(kids))), true
	}
	n.kids = a.lists[:len(kids):len(kids)]
	copy(n.kids, kids)
	a.lists, a.open = a.lists[len(kids):], a.open[:from]
}
