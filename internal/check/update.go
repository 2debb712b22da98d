package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkUpdate checks an UPDATE. On a protected table it is provable with a
// guard in the AND list of its WHERE and with the token column set to the
// token. FROM, WITH and RETURNING are free.
func checkUpdate(c *checker, n *sqltree.Node, top bool) {
	t := c.target(n.Get("relation"), n.List("fromClause"))
	c.checkIndirect(t, "UPDATE", n.List("targetList"), n, n)
	for _, table := range t.tables {
		c.proveUpdate(n, t, table, top)
	}
	c.walkFields(n, "relation")
}

func (c *checker) proveUpdate(n *sqltree.Node, t target, table *Table, top bool) {
	where := n.Get("whereClause")
	c.write(n, table, "UPDATE", top)
	if c.refuseForm(t, table, where, "UPDATE on", "FROM") {
		return
	}
	read := c.reader(n, "fromClause")
	guards := c.findGuards(t, table, conjuncts(where), read)
	if len(guards) == 0 {
		c.report(c.noGuard(n, t, table, "UPDATE on", UnguardedUpdate, read))
		return
	}
	if table.Attested || table.Moves {
		c.changes = append(c.changes, change{n, n, table, guards})
	}
	if token, ok := c.findRaise(n.List("targetList"), t, table, "UPDATE on", guards[0].operand, read); ok {
		c.keep(c.prove(table, guards, token), top)
	}
}

// findRaise reads what a SET list assigns to the token column, and reports it
// if it isn't the token.
func (c *checker) findRaise(sets []*sqltree.Node, t target, table *Table, verb string, token operand, read operandReader) (operand, bool) {
	value, at, ok := raise(sets, table.TokenColumn)
	if at == nil {
		v := violation(UnraisedUpdate, t.at, "%s protected table %s compares %s but does not set it to the token", verb, quoted(table), table.TokenColumn)
		c.adviseRaise(v, sets, table, token)
		return operand{}, false
	}
	raised, isToken := read(value)
	if !ok || !isToken {
		v := violation(RaiseValue, at, "%s protected table %s sets %s to something other than the token: write it once, as the token's placeholder or literal itself, bare or cast by ::bigint", verb, quoted(table), table.TokenColumn)
		c.adviseRaise(v, sets, table, token)
		return operand{}, false
	}
	return raised, true
}

// write notes a protected write of the statement n.
func (c *checker) write(n *sqltree.Node, table *Table, kind string, top bool) {
	returning := false
	if n.HasField("returningList") {
		returning = len(n.List("returningList")) > 0
	}
	c.writes = append(c.writes, Write{Table: table, Kind: kind, TopLevel: top, Returning: returning})
	c.notePart(n)
}

// refuseForm refuses an UPDATE or DELETE whose target can't be pinned down.
func (c *checker) refuseForm(t target, table *Table, where *sqltree.Node, verb, from string) bool {
	switch {
	case where.Is("CurrentOfExpr"):
		c.report(violation(CurrentOf, t.at, "%s protected table %s by WHERE CURRENT OF cannot carry a guard: write by key", verb, quoted(table)).on(table))
		return true
	case t.shared:
		c.report(violation(AmbiguousTarget, t.at, "%s protected table %s: another item of %s is also called %q, so the guard's column may be its; give the target an alias of its own", verb, quoted(table), from, t.ref()).on(table))
		return true
	}
	return false
}

// comparesColumn reports whether a side of an operator is the column itself.
func comparesColumn(n *sqltree.Node, column string) bool {
	return endsIn(n.Get("lexpr"), column) || endsIn(n.Get("rexpr"), column)
}

func hasKind(n *sqltree.Node, kind string) bool {
	return n.Kind() == kind || slices.ContainsFunc(n.Kids, func(k *sqltree.Node) bool { return hasKind(k, kind) })
}

// exprSides reports whether n is an operator expression, and whether one of
// its sides is a plain column.
func exprSides(n *sqltree.Node) (column, ok bool) {
	if !n.Is("A_Expr") {
		return false, false
	}
	return n.Get("lexpr").Is("ColumnRef") || n.Get("rexpr").Is("ColumnRef"), true
}

// qualified writes the token column as the statement has to.
func (c *checker) qualified(t target, column string) string {
	if t.alone {
		return sqltext.QuoteIfNeeded(column)
	}
	return sqltext.QuoteIfNeeded(t.ref()) + "." + sqltext.QuoteIfNeeded(column)
}
