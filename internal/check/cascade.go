package check

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fencerow/fencerow/internal/sqltree"
)

// What a foreign key does by itself to a row of a walled table, the wall judges by the
// token in the setting of [SettingName]. The text of the statement has no place for that
// token, so the conditions of what it changes get a call that sets it.

// cascade is a place where a text changes rows on which the foreign keys of a protected
// table depend.
type cascade struct {
	stmt  *sqltree.Node // the UPDATE, DELETE, INSERT or MERGE
	at    *sqltree.Node // what has the condition: the statement, its ON CONFLICT, or an action of the MERGE
	table *Table        // the protected table, which has its wall
}

// carrying is the text that brings tokens along, made when it is asked for.
type carrying struct {
	once  sync.Once
	text  string
	given int64 // the placeholders that the text of the plan has
	ok    bool
}

// noteCascade notes that what a statement changes is handed on to a table with its wall.
func (c *checker) noteCascade(f Cascade, stmt, at *sqltree.Node) {
	if stmt == nil || c.stored {
		return
	}
	if table, err := c.policy.protected(f.Into); err == nil {
		c.cascades = append(c.cascades, cascade{stmt, at, table})
	}
}

// carriedBy returns a table for each resource whose token a text is to bring along, nil
// if it can bring none.
func (c *checker) carriedBy() (tables []*Table) {
	if len(c.stmts) != 1 || !carriesTokens[c.stmts[0].Get("stmt").Kind()] {
		return nil
	}
	for _, f := range c.cascades {
		if indexOfResource(tables, f.table) < 0 {
			tables = append(tables, f.table)
		}
	}
	return tables
}

// carriesTokens are the statements to which placeholders can be added.
var carriesTokens = setOf("SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt")

func indexOfResource(tables []*Table, t *Table) int {
	return slices.IndexFunc(tables, func(x *Table) bool { return x.Resource == t.Resource })
}

// Carries returns tables into which the foreign keys of what the text changes cascade, one
// for each resource. They have their walls, which judge that by the tokens of the resources.
func (p *Plan) Carries() []*Table { return p.carries }

// Carrying returns the text to be sent in the place of that of [Plan.Attested] where the
// tokens of the tables of [Plan.Carries] are known. It has a placeholder more for each of
// these, in the same order, after the given number of others. NULL for one of them leaves
// the setting as it is. It isn't ok if nothing shows that the calls are all that was added.
func (p *Plan) Carrying() (text string, given int64, ok bool) {
	if len(p.carries) == 0 {
		return "", 0, false
	}
	p.carry.once.Do(func() { p.carry.text, p.carry.given, p.carry.ok = p.proof().carry() })
	return p.carry.text, p.carry.given, p.carry.ok
}

func (p *proof) carry() (text string, given int64, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // it is sent without the tokens
		}
	}()
	if len(p.cascades) == 0 {
		return "", 0, false
	}
	given = highestPlaceholder(p.root)
	calls := p.settingCalls()
	for at, settings := range p.carriedSettings(given) {
		call := "pg_catalog.concat(" + strings.Join(settings, ", ") + ") IS NOT NULL"
		if own, isThere := calls[at]; isThere {
			call = "(" + own + " AND " + call + ")"
		}
		calls[at] = call
	}
	text, _, ok = p.sentWith(calls, p.Counts().Hidden() > 0)
	return text, given, ok
}

// carriedSettings returns the calls that set the tokens, for each place with a condition.
func (p *proof) carriedSettings(given int64) map[*sqltree.Node][]string {
	out := make(map[*sqltree.Node][]string)
	for _, f := range p.cascades {
		name := SettingName(f.table.Resource)
		call := fmt.Sprintf("pg_catalog.set_config('%s', COALESCE($%d::pg_catalog.int8::pg_catalog.text, pg_catalog.current_setting('%[1]s', true)), true)",
			name, given+int64(indexOfResource(p.carries, f.table))+1)
		if !slices.Contains(out[f.at], call) {
			out[f.at] = append(out[f.at], call)
		}
	}
	return out
}

func highestPlaceholder(n *sqltree.Node) (highest int64) {
	if n.Is("ParamRef") {
		highest, _ = n.Number("number")
	}
	for _, k := range n.Kids {
		highest = max(highest, highestPlaceholder(k))
	}
	return highest
}

// addCarried adds a call to the condition of what cascades, or a condition with the call.
func (f *fixer) addCarried(d cascade, call string) bool {
	if d.at.Is("MergeWhenClause") {
		condition := d.at.Get("condition")
		end, ok := f.conditionEnd(change{stmt: d.stmt, at: d.at})
		if !ok || condition.Is("BoolExpr") && condition.Str("boolop") == "OR_EXPR" {
			return false
		}
		f.Insert(f.EndBefore(end), " AND "+call)
		return true
	}
	c, ok := f.clausesOf(d.stmt)
	return ok && f.restrict(d.at, c, call)
}
