package rewrite

import "fmt"

// checkUpdate checks an UPDATE. On a protected table it is provable with a
// guard in the AND list of its WHERE and with the token column set to the
// token. FROM, WITH and RETURNING are free.
func checkUpdate(c *checker, n *node, top bool) {
	from := n.list("fromClause")
	t := c.target(n.get("relation"), from)
	for _, table := range t.tables {
		c.proveUpdate(n, t, table, top)
	}
	for _, k := range n.kids {
		if k.field != "relation" {
			c.walkIn(k, n)
		}
	}
}

func (c *checker) proveUpdate(n *node, t target, table *Table, top bool) {
	where, sets := n.get("whereClause"), n.list("targetList")
	c.writes = append(c.writes, Write{Table: table, Kind: "UPDATE", TopLevel: top, Returning: len(n.list("returningList")) > 0})
	switch {
	case where.is("CurrentOfExpr"):
		c.report(violation(CurrentOf, t.at, "UPDATE on protected table %s by WHERE CURRENT OF cannot carry a guard: update by key", quoted(table)).on(table))
		return
	case t.shared:
		c.report(violation(AmbiguousTarget, t.at, "UPDATE on protected table %s: another item of FROM is also called %q, so the guard's column may be its; give the target an alias of its own", quoted(table), t.ref()).on(table))
		return
	}
	guards := c.findGuards(t, table, conjuncts(where))
	if len(guards) == 0 {
		c.report(c.noGuard(where, t, table, "UPDATE on", UnguardedUpdate))
		return
	}
	value, at, ok := raise(sets, table.TokenColumn)
	if at == nil {
		v := violation(UnraisedUpdate, t.at, "UPDATE on protected table %s compares %s but does not set it to the token", quoted(table), table.TokenColumn)
		v.Fix = fmt.Sprintf("add to SET: %s = %s", table.TokenColumn, guards[0].spelled())
		c.report(v.on(table))
		return
	}
	token, isToken := tokenOperand(value)
	if !ok || !isToken {
		v := violation(RaiseValue, at, "UPDATE on protected table %s sets %s to something other than the token: write it once, as the token's placeholder or literal itself", quoted(table), table.TokenColumn)
		v.Fix = fmt.Sprintf("SET %s = %s", table.TokenColumn, guards[0].spelled())
		c.report(v.on(table))
		return
	}
	c.guards = c.prove(table, guards, token)
}

// noGuard explains why a condition has no guard: nothing compares the token
// column, or something does in a way that proves nothing.
func (c *checker) noGuard(where *node, t target, table *Table, verb string, none Rule) *Violation {
	column, op := table.TokenColumn, "<"
	if table.Mode == Lease {
		op = "<="
	}
	for _, n := range conjuncts(where) {
		if !mentions(n, column) {
			continue
		}
		rule, why := GuardPosition, "where it does not decide alone"
		if left, isOp := exprSides(n); isOp {
			rule, why = GuardComparison, "in a way that does not prove "+column+" "+op+" token"
			if !t.alone && left {
				rule, why = AmbiguousTarget, "without naming the table it belongs to, or on another table"
			}
		}
		v := violation(rule, n, "%s protected table %s compares %s %s", verb, quoted(table), column, why)
		if v.offset < 0 {
			v.offset = t.at.offset()
		}
		v.Fix = fmt.Sprintf("add to WHERE, joined by AND: %s %s $n, where $n is the token, bare or as $n::bigint", c.qualified(t, column), op)
		return v.on(table)
	}
	v := violation(none, t.at, "%s protected table %s has no %s guard", verb, quoted(table), column)
	v.Fix = fmt.Sprintf("add to WHERE: AND %s %s $n", c.qualified(t, column), op)
	if none == UnguardedUpdate {
		v.Fix = fmt.Sprintf("add to SET: %s = $n; %s", column, v.Fix)
	}
	v.Fix += ", where $n is the token (tokenctx.Arg)"
	return v.on(table)
}

// exprSides reports whether n is an operator expression, and whether one of
// its sides is a plain column.
func exprSides(n *node) (column, ok bool) {
	if !n.is("A_Expr") {
		return false, false
	}
	return n.get("lexpr").is("ColumnRef") || n.get("rexpr").is("ColumnRef"), true
}

// qualified writes the token column as the statement has to.
func (c *checker) qualified(t target, column string) string {
	if t.alone {
		return identifier(column)
	}
	return identifier(t.ref()) + "." + identifier(column)
}

// spelled writes an operand as SQL. A literal is somebody's value, so it is
// not repeated.
func (o operand) spelled() string {
	if o.param > 0 {
		return fmt.Sprintf("$%d", o.param)
	}
	return "the token"
}
