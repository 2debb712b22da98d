package rewrite

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// A statement may also run code that it names nowhere. What belongs to a relation
// (a view's query, a policy, an index) is found by the relation's name. What
// nothing in a text shows, such as the functions of an operator class, which run
// wherever values are sorted or grouped, has no statement pass that could run it.

// UnseenCode is an object that runs a function which writes a protected table,
// without a statement that shows it: an operator family, an implicit cast, the
// sending function of a type.
type UnseenCode struct {
	Kind     string // such as "operator family"
	Object   string // its name, with what tells it from others
	Function Name
	Into     Name // the protected table
}

// eventRead stands among a writer's events if its code runs whenever it is used.
const eventRead = "READ"

// unseeing are the kinds of statement that run no such code: they work out no
// values, and read none.
var unseeing = setOf("TransactionStmt", "VariableSetStmt", "VariableShowStmt", "ListenStmt", "UnlistenStmt", "NotifyStmt", "ClosePortalStmt", "LockStmt",
	"DeallocateStmt", "DiscardStmt", "CheckPointStmt")

// checkUnseen refuses a statement that may run code that no text shows.
func (c *checker) checkUnseen(n *sqltree.Node) {
	if len(c.policy.closure.Unseen) == 0 || unseeing[n.Kind()] {
		return
	}
	h := c.policy.closure.Unseen[0]
	c.report(violation(IndirectWrite, n, "%s may run %s %s, which no text shows, and whose function %q writes protected table %q without a proof: drop that object or have its function write nothing, use a plain connection, or, if the function carries a guard of its own, name it in driver.WithGuardedFunctions",
		statementName(n.Kind()), h.Kind, h.Object, h.Function, h.Into))
}

// checkUse refuses to read a relation, or to use it in whatever way, that writes a
// protected table by this.
func (c *checker) checkUse(rel *sqltree.Node) {
	if !c.policy.hasReaders || rel == nil {
		return
	}
	for _, r := range c.policy.lookup(rel.Str("schemaname"), rel.Str("relname")) {
		for _, w := range r.writers {
			if slices.Contains(w.Events, eventRead) {
				c.reportUse(rel, r.Name, w.Into)
				return
			}
		}
	}
}

func (c *checker) reportUse(at *sqltree.Node, name, into Name) {
	c.report(violation(IndirectWrite, at, "whatever uses %q may run a function that writes protected table %q without a proof: its query, or that of a view below it, a policy, an index, statistics or a constraint calls one; use a plain connection, or make the function carry a guard and name it in driver.WithGuardedFunctions%s", name, into, c.policy.untoldHint()))
}

// checkMaintenance checks VACUUM, ANALYZE, CLUSTER and REINDEX, which run what
// indexes and statistics call: of the tables that they name, or of all.
func checkMaintenance(c *checker, n *sqltree.Node, _ bool) {
	var tables []*sqltree.Node
	switch n.Kind() {
	case "VacuumStmt":
		for _, r := range n.List("rels") {
			tables = append(tables, r.Get("relation"))
		}
	case "ReindexStmt":
		if n.Str("kind") == "REINDEX_OBJECT_TABLE" {
			tables = []*sqltree.Node{n.Get("relation")}
		}
	case "ClusterStmt":
		if rel := n.Get("relation"); rel != nil {
			tables = []*sqltree.Node{rel}
		}
	}
	for _, rel := range tables {
		c.checkUse(rel)
	}
	if len(tables) == 0 {
		c.checkAll(n)
	}
}

// checkAll refuses what may use any relation, without naming it, if there is one
// that writes a protected table by this.
func (c *checker) checkAll(n *sqltree.Node) {
	for _, w := range c.policy.closure.Writers {
		if slices.Contains(w.Events, eventRead) {
			c.reportUse(n, w.Name, w.Into)
			return
		}
	}
}

// maintainers are functions that run what indexes call, and name these at most.
var maintainers = []string{"brin_summarize_new_values", "brin_summarize_range", "bt_index_check", "bt_index_parent_check", "gin_clean_pending_list"}

// rowMakers are functions and an operator that make rows of a type that is told by
// a value, so that the text need not name it.
var rowMakers = []string{"json_populate_record", "json_populate_recordset", "jsonb_populate_record", "jsonb_populate_recordset", "populate_record", "#="}

// Maintainers returns the words by which a body of code may run what the indexes
// and statistics of tables that it doesn't name call.
func Maintainers() []string {
	return append([]string{"vacuum", "analyze", "analyse", "cluster", "reindex"}, maintainers...)
}

// RowMakers returns the functions and operators that make a row of a type which
// they aren't told by its name.
func RowMakers() []string { return slices.Clone(rowMakers) }

// checkUnnamedTypes refuses a function or operator that may convert to a type which
// writes a protected table, or use an index of a table that does.
func (c *checker) checkUnnamedTypes(n *sqltree.Node, name string) {
	types := c.policy.closure.Types
	switch {
	case len(types) > 0 && slices.Contains(rowMakers, name):
		c.report(violation(UnsafeFunction, n, "%s may make a value of type %q, whose conversion writes a protected table: use a plain connection", name, types[0]))
	case slices.Contains(maintainers, name):
		c.checkAll(n)
	}
}
