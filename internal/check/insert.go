package check

import (
	"fmt"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkInsert checks an INSERT. On a protected table it is provable if its
// column list names the token column, and every row has the token there; an
// ON CONFLICT DO UPDATE needs a guard of its own.
func checkInsert(c *checker, n *sqltree.Node, top bool) {
	t := c.target(n.Get("relation"), []*sqltree.Node{nil}) // EXCLUDED stands beside the target
	c.checkIndirect(t, "INSERT", nil, nil, nil)
	conflict := n.Get("onConflictClause")
	updates := conflict != nil && conflict.Str("action") == "ONCONFLICT_UPDATE"
	if updates {
		c.checkIndirect(t, "UPDATE", conflict.List("targetList"), n, conflict)
	}
	for _, table := range t.tables {
		c.write(n, table, "INSERT", top)
		rows, _ := c.insertedTokens(n, t, table)
		for _, row := range rows {
			c.needToken(table, row)
			c.inserted(table, row)
		}
		if updates {
			c.proveUpsert(conflict, t, table, top)
		}
	}
	c.walkFields(n, "relation")
}

// insertedTokens returns what every row of an INSERT has in the token column.
func (c *checker) insertedTokens(n *sqltree.Node, t target, table *Table) ([]operand, bool) {
	position, why := tokenPosition(n.List("cols"), table.TokenColumn)
	switch {
	case why != "":
	case overriding(n, table) != "":
		why = overriding(n, table)
	default:
		rows, ok := c.sourceTokens(n.Get("selectStmt"), position, false, n.Get("withClause"))
		if ok {
			return rows, true
		}
		why = "does not have the token itself at the place of " + table.TokenColumn + " in every row"
	}
	v := violation(UnguardedInsert, t.at, "INSERT into protected table %s %s", quoted(table), why)
	v.Fix = fmt.Sprintf("name %s in the column list, and put the token's placeholder at its place in every row ($n::bigint in a SELECT with UNION)", sqltext.QuoteIfNeeded(table.TokenColumn))
	c.report(v.on(table))
	return nil, false
}

// overriding says why the OVERRIDING of an INSERT may leave the token out, "" if it
// can't: OVERRIDING USER VALUE has an identity column take its own value.
func overriding(n *sqltree.Node, table *Table) string {
	switch n.Str("override") {
	case "", "OVERRIDING_NOT_SET", "OVERRIDING_SYSTEM_VALUE":
		return ""
	}
	return "uses OVERRIDING USER VALUE, by which " + table.TokenColumn + " would get a value of its own if it were an identity column: leave that out, or write OVERRIDING SYSTEM VALUE"
}

// tokenPosition finds the token column in a column list, -1 if it isn't there.
func tokenPosition(cols []*sqltree.Node, column string) (position int, why string) {
	if len(cols) == 0 {
		return 0, "has no column list, so the place of " + column + " is not certain"
	}
	position = -1
	for i, col := range cols {
		if col.Str("name") != column {
			continue
		}
		if position >= 0 || len(col.List("indirection")) > 0 {
			return 0, "names " + column + " in a way that cannot be followed"
		}
		position = i
	}
	if position < 0 {
		return -1, "does not set " + column
	}
	return position, ""
}

// sourceTokens returns what every row of an INSERT's source has at a position.
// In an arm of a set operation a bare placeholder would become text.
func (c *checker) sourceTokens(source *sqltree.Node, position int, arm bool, with *sqltree.Node) ([]operand, bool) {
	if !source.Is("SelectStmt") {
		return nil, false // DEFAULT VALUES
	}
	if source.Str("op") != "SETOP_NONE" {
		left, ok := c.sourceTokens(source.Get("larg"), position, true, nil)
		if !ok {
			return nil, false
		}
		right, ok := c.sourceTokens(source.Get("rarg"), position, true, nil)
		return append(left, right...), ok
	}
	rows := source.List("valuesLists")
	if rows == nil {
		o, ok := itemToken(source.List("targetList"), position, arm, c.readerWith(source, "fromClause", with))
		return []operand{o}, ok
	}
	tokens := make([]operand, 0, len(rows))
	for _, row := range rows {
		o, ok := itemToken(row.List("items"), position, arm, tokenOperand)
		if !ok {
			return nil, false
		}
		tokens = append(tokens, o)
	}
	return tokens, true
}

// itemToken reads one output list at a position. Nothing up to it may stand
// for several columns, or the position would not be the column's.
func itemToken(items []*sqltree.Node, position int, arm bool, read operandReader) (operand, bool) {
	if position >= len(items) {
		return operand{}, false
	}
	for i, item := range items {
		if item.Is("ResTarget") {
			item = item.Get("val")
		}
		if expands(item) {
			return operand{}, false
		}
		if i == position {
			o, ok := read(item)
			return o, ok && (!arm || o.param == 0 || item.Is("TypeCast"))
		}
	}
	return operand{}, false
}

// proveUpsert proves the action of ON CONFLICT DO UPDATE: its own WHERE has
// the guard, against EXCLUDED's token or the token, and it sets the same. The
// WHERE of the inference (ON CONFLICT (id) WHERE ...) guards nothing.
func (c *checker) proveUpsert(conflict *sqltree.Node, t target, table *Table, top bool) {
	where := conflict.Get("whereClause")
	if t.ref() == "excluded" {
		c.report(violation(AmbiguousTarget, t.at, "INSERT into protected table %s: the target is called excluded, like the row that was proposed; give it an alias", quoted(table)).on(table))
		return
	}
	read, trigger := tokenOperand, c.policy.changesExcluded(table)
	if trigger == nil {
		read = excludedReader(table)
	}
	guards := c.findGuards(t, table, conjuncts(where), read)
	if len(guards) == 0 {
		v := c.noGuard(conflict, t, table, "ON CONFLICT DO UPDATE of", UnguardedUpsert, read)
		token := "EXCLUDED." + sqltext.QuoteIfNeeded(table.TokenColumn)
		if trigger != nil {
			if where != nil && namesExcluded(where, table.TokenColumn) {
				v.Message = fmt.Sprintf("ON CONFLICT DO UPDATE of protected table %s compares %s with EXCLUDED, where trigger %q, whose function %s may change it, has been fired before",
					quoted(table), table.TokenColumn, trigger.Trigger, trigger.Function)
			}
			token = "$n"
		}
		v.Fix = c.upsertAdvice(conflict, t, table, token, v.replaces)
		c.report(v)
		return
	}
	c.parts[len(c.parts)-1].guardsAlone = len(conjuncts(where)) == len(guards)
	if token, ok := c.findRaise(conflict.List("targetList"), t, table, "ON CONFLICT DO UPDATE of", guards[0].operand, read); ok {
		c.keep(c.prove(table, guards, token), top)
	}
}

// excludedReader reads EXCLUDED's token column as the token: it is what the
// INSERT carries, unless a trigger has changed it.
func excludedReader(table *Table) operandReader {
	return func(n *sqltree.Node) (operand, bool) {
		if isExcluded(n, table.TokenColumn) {
			return operand{name: "EXCLUDED." + sqltext.QuoteIfNeeded(table.TokenColumn), at: n}, true
		}
		return tokenOperand(n)
	}
}

func isExcluded(n *sqltree.Node, column string) bool {
	if !n.Is("ColumnRef") {
		return false
	}
	parts, ok := sqltree.Strings(n.List("fields"))
	return ok && len(parts) == 2 && parts[0] == "excluded" && parts[1] == column
}
