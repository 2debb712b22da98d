package rewrite

// addsOnly reports whether a text is the statement root with each of the calls
// as one more member, the last, of the condition of its node or, if that is a
// token, in its place, and with nothing else that the tree tells.
func addsOnly(root *node, text string, calls map[*node]string) bool {
	if checkText(text) != nil {
		return false
	}
	stmts, err := parse(text)
	if err != nil || len(stmts) != 1 {
		return false
	}
	p := additions{wanted: make(map[*node]*node, len(calls))}
	for at, call := range calls {
		query, err := parse("SELECT " + call)
		if err != nil || len(query) != 1 {
			return false
		}
		p.wanted[at] = query[0].get("stmt").list("targetList")[0].get("val")
	}
	return p.same(root, stmts[0].get("stmt")) && p.found == len(calls)
}

// additions compares a tree with one that has more conditions.
type additions struct {
	wanted map[*node]*node // what is to be found in the condition, or in the place, of a node of the first tree
	found  int
}

// same reports whether two trees are the same but for places in the text and,
// in the second, the additions.
func (p *additions) same(before, after *node) bool {
	if instead, ok := p.wanted[before]; ok && (before.is("ParamRef") || before.is("A_Const")) {
		p.found++
		return p.same(instead, after)
	}
	if before.kind != after.kind || before.text != after.text || before.odd != after.odd {
		return false
	}
	kids, others := withoutPlaces(before.kids), withoutPlaces(after.kids)
	if len(kids) != len(others) {
		return false
	}
	wanted := p.wanted[before]
	for i, kid := range kids {
		other := others[i]
		if kid.field != other.field {
			return false
		}
		if wanted != nil && (kid.field == "whereClause" || kid.field == "condition") {
			if other = p.withoutLast(other, wanted); other == nil {
				return false
			}
			p.found++
		}
		if !p.same(kid, other) {
			return false
		}
	}
	return true
}

// withoutLast returns the condition n without the last member of its AND list,
// or nil if that is not the wanted one.
func (p *additions) withoutLast(n, wanted *node) *node {
	if !n.is("BoolExpr") || n.str("boolop") != "AND_EXPR" {
		return nil
	}
	args := n.list("args")
	last := len(args) - 1
	if last < 1 || !p.same(wanted, args[last]) {
		return nil
	}
	if last == 1 {
		return args[0] // a list of one is written without a list
	}
	rest := *n
	rest.kids = make([]*node, len(n.kids))
	for i, kid := range n.kids {
		if kid.field == "args" {
			shorter := *kid
			shorter.kids = args[:last]
			kid = &shorter
		}
		rest.kids[i] = kid
	}
	return &rest
}

// withoutPlaces leaves out what only says where a node stands in its text.
func withoutPlaces(kids []*node) []*node {
	out := make([]*node, 0, len(kids))
	for _, k := range kids {
		if k.field != "location" || !k.isNum {
			out = append(out, k)
		}
	}
	return out
}
