package check

import (
	"sync"

	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// workspace is the memory of a check, which is used again for others.
type workspace struct {
	sqltree.Arena
	checker checker // that reads the tree
}

// workspaces are those that no check is using.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// check returns a checker of a text.
func (w *workspace) check(p *Policy, sql string) *checker {
	c := &w.checker
	c.policy, c.sql, c.arena, c.lex = p, sql, &w.Arena, sqltext.Text{SQL: sql}
	c.params, c.stmts, c.madeBy = c.room[:0], nil, nil
	return c
}

// release gives the memory back. Nothing may hold on to a node by then.
func (w *workspace) release() {
	if w.Arena.Release() {
		w.checker = checker{}
		workspaces.Put(w)
	}
}
