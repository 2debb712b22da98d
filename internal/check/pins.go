package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// columnsOf tells the columns of a write's target from others in its conditions.
type columnsOf struct {
	ref   string // what the target is called
	alone bool   // it is the only table in reach
}

// is reports whether n is the target's column of that name, which may have a cast.
// Beside other tables a bare name is the target's, too: PostgreSQL refuses one that
// may be another's.
func (c columnsOf) is(n *sqltree.Node, column string) bool {
	for n.Is("TypeCast") {
		n = n.Get("arg")
	}
	parts, ok := columnParts(n)
	if !ok || len(parts) == 0 || parts[len(parts)-1] != column {
		return false
	}
	return c.alone || len(parts) == 1 || parts[len(parts)-2] == c.ref
}

// pinned returns which members of an AND list hold each column of a key to constants
// and placeholders, and whether it may be to several of them. It returns nil if they
// don't.
func (c columnsOf) pinned(members []*sqltree.Node, key []string) (pinned []int, several bool) {
	for _, column := range key {
		found := slices.IndexFunc(members, func(n *sqltree.Node) bool { return c.pins(n, column) })
		if found < 0 {
			return nil, false
		}
		if !slices.Contains(pinned, found) {
			pinned = append(pinned, found)
		}
		several = several || !isEquality(members[found])
	}
	return pinned, several
}

// isEquality reports whether a condition that pins a column holds it to one value.
func isEquality(n *sqltree.Node) bool {
	return n.Is("A_Expr") && (n.Str("kind") == "AEXPR_OP" || n.Str("kind") == "AEXPR_NOT_DISTINCT")
}

// pins reports whether a condition holds a column to constants and placeholders.
func (c columnsOf) pins(n *sqltree.Node, column string) bool {
	if n.Is("BoolExpr") {
		pins := func(arg *sqltree.Node) bool { return c.pins(arg, column) }
		switch args := n.List("args"); n.Str("boolop") {
		case "AND_EXPR":
			return slices.ContainsFunc(args, pins)
		case "OR_EXPR":
			return !slices.ContainsFunc(args, func(arg *sqltree.Node) bool { return !pins(arg) })
		}
		return false
	}
	if !n.Is("A_Expr") {
		return false
	}
	left, right := n.Get("lexpr"), n.Get("rexpr")
	switch n.Str("kind") {
	case "AEXPR_OP":
		op, _, _, ok := comparison(n)
		return ok && op == "=" && (c.equates(left, right, column) || c.equates(right, left, column))
	case "AEXPR_NOT_DISTINCT":
		return c.equates(left, right, column) || c.equates(right, left, column)
	case "AEXPR_IN":
		return isName(n.List("name"), "=") && right.Is("List") &&
			!slices.ContainsFunc(right.List("items"), func(item *sqltree.Node) bool { return !c.equates(left, item, column) })
	case "AEXPR_OP_ANY":
		return isName(n.List("name"), "=") && c.is(left, column) && isFixed(right)
	case "AEXPR_BETWEEN", "AEXPR_BETWEEN_SYM":
		return c.is(left, column) && isFixed(right)
	}
	return false
}

// equates reports whether two sides that are equal hold a column, on the left one, to
// what is fixed. Rows are equal if all their columns are.
func (c columnsOf) equates(left, right *sqltree.Node, column string) bool {
	if left.Is("RowExpr") && right.Is("RowExpr") {
		of, to := left.List("args"), right.List("args")
		if len(of) != len(to) {
			return false
		}
		for i := range of {
			if c.is(of[i], column) && isFixed(to[i]) {
				return true
			}
		}
		return false
	}
	return c.is(left, column) && isFixed(right)
}

// isFixed reports whether an expression has the same value for each row, and when it
// is asked for again: it has no column, no sub-select and no call that may be volatile.
func isFixed(n *sqltree.Node) bool { return n != nil && !hasKind(n, "ColumnRef") && repeatable(n) }
