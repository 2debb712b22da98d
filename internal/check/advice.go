package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// noGuard explains why a write has no guard: nothing compares the token column, or
// something does in a way that proves nothing. write is the statement, or the action of an
// upsert.
func (c *checker) noGuard(write *sqltree.Node, t target, table *Table, verb string, none Rule, read operandReader) *Violation {
	column := table.TokenColumn
	for _, n := range conjuncts(write.Get("whereClause")) {
		if !mentions(n, column) {
			continue
		}
		rule, why := c.judgeComparison(n, t, table)
		v := violation(rule, n, "%s protected table %s compares %s %s", verb, quoted(table), column, why)
		if v.offset < 0 {
			v.offset = t.at.Offset()
		}
		isBetween := c.isForeignBetween(n, t, table)
		v.replaces = isBetween || isMeantAsGuard(n, t, table)
		gone := n
		if !v.replaces {
			gone = nil
		}
		token := raisedToken(write, gone, table, read)
		if v.replaces && !isBetween && token == "$n" {
			token = comparedToken(write, n, read)
		}
		v.Fix = "add to WHERE, joined by AND: "
		switch {
		case isBetween:
			v.Fix = "write in WHERE instead of BETWEEN: "
		case v.replaces:
			v.Fix = "write in WHERE instead of that comparison: "
		}
		v.Fix += c.guardWith(t, table, token)
		if none != UnguardedDelete {
			v.Fix = joinAdvice(raiseAdvice(write.List("targetList"), table, token, read), v.Fix)
		}
		if token == "$n" {
			v.Fix += ", where $n is the token, bare or as $n::bigint"
		}
		return v.on(table)
	}
	v := violation(none, t.at, "%s protected table %s has no %s guard", verb, quoted(table), column)
	token := raisedToken(write, nil, table, read)
	v.Fix = "add to WHERE: AND " + c.guardWith(t, table, token)
	if none != UnguardedDelete {
		v.Fix = joinAdvice(raiseAdvice(write.List("targetList"), table, token, read), v.Fix)
	}
	if token == "$n" {
		v.Fix += ", where $n is the token (tokenctx.Arg)"
	}
	return v.on(table)
}

// judgeComparison says what is wrong with a member of WHERE that mentions the token column
// and isn't a guard.
func (c *checker) judgeComparison(n *sqltree.Node, t target, table *Table) (rule Rule, why string) {
	column := table.TokenColumn
	left, isOp := exprSides(n)
	switch {
	case !isOp || !comparesColumn(n, column) && hasKind(n, "SubLink"):
		return GuardPosition, "where it does not decide alone"
	case c.isForeignBetween(n, t, table):
		return GuardComparison, "by BETWEEN, whose operators are found by search_path, and another than the built-in may come first there: the database has one of its own for integers, or the server (before PostgreSQL 18) does not report that setting"
	case !t.alone && left && !t.isColumn(n.Get("lexpr"), column) && !t.isColumn(n.Get("rexpr"), column):
		return AmbiguousTarget, "without naming the table it belongs to, or on another table"
	}
	return GuardComparison, "in a way that does not prove " + column + " " + guardOperator(table) + " token"
}

// isForeignBetween reports whether n would be a guard if the operators of BETWEEN were the
// built-in ones for certain.
func (c *checker) isForeignBetween(n *sqltree.Node, t target, table *Table) bool {
	return table.Mode == Lease && c.policy.closure.HasComparisons && n.Is("A_Expr") && n.Str("kind") == "AEXPR_BETWEEN" && t.isColumn(n.Get("lexpr"), table.TokenColumn)
}

// guardOperator returns the operator of a guard.
func guardOperator(table *Table) string {
	if table.Mode == Lease {
		return "<="
	}
	return "<"
}

// guardWith writes the guard with a token.
func (c *checker) guardWith(t target, table *Table, token string) string {
	return c.qualified(t, table.TokenColumn) + " " + guardOperator(table) + " " + token
}

// isMeantAsGuard reports whether a member of WHERE compares the token column, or what has
// its bare name, by an order. A guard has to take its place: beside a comparison the other
// way round no row would be left.
func isMeantAsGuard(n *sqltree.Node, t target, table *Table) bool {
	op, left, right, at, ok := boundOf(n)
	if !ok || op == "=" || op == "<>" || at.Str("kind") == "AEXPR_BETWEEN" {
		return false
	}
	return slices.ContainsFunc([]*sqltree.Node{left, right}, func(side *sqltree.Node) bool {
		return t.isColumn(side, table.TokenColumn) || isBareColumn(side, table.TokenColumn)
	})
}

// isBareColumn reports whether n is a column's name without a table's.
func isBareColumn(n *sqltree.Node, column string) bool {
	if !n.Is("ColumnRef") {
		return false
	}
	parts, ok := sqltree.Strings(n.List("fields"))
	return ok && len(parts) == 1 && parts[0] == column
}

// comparedToken writes the operand that the token column is compared with if it may stay the
// token: it is a placeholder that stands nowhere else, or a column that holds the token. It
// is $n otherwise.
func comparedToken(write, comparison *sqltree.Node, read operandReader) string {
	_, left, right, _, _ := boundOf(comparison)
	for _, side := range []*sqltree.Node{left, right} {
		if o, ok := read(side); ok && o.literal == 0 && countUses(write, comparison, o.param) == 0 {
			return o.spelled()
		}
	}
	return "$n"
}

// raisedToken writes what a write sets the token column to if a guard may compare with it:
// it is a placeholder that stands nowhere else but in the node that goes, or a column that
// holds the token. It is $n otherwise.
func raisedToken(write, gone *sqltree.Node, table *Table, read operandReader) string {
	if write.Is("DeleteStmt") {
		return "$n"
	}
	value, item, ok := raise(write.List("targetList"), table.TokenColumn)
	if !ok || item == nil {
		return "$n"
	}
	if o, isToken := read(value); isToken && o.literal == 0 && countUses(write, gone, o.param) <= 1 {
		return o.spelled()
	}
	return "$n"
}

// countUses returns at how many places below n, but not in the node that goes, a placeholder
// stands; 0 for none.
func countUses(n, gone *sqltree.Node, param int64) int {
	places := make(map[int]bool)
	var visit func(n *sqltree.Node)
	visit = func(n *sqltree.Node) {
		if n == gone {
			return
		}
		if n.Is("ParamRef") {
			if number, _ := n.Number("number"); number == param {
				places[n.Offset()] = true // the tree repeats the source of "(a, b) = (x, y)"
			}
		}
		for _, k := range n.Kids {
			visit(k)
		}
	}
	if param > 0 {
		visit(n)
	}
	return len(places)
}

// raiseAdvice says what SET has to have, "" if it sets the token column to that token. read
// is nil if that isn't known.
func raiseAdvice(sets []*sqltree.Node, table *Table, token string, read operandReader) string {
	column := sqltext.QuoteIfNeeded(table.TokenColumn)
	item := column + " = " + token
	named := slices.DeleteFunc(slices.Clone(sets), func(set *sqltree.Node) bool { return set.Str("name") != table.TokenColumn })
	switch {
	case len(named) == 0:
		return "add to SET: " + item
	case len(named) > 1:
		return "set " + column + " once in SET: " + item
	}
	value, ok := assigned(named[0].Get("val"))
	if ok && read != nil && len(named[0].List("indirection")) == 0 {
		if o, isToken := read(value); isToken && o.literal == 0 && o.spelled() == token {
			return ""
		}
	}
	if named[0].Get("val").Is("MultiAssignRef") {
		return "take " + column + " and its value out of the list of columns in SET, and set it by itself: " + item
	}
	return "change in SET: " + item
}

func joinAdvice(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// adviseRaise reports that SET doesn't set the token column to the token that guards it. A
// literal is not repeated: it is somebody's value.
func (c *checker) adviseRaise(v *Violation, sets []*sqltree.Node, table *Table, token operand) {
	spelled, where := token.spelled(), ""
	if token.literal > 0 {
		spelled, where = "?", ", where ? stands for the literal that "+table.TokenColumn+" is compared with"
	}
	v.Fix = raiseAdvice(sets, table, spelled, nil) + where
	c.report(v.on(table))
	c.needToken(table, token) // where else it stands is told, too
}

// upsertAdvice says how the action of an upsert has to end.
func (c *checker) upsertAdvice(conflict *sqltree.Node, t target, table *Table, token string, replaces bool) string {
	guard := c.guardWith(t, table, token)
	advice := raiseAdvice(conflict.List("targetList"), table, token, nil)
	switch {
	case replaces:
		advice += "; write in the action's WHERE instead of that comparison: " + guard
	case conflict.Get("whereClause") != nil:
		advice += "; add to the action's WHERE, joined by AND: " + guard
	default:
		advice += "; add to the action: WHERE " + guard
	}
	if strings.HasSuffix(guard, "$n") {
		advice += ", where $n is the token, bare or as $n::bigint"
	}
	return advice
}
