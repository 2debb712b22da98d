package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// A statement may also run code that it names nowhere. What belongs to a relation
// (a view's query, a policy, an index) is found by the relation's name. What
// belongs to none (a cast, a type, a domain, an operator, an operator class) may run
// wherever values are converted, compared or sorted, and SQL has more ways to say
// that than could be told apart. While such code writes a protected table, no
// statement passes that could run it.

// UnseenCode is an object that belongs to no relation and runs a function which
// writes a protected table: an operator or its class, a cast, a type, a domain.
type UnseenCode struct {
	Kind     string // such as "operator"
	Object   string // its name, with what tells it from others
	Function Name
	Into     Name // the protected table, or one of the schema fencing
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
	if u := c.policy.unreadFunction(h.Function.Schema, h.Function.Name); u != nil {
		c.report(violation(IndirectWrite, n, "%s may run %s %s, which a text need not name, and whose function %s may write table %q: %s; %s", statementName(n.Kind()), h.Kind, h.Object, h.Function, u.Into, u.reason(), u.remedy()))
		return
	}
	remedy := "have that table's wall put up, "
	if h.Into.Schema == "fencing" {
		remedy = ""
	}
	c.report(violation(IndirectWrite, n, "%s may run %s %s, which a text need not name, and whose function %s writes table %q without a proof: %sdrop that object or have its function write nothing, use a plain connection, or, if the function carries a guard of its own, name it in driver.WithGuardedFunctions",
		statementName(n.Kind()), h.Kind, h.Object, h.Function, h.Into, remedy))
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
				c.reportUse(rel, w)
				return
			}
		}
	}
}

func (c *checker) reportUse(at *sqltree.Node, w Writer) {
	if u := w.Unread; u != nil {
		c.report(violation(IndirectWrite, at, "whatever uses %q may write protected table %q: its query, a policy, an index or the like calls %s, which %s; %s", w.Name, u.Into, u.signature(), u.Why, u.remedy()))
		return
	}
	c.report(violation(IndirectWrite, at, "whatever uses %q may run a function that writes protected table %q without a proof: its query, or that of a view below it, a policy, an index, statistics or a constraint calls one; use a plain connection, or make the function carry a guard and name it in driver.WithGuardedFunctions", w.Name, w.Into))
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
			c.reportUse(n, w)
			return
		}
	}
}

// maintainers are functions that run what indexes call, and name these at most.
var maintainers = []string{"brin_summarize_new_values", "brin_summarize_range", "bt_index_check", "bt_index_parent_check", "gin_clean_pending_list"}

// Maintainers returns the words by which a body of code may run what the indexes
// and statistics of tables that it doesn't name call.
func Maintainers() []string {
	return append([]string{"vacuum", "analyze", "analyse", "cluster", "reindex"}, maintainers...)
}

// changeWords begin statements that change a structure, and so may fire an event
// trigger.
var changeWords = []string{"create", "alter", "drop", "comment", "grant", "revoke", "refresh", "reindex", "security", "import", "reassign"}

// ChangeWords returns the words that begin statements which may fire an event
// trigger.
func ChangeWords() []string { return slices.Clone(changeWords) }

// checkMaintainer refuses a function that may use an index of a table that writes a
// protected one by this.
func (c *checker) checkMaintainer(n *sqltree.Node, name string) {
	if slices.Contains(maintainers, name) {
		c.checkAll(n)
	}
}
