package check

import (
	"fmt"
	"slices"
	"strings"

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
		v := c.noGuard(where, t, table, "UPDATE on", UnguardedUpdate)
		if _, at, _ := raise(n.List("targetList"), table.TokenColumn); at != nil {
			v.Fix = strings.Replace(v.Fix, "add to SET", "change in SET", 1)
		}
		c.report(v)
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
		v.Fix = "add to SET: " + raiseTo(table, token)
		c.report(v.on(table))
		return operand{}, false
	}
	raised, isToken := read(value)
	if !ok || !isToken {
		v := violation(RaiseValue, at, "%s protected table %s sets %s to something other than the token: write it once, as the token's placeholder or literal itself, bare or cast by ::bigint", verb, quoted(table), table.TokenColumn)
		v.Fix = "change in SET: " + raiseTo(table, token)
		c.report(v.on(table))
		return operand{}, false
	}
	return raised, true
}

// raiseTo writes what SET has to have. A literal is not repeated: it is somebody's value.
func raiseTo(table *Table, token operand) string {
	column := sqltext.QuoteIfNeeded(table.TokenColumn)
	if token.literal > 0 {
		return column + " = ?, where ? stands for the literal that " + table.TokenColumn + " is compared with"
	}
	return column + " = " + token.spelled()
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

// noGuard explains why a condition has no guard: nothing compares the token
// column, or something does in a way that proves nothing.
func (c *checker) noGuard(where *sqltree.Node, t target, table *Table, verb string, none Rule) *Violation {
	column, op := table.TokenColumn, "<"
	if table.Mode == Lease {
		op = "<="
	}
	for _, n := range conjuncts(where) {
		if !mentions(n, column) {
			continue
		}
		rule, why := GuardPosition, "where it does not decide alone"
		if left, isOp := exprSides(n); isOp && (comparesColumn(n, column) || !hasKind(n, "SubLink")) {
			rule, why = GuardComparison, "in a way that does not prove "+column+" "+op+" token"
			if !t.alone && left && !t.isColumn(n.Get("lexpr"), column) && !t.isColumn(n.Get("rexpr"), column) {
				rule, why = AmbiguousTarget, "without naming the table it belongs to, or on another table"
			}
			if table.Mode == Lease && c.policy.closure.HasComparisons && n.Str("kind") == "AEXPR_BETWEEN" && t.isColumn(n.Get("lexpr"), column) {
				why = "by BETWEEN, whose operators are found by search_path, and another than the built-in may come first there: the database has one of its own for integers, or the server (before PostgreSQL 18) does not report that setting"
			}
		}
		v := violation(rule, n, "%s protected table %s compares %s %s", verb, quoted(table), column, why)
		if v.offset < 0 {
			v.offset = t.at.Offset()
		}
		v.Fix = fmt.Sprintf("add to WHERE, joined by AND: %s %s $n, where $n is the token, bare or as $n::bigint", c.qualified(t, column), op)
		if strings.HasPrefix(why, "by BETWEEN") {
			v.Fix = fmt.Sprintf("write %s %s $n instead of BETWEEN, where $n is the token, bare or as $n::bigint", c.qualified(t, column), op)
		}
		if none != UnguardedDelete {
			v.Fix = fmt.Sprintf("set %s = $n; %s", sqltext.QuoteIfNeeded(column), v.Fix)
		}
		return v.on(table)
	}
	v := violation(none, t.at, "%s protected table %s has no %s guard", verb, quoted(table), column)
	v.Fix = fmt.Sprintf("add to WHERE: AND %s %s $n", c.qualified(t, column), op)
	if none != UnguardedDelete {
		v.Fix = fmt.Sprintf("add to SET: %s = $n; %s", sqltext.QuoteIfNeeded(column), v.Fix)
	}
	v.Fix += ", where $n is the token (tokenctx.Arg)"
	return v.on(table)
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
