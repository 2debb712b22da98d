package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// checkIndirect refuses a write that reaches a protected table by another way
// than its name: through a view, a foreign key, a trigger or a rule. sets are
// the columns an UPDATE assigns.
func (c *checker) checkIndirect(t target, event string, sets []*sqltree.Node) {
	c.checkUse(t.at)
	for _, r := range t.relations {
		if r.view {
			c.reportView(t, event, r)
		}
		for _, w := range r.writers {
			if slices.Contains(w.Events, strings.TrimSuffix(event, " CASCADE")) {
				c.reportWriter(t, event, w)
			}
		}
		for _, rule := range r.replaced {
			if rule.Event == event {
				v := violation(IndirectWrite, t.at, "%s of protected table %q is replaced by its rule %q, which is DO INSTEAD, so something else runs than what is proved, or nothing: drop the rule over a plain connection, and do in the statement or in a trigger what it did", event, r.Name, rule.Rule)
				if len(t.tables) > 0 {
					v.on(t.tables[0])
				}
				c.report(v)
			}
		}
		for _, trigger := range r.triggers {
			if slices.Contains(trigger.Events, event) {
				c.reportTrigger(t, event, r, trigger)
			}
		}
		for _, f := range r.cascades {
			if !f.ChildWall && f.reached(event, sets) {
				v := violation(CascadeWrite, t.at, "%s on %q cascades into protected table %q, whose rows then change without a guard: delete or change those first with a guard, or install the wall on %q, which judges the cascade", event, r.Name, f.Into, f.Into)
				v.Table = f.Into.String()
				c.report(v)
			}
		}
	}
}

// reportWriter refuses a write that runs code which writes a protected table.
func (c *checker) reportWriter(t target, event string, w Writer) {
	if u := w.Unread; u != nil {
		c.report(violation(IndirectWrite, t.at, "%s on %q runs a trigger, rule or default that may write protected table %q: %s, which it calls, %s; %s", event, w.Name, u.Into, u.signature(), u.Why, u.remedy()))
		return
	}
	c.report(violation(IndirectWrite, t.at, "%s on %q runs a trigger or rule that writes protected table %q without a proof: use a plain connection, or make it carry a guard and name its function in driver.WithGuardedFunctions", event, w.Name, w.Into))
}

// reportView refuses a write through a view, or a foreign table that is like one.
func (c *checker) reportView(t target, event string, r *relation) {
	if r.foreign {
		c.report(violation(ViewWrite, t.at, "%s through foreign table %q, whose options name a protected table or what leads to one, cannot be proved: write the table itself, or use a plain connection if the foreign table leads elsewhere", event, r.Name))
		return
	}
	c.report(violation(ViewWrite, t.at, "%s through view %q over a protected table cannot be proved: the view's columns may be others than the table's; write the table itself", event, r.Name))
}

// reportTrigger refuses a write whose token a trigger may change: what was proved
// would not be what is written.
func (c *checker) reportTrigger(t target, event string, r *relation, trigger TokenTrigger) {
	v := violation(TokenChanged, t.at, "%s of protected table %q fires trigger %q, whose function %s may change the token that is written: let the trigger set other columns only and return NEW, install the wall on the table, which catches it if the trigger sorts after \"!fencing_mark\", or, if the function cannot be read but never changes the token, name it in driver.WithGuardedFunctions",
		event, r.Name, trigger.Trigger, trigger.Function)
	if len(t.tables) > 0 {
		v.on(t.tables[0])
	}
	c.report(v)
}

// checkRefresh refuses to refresh a view whose query runs what writes a
// protected table.
func checkRefresh(c *checker, n *sqltree.Node, _ bool) {
	c.checkUse(n.Get("relation"))
	c.checkWriters(n.Get("relation"), "REFRESH")
}

// checkLike refuses to make a table like one whose columns, defaults or checks
// write a protected table: it would have them, too.
func (c *checker) checkLike(n *sqltree.Node) {
	for _, element := range n.List("tableElts") {
		if element.Is("TableLikeClause") {
			c.checkUse(element.Get("relation"))
			c.checkWriters(element.Get("relation"), "LIKE")
		}
	}
}

func (c *checker) checkWriters(rel *sqltree.Node, event string) {
	for _, r := range c.policy.lookup(rel.Str("schemaname"), rel.Str("relname")) {
		for _, w := range r.writers {
			if slices.Contains(w.Events, event) {
				c.report(violation(IndirectWrite, rel, "%s of %q runs code that writes protected table %q without a proof, at once or later: use a plain connection", event, r.Name, w.Into))
			}
		}
	}
}

// reached reports whether an event sets a cascade off.
func (f Cascade) reached(event string, sets []*sqltree.Node) bool {
	switch event {
	case "DELETE":
		return f.Delete
	case "TRUNCATE CASCADE":
		return f.Truncate
	case "UPDATE":
		return f.Update || slices.ContainsFunc(sets, func(set *sqltree.Node) bool { return slices.Contains(f.UpdateOf, set.Str("name")) })
	}
	return false
}
