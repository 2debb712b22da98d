package check

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// A sequence that belongs to a column goes with it. Where tokens come from one, they would begin
// again, or no more be drawn, so its relation is neither dropped nor given another name.

// checkOwners refuses a change of structure by which a sequence that tokens come from is dropped or
// reset, or its relation gets another name than the catalog was read with.
func (c *checker) checkOwners(n *sqltree.Node) {
	if len(c.policy.closure.SequenceOwners) == 0 {
		return
	}
	for _, part := range changedParts(n) {
		if o := c.policy.ownerOf(part); o != nil {
			c.report(violation(ProtectedDDL, n, "%s would drop, reset or move the sequence %q that tokens come from, since it belongs to a column of %q: let tokens come from a sequence of their own, or change the table over a plain connection, as migrations do", statementName(n.Kind()), o.Sequence.String(), o.Name.String()))
			return
		}
	}
}

// changedPart is what a change of structure takes away, resets or renames: a relation, or a column
// of one.
type changedPart struct{ schema, relation, column string } // column "" for the relation

// changedParts returns what a statement changes in such a way.
func changedParts(n *sqltree.Node) (parts []changedPart) {
	add := func(relation *sqltree.Node, column string) {
		if relation != nil {
			parts = append(parts, changedPart{relation.Str("schemaname"), relation.Str("relname"), column})
		}
	}
	switch n.Kind() {
	case "DropStmt":
		if !droppedByName[n.Str("removeType")] {
			return nil
		}
		for _, object := range n.List("objects") {
			if name, ok := sqltree.Strings(object.List("items")); ok && len(name) > 0 {
				parts = append(parts, changedPart{strings.Join(name[max(0, len(name)-2):len(name)-1], ""), name[len(name)-1], ""})
			}
		}
	case "RenameStmt":
		add(n.Get("relation"), map[bool]string{true: n.Str("subname")}[n.Str("renameType") == "OBJECT_COLUMN"])
	case "AlterObjectSchemaStmt":
		add(n.Get("relation"), "")
	case "AlterTableStmt":
		for _, cmd := range n.List("cmds") {
			switch subtype := cmd.Str("subtype"); {
			case sequenceColumnCommands[subtype]:
				add(n.Get("relation"), cmd.Str("name"))
			case sequenceTableCommands[subtype]:
				add(n.Get("relation"), "")
			case subtype == "AT_AttachPartition":
				add(cmd.Get("def").Get("name"), "")
			}
		}
	}
	return parts
}

// sequenceColumnCommands are the parts of ALTER TABLE that drop a column's sequence or change it,
// and sequenceTableCommands those that reset it at a crash or have other relations take it along.
var (
	sequenceColumnCommands = setOf("AT_DropColumn", "AT_DropIdentity", "AT_SetIdentity", "AT_AlterColumnType")
	sequenceTableCommands  = setOf("AT_SetUnLogged", "AT_AddInherit", "AT_AddOf")
)

// ownerOf returns the owner of a sequence that a part may be, nil if it is none.
func (p *Policy) ownerOf(part changedPart) *SequenceOwner {
	owners := p.closure.SequenceOwners
	i := slices.IndexFunc(owners, func(o SequenceOwner) bool {
		return o.Name.Name == part.relation && o.IsIn(part.schema) && (part.column == "" || part.column == o.Column)
	})
	if i < 0 {
		return nil
	}
	return &owners[i]
}

// changesOwner reports whether code in SQL or PL/pgSQL names an owner, and has a word by which it
// could be dropped or changed.
func (p *Policy) changesOwner(b bodyTokens) string {
	if len(p.closure.SequenceOwners) == 0 {
		return ""
	}
	changes, named := false, ""
	for i := range b.tokens {
		word := b.word(i)
		changes = changes || word == "drop" || word == "alter"
		if slices.ContainsFunc(p.closure.SequenceOwners, func(o SequenceOwner) bool { return o.Name.Name == word }) {
			named = word
		}
	}
	if !changes || named == "" {
		return ""
	}
	return "a change of structure and " + strconv.Quote(named) + ", to which a sequence that tokens come from belongs"
}
