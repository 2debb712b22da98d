package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// conjuncts flattens the top-level AND list of a condition. Only its members
// decide alone whether a row is written.
func conjuncts(where *sqltree.Node) []*sqltree.Node {
	if where == nil {
		return nil
	}
	return appendConjuncts(make([]*sqltree.Node, 0, 4), where)
}

func appendConjuncts(out []*sqltree.Node, where *sqltree.Node) []*sqltree.Node {
	if where.Is("BoolExpr") && where.Str("boolop") == "AND_EXPR" {
		for _, arg := range where.List("args") {
			out = appendConjuncts(out, arg)
		}
		return out
	}
	return append(out, where)
}

// guard is a member of the AND list that keeps a newer row from being written.
type guard struct {
	operand
	index int  // its place in the AND list
	equal bool // it lets an equal token through
}

// findGuards returns the guards in the AND list of a condition: "C < T" or
// "T > C", in lease mode with "=" too, or what says the same; see boundOf. Its placeholders, and those of any
// other plain comparison of C, stand where PostgreSQL types them as bigint.
func (c *checker) findGuards(t target, table *Table, members []*sqltree.Node, read operandReader) []guard {
	var out []guard
	for i, n := range members {
		op, left, right, at, ok := boundOf(n)
		if !ok {
			continue
		}
		if t.isColumn(right, table.TokenColumn) {
			left, right, op = right, left, mirrored[op]
		}
		if !t.isColumn(left, table.TokenColumn) {
			continue
		}
		value, ok := read(right)
		if !ok {
			continue
		}
		c.markToken(value)
		if op == "<" || op == "<=" && table.Mode == Lease {
			if c.policy.closure.HasComparisons && at.Str("kind") == "AEXPR_BETWEEN" {
				continue // its operators can't be written as those of pg_catalog
			}
			out = append(out, guard{value, i, op == "<="})
			if c.policy.closure.HasComparisons && len(at.List("name")) == 1 && !slices.Contains(c.bare, at) {
				c.bare = append(c.bare, at)
			}
		}
	}
	return out
}

// mirrored turns "T op C" into "C op T".
var mirrored = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}

// negated turns "NOT C op T" into "C op T". Where one of them is NULL, neither is true.
var negated = map[string]string{"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "<>", "<>": "="}

// boundOf returns the comparison that holds wherever the member n of an AND list
// does: n itself, that of NOT with the operator turned around, or the upper one of
// BETWEEN. at is the node that has the operator.
func boundOf(n *sqltree.Node) (op string, left, right, at *sqltree.Node, ok bool) {
	switch {
	case n.Is("BoolExpr") && n.Str("boolop") == "NOT_EXPR" && len(n.List("args")) == 1:
		at = n.List("args")[0]
		op, left, right, ok = comparison(at)
		return negated[op], left, right, at, ok
	case n.Is("A_Expr") && n.Str("kind") == "AEXPR_BETWEEN": // not BETWEEN SYMMETRIC, whose bounds may be the other way round
		bounds := n.Get("rexpr")
		if !bounds.Is("List") || len(bounds.List("items")) != 2 {
			return "", nil, nil, nil, false
		}
		return "<=", n.Get("lexpr"), bounds.List("items")[1], n, true
	}
	op, left, right, ok = comparison(n)
	return op, left, right, n, ok
}

// comparison splits n if it is a plain comparison by a built-in operator.
func comparison(n *sqltree.Node) (op string, left, right *sqltree.Node, ok bool) {
	if !n.Is("A_Expr") || n.Str("kind") != "AEXPR_OP" {
		return "", nil, nil, false
	}
	var room [2]string
	parts, isName := sqltree.AppendStrings(room[:0], n.List("name"))
	if !isName || len(parts) == 0 || len(parts) > 2 || len(parts) == 2 && parts[0] != "pg_catalog" {
		return "", nil, nil, false
	}
	op = parts[len(parts)-1]
	left, right = n.Get("lexpr"), n.Get("rexpr")
	return op, left, right, mirrored[op] != "" && left != nil && right != nil
}

// markToken notes that a placeholder stands in a token position. Its place in
// the text tells it, since the tree repeats the source of "(a, b) = (x, y)".
func (c *checker) markToken(o operand) {
	if len(o.rows) > 0 && !c.seenRows[&o.rows[0]] {
		if c.seenRows == nil {
			c.seenRows = make(map[*operand]bool)
		}
		c.seenRows[&o.rows[0]] = true
		for _, row := range o.rows {
			c.markToken(row)
		}
	}
	if o.cast != nil && !c.tokenPos.has(o.at.Offset()) {
		c.casts = append(c.casts, o.cast)
	}
	if o.param > 0 || o.cast != nil {
		c.tokenPos.add(o.at.Offset())
	}
}

// needToken notes that the statement is proved only if o is the token.
func (c *checker) needToken(table *Table, o operand) {
	c.markToken(o)
	if o.name != "" {
		// the same list stands behind each mention of its column
		if len(o.rows) > 0 && !c.neededRows[rowsKey{table, &o.rows[0]}] {
			if c.neededRows == nil {
				c.neededRows = make(map[rowsKey]bool)
			}
			c.neededRows[rowsKey{table, &o.rows[0]}] = true
			for _, row := range o.rows {
				c.needToken(table, row)
			}
		}
		return
	}
	key := tokenKey{table, o.param, o.literal}
	if c.needed.has(key) {
		return
	}
	c.needed.add(key)
	c.tokens = append(c.tokens, tokenUse{table, o.param, o.literal, o.at.Offset()})
}

// prove notes what must be the token for guards and a raise to hold: the
// raised value, and the guard that compares with the same. If none does, every
// guard has to be the token.
func (c *checker) prove(table *Table, guards []guard, raise operand) []guard {
	c.needToken(table, raise)
	var same []guard
	for _, g := range guards {
		if g.same(raise) {
			same = append(same, g)
		}
	}
	if same != nil {
		return same
	}
	return c.proveAll(table, guards)
}

// proveAll notes that every guard has to compare with the token.
func (c *checker) proveAll(table *Table, guards []guard) []guard {
	for _, g := range guards {
		c.needToken(table, g.operand)
	}
	return guards
}

// keep notes the guards of the write that was noted last.
func (c *checker) keep(guards []guard, top bool) {
	if len(guards) > 0 {
		c.parts[len(c.parts)-1].guards = guards
	}
	if top {
		c.guards = guards
	}
}

// raise finds what a SET list assigns to the token column. n is the value's
// expression, nil if the list doesn't name the column; ok is false if it is
// assigned in a way that can't be followed, or twice.
func raise(sets []*sqltree.Node, column string) (value, at *sqltree.Node, ok bool) {
	for _, set := range sets {
		if set.Str("name") != column {
			continue
		}
		if at != nil || len(set.List("indirection")) > 0 {
			return nil, set, false
		}
		at = set
		if value, ok = assigned(set.Get("val")); !ok {
			return nil, set, false
		}
	}
	return value, at, true
}

// assigned returns the expression that a SET entry assigns. In
// "(a, b) = (x, y)" it is the one of the same position.
func assigned(val *sqltree.Node) (*sqltree.Node, bool) {
	if !val.Is("MultiAssignRef") {
		return val, val != nil
	}
	source := val.Get("source")
	column, _ := val.Number("colno")
	count, _ := val.Number("ncolumns")
	if !source.Is("RowExpr") {
		return nil, false
	}
	args := source.List("args")
	if int64(len(args)) != count || column < 1 || column > count {
		return nil, false
	}
	for _, arg := range args {
		if expands(arg) {
			return nil, false
		}
	}
	return args[column-1], true
}

// expands reports whether an output expression may stand for several columns.
func expands(n *sqltree.Node) bool {
	switch {
	case n.Is("ColumnRef"):
		fields := n.List("fields")
		return len(fields) > 0 && fields[len(fields)-1].Is("A_Star")
	case n.Is("A_Indirection"):
		for _, i := range n.List("indirection") {
			if i.Is("A_Star") {
				return true
			}
		}
	}
	return false
}
