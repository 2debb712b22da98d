package sqltree

// Arena is the memory of a tree: nodes, and the lists of their children, come from
// large pieces, since a tree is made of hundreds of either.
type Arena struct {
	nodes []Node  // what is left of a piece
	lists []*Node // and of one of lists
	open  []*Node // the children, so far, of the nodes that are being read

	firstNodes []Node // the first pieces, which are used again
	firstLists []*Node
	spilled    bool // they weren't enough
}

const (
	nodeBytes  = 16      // how much of a tree's JSON makes one node, at the least most of the time
	morePieces = 64      // of a further piece of memory
	keptNodes  = 1 << 14 // the largest arena that is used again
)

// reserve makes room for a tree.
func (a *Arena) reserve(jsonBytes int) {
	if room := jsonBytes/nodeBytes + 1; len(a.firstNodes) < room {
		a.firstNodes, a.firstLists = make([]Node, room), make([]*Node, room)
	}
	a.nodes, a.lists = a.firstNodes, a.firstLists
}

// Release makes the memory ready for another tree, and reports whether it is worth
// being kept for one. Nothing may hold on to a node by then: what is left of it has
// no kind, so that every use of it panics.
func (a *Arena) Release() bool {
	if a.spilled || len(a.firstNodes) > keptNodes {
		return false
	}
	clear(a.firstNodes[:len(a.firstNodes)-len(a.nodes)])
	clear(a.firstLists[:len(a.firstLists)-len(a.lists)])
	a.nodes, a.lists, a.open = nil, nil, a.open[:0]
	return true
}

// new returns a node.
func (a *Arena) new(of *NodeType) *Node {
	if len(a.nodes) == 0 {
		a.nodes, a.spilled = make([]Node, morePieces), true
	}
	n := &a.nodes[0]
	a.nodes = a.nodes[1:]
	n.Type = of
	return n
}

// adopt makes what has been opened since from the children of n.
func (a *Arena) adopt(n *Node, from int) {
	kids := a.open[from:]
	if len(kids) == 0 {
		return
	}
	if len(a.lists) < len(kids) {
		a.lists, a.spilled = make([]*Node, max(morePieces, len(kids))), true
	}
	n.Kids = a.lists[:len(kids):len(kids)]
	copy(n.Kids, kids)
	a.lists, a.open = a.lists[len(kids):], a.open[:from]
}
