package check

import (
	"fmt"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkMerge checks a MERGE. On a protected table every WHEN MATCHED action
// needs the guard in its own AND list, an UPDATE the raise and an INSERT the
// token. A guard in ON proves nothing: a newer row then is "not matched".
func checkMerge(c *checker, n *sqltree.Node, top bool) {
	t := c.target(n.Get("relation"), []*sqltree.Node{n.Get("sourceRelation")})
	whens := n.List("mergeWhenClauses")
	for _, when := range whens {
		switch when.Str("commandType") {
		case "CMD_UPDATE":
			c.checkIndirect(t, "UPDATE", when.List("targetList"), n, when)
		case "CMD_DELETE":
			c.checkIndirect(t, "DELETE", nil, n, when)
		case "CMD_INSERT":
			c.checkIndirect(t, "INSERT", nil, nil, nil)
		}
	}
	var guards []guard
	doesNothing, takesAll, inserts := false, false, false
	for _, table := range t.tables {
		c.write(n, table, "MERGE", top)
		if c.refuseForm(t, table, nil, "MERGE into", "USING") {
			continue
		}
		read := c.reader(n, "sourceRelation")
		for _, when := range whens {
			found := c.proveWhen(n, when, t, table, read)
			guards = append(guards, found...)
			conditions := len(conjuncts(when.Get("condition")))
			doesNothing = doesNothing || when.Str("commandType") == "CMD_NOTHING"
			takesAll = takesAll || when.Flag("matched") && len(found) > 0 && len(found) == conditions
			inserts = inserts || when.Str("commandType") == "CMD_INSERT" && conditions == 0
		}
	}
	c.keep(guards, top)
	if last := len(c.parts) - 1; last >= 0 && c.parts[last].node == n {
		c.parts[last].guardsAlone = takesAll && inserts && !doesNothing
	}
	c.walkFields(n, "relation")
}

// proveWhen proves one action of the MERGE n, and returns the guards that do.
func (c *checker) proveWhen(n, when *sqltree.Node, t target, table *Table, read operandReader) []guard {
	refuse := func(format string, args ...any) {
		v := violation(UnguardedMerge, t.at, "MERGE into protected table %s: "+format, append([]any{quoted(table)}, args...)...)
		op := map[Mode]string{Strict: "<", Lease: "<="}[table.Mode]
		column := sqltext.QuoteIfNeeded(table.TokenColumn)
		switch matched := fmt.Sprintf("WHEN MATCHED AND %s %s $n THEN ", c.qualified(t, table.TokenColumn), op); when.Str("commandType") {
		case "CMD_DELETE":
			v.Fix = matched + "DELETE"
		case "CMD_UPDATE":
			v.Fix = matched + "UPDATE SET ..., " + column + " = $n"
		default:
			v.Fix = fmt.Sprintf("WHEN NOT MATCHED THEN INSERT (..., %s) VALUES (..., $n)", column)
		}
		v.Fix += ", where $n is the token, bare or as $n::bigint"
		c.report(v.on(table))
	}
	switch kind := when.Str("commandType"); {
	case kind == "CMD_NOTHING":
		c.findGuards(t, table, conjuncts(when.Get("condition")), read) // its placeholders get the column's type
	case kind == "CMD_INSERT" && !when.Flag("matched"):
		position, why := tokenPosition(when.List("targetList"), table.TokenColumn)
		if why == "" {
			why = overriding(when, table)
		}
		if why != "" {
			refuse("its INSERT %s", why)
			return nil
		}
		token, ok := itemToken(when.List("values"), position, false, read)
		if !ok {
			refuse("its INSERT does not have the token itself at the place of %s", table.TokenColumn)
			return nil
		}
		c.needToken(table, token)
		c.inserted(table, token)
	case (kind == "CMD_UPDATE" || kind == "CMD_DELETE") && when.Flag("matched"):
		guards := c.findGuards(t, table, conjuncts(when.Get("condition")), read)
		if len(guards) == 0 {
			refuse("an action WHEN MATCHED has no guard in its own condition that compares %s, so named, with the token", c.qualified(t, table.TokenColumn))
			return nil
		}
		if kind == "CMD_DELETE" {
			c.changes = append(c.changes, change{n, when, table, guards})
			return c.proveAll(table, guards)
		}
		if table.Attested || table.Moves {
			c.changes = append(c.changes, change{n, when, table, guards})
		}
		if token, ok := c.findRaise(when.List("targetList"), t, table, "MERGE into", guards[0].operand, read); ok {
			return c.prove(table, guards, token)
		}
	default:
		refuse("it has an action that cannot be guarded")
	}
	return nil
}
