package check

import (
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// proof is what a text's check has found in its tree. A plan needs it seldom, to
// ask after a write that changed no row or to put a token into a setting, so it
// is made again then: the tree is twenty times as large as the text.
type proof struct {
	*Plan
	stmts   []*sqltree.Node // the statements of the text
	parts   []provenPart    // its protected writes
	guards  []guard         // what guards the text's own write: in its WHERE, its DO UPDATE's, or a MERGE's actions
	root    *sqltree.Node   // the statement of the text, if it has any of the following
	changes []change        // the places where it changes rows whose token goes into a setting
	inserts []insertion     // the places where it inserts such rows
	bare    []*sqltree.Node // the guards whose operator has to be qualified
	casts   []*sqltree.Node // the casts of tokens whose type has to be
	lex     sqltext.Text
}

func (p *Plan) proof() *proof {
	if len(p.Violations) > 0 || len(p.writes) == 0 {
		return &proof{Plan: p}
	}
	c := new(workspace).check(p.policy, p.text)
	if c.text(); len(c.found) > 0 {
		return &proof{Plan: p}
	}
	root := c.root
	if root == nil && p.countsAnyMeant() {
		root = c.stmts[0].Get("stmt")
	}
	return &proof{p, c.stmts, c.parts, c.guards, root, c.changes, c.inserts, c.bare, c.casts, c.lex}
}
