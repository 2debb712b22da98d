package sqltree

import "slices"

// WithNumber returns a copy of n whose placeholders all have the number.
func (n *Node) WithNumber(number string) *Node {
	other := *n
	if n.Is(ScalarKind) && n.IsNumber && n.Field() == "number" {
		other.Text = number
	}
	other.Kids = make([]*Node, len(n.Kids))
	for i, kid := range n.Kids {
		other.Kids[i] = kid.WithNumber(number)
	}
	return &other
}

// Merge appends to a list, or adds a field that isn't there.
func (n *Node) Merge(more *Node) {
	i := slices.IndexFunc(n.Kids, func(k *Node) bool { return k.Field() == more.Field() })
	if i < 0 {
		n.Kids = append(n.Kids, more)
		return
	}
	longer := *n.Kids[i]
	longer.Kids = append(slices.Clone(longer.Kids), more.Kids...)
	n.Kids[i] = &longer
}
