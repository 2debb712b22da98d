package check

import (
	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// mergeAction is an action of a MERGE, and where it stands.
type mergeAction struct {
	*sqltree.Node
	at sqledit.Clauses // Where is the AND of its condition, End its THEN, and SetEnd what ends it
}

// actionsOf returns the actions of a MERGE, nil if they aren't found.
func (f *fixer) actionsOf(n *sqltree.Node) []mergeAction {
	whens, target := n.List("mergeWhenClauses"), n.Get("relation").Offset()
	words, conditions, thens := f.ActionWords(target, parser.WHEN), f.ActionConditions(target), f.ActionWords(target, parser.THEN)
	if len(words) != len(whens) || len(thens) != len(whens) {
		return nil
	}
	actions := make([]mergeAction, len(whens))
	for i, when := range whens {
		end := f.statementEnd(thens[i])
		if i+1 < len(words) {
			end = words[i+1]
		}
		if end <= thens[i] {
			return nil
		}
		actions[i] = mergeAction{when, sqledit.Clauses{Target: thens[i], SetEnd: end, Where: conditions[i], End: thens[i], Source: -1}}
	}
	return actions
}

// changesMatched reports whether an action of a MERGE changes a row that is there.
func changesMatched(when *sqltree.Node) bool {
	kind := when.Str("commandType")
	return when.Flag("matched") && (kind == "CMD_UPDATE" || kind == "CMD_DELETE")
}

// guardMerge adds the guard to each action of a MERGE for rows that are there, and the
// token to each that inserts. A row that one of the guards leaves out comes to the actions
// behind, as any row that a condition leaves out does: it has a newer token, so that their
// guards leave it out as well, and none changes it.
func (f *fixer) guardMerge(n *sqltree.Node, t target) bool {
	if f.takeover && len(t.namesakes) > 0 {
		return f.cannot("the table's bare name may stand for another one, and a MERGE has no place for a condition that holds it to this one: write the schema")
	}
	actions := f.actionsOf(n)
	if actions == nil {
		return f.cannot("its actions aren't found in its text")
	}
	read := f.reader(n, "sourceRelation")
	for _, action := range actions {
		switch kind := action.Str("commandType"); {
		case kind == "CMD_NOTHING":
		case kind == "CMD_UPDATE" && changesMatched(action.Node):
			if !f.guardUpdate(action.Node, t, action.at, read, nil) {
				return false
			}
		case kind == "CMD_DELETE" && changesMatched(action.Node):
			if len(f.findGuards(t, t.tables[0], conjuncts(action.Get("condition")), read)) == 0 && !f.guardWhere(action.Node, t, action.at, f.next(t.tables[0])) {
				return false
			}
		case kind == "CMD_INSERT" && !action.Flag("matched"):
			if !f.insertByMerge(action, t.tables[0], read) {
				return false
			}
		default:
			return f.cannot("it has an action that no guard can be added to")
		}
	}
	return true
}

// insertByMerge adds the token to an action of a MERGE that inserts a row.
func (f *fixer) insertByMerge(action mergeAction, table *Table, read operandReader) bool {
	cols, values := action.List("targetList"), action.List("values")
	position, why := tokenPosition(cols, table.TokenColumn)
	switch {
	case len(cols) == 0:
		return f.cannot("an action that inserts needs a column list to be given the token")
	case why != "" && position >= 0:
		return f.cannot("its column list " + why)
	case len(values) != len(cols):
		return f.cannot("its INSERT hasn't one value for each column that is named")
	case position >= 0 && !f.takeover:
		_, isToken := itemToken(values, position, false, read)
		return isToken
	}
	open := action.at.End + 2 // past THEN and INSERT
	end := f.FindClosing(open)
	if !f.IsAt(open, parser.LPAREN) || end < 0 {
		return false
	}
	row := end + 1
	for row < action.at.SetEnd && !f.IsAt(row, parser.LPAREN) { // OVERRIDING SYSTEM VALUE VALUES
		row++
	}
	rowEnd := f.FindClosing(row)
	if rowEnd < 0 || rowEnd >= action.at.SetEnd {
		return false
	}
	if position < 0 {
		return f.addToAction(action.Node, table, end, rowEnd)
	}
	places := f.SplitList(row+1, rowEnd)
	return len(places) == len(values) && f.takeItem(values[position], values[position], places[position], table, "")
}

// addToAction ends the columns and the values of a MERGE's INSERT with the token.
func (f *fixer) addToAction(when *sqltree.Node, table *Table, columns, values int) bool {
	name, token := sqltext.QuoteIfNeeded(table.TokenColumn), f.next(table)
	column, value := parseOne("INSERT INTO t ("+name+") VALUES (1)"), f.expression(token)
	if column == nil || value == nil {
		return false
	}
	f.Insert(f.EndBefore(columns), ", "+name)
	f.growth.add(when, "targetList", column.List("cols")...)
	f.Insert(f.EndBefore(values), ", "+token)
	f.growth.add(when, "values", value)
	return true
}

// findGivenByMerge is findGiven for a MERGE.
func (f *fixer) findGivenByMerge(n *sqltree.Node, t target) {
	read := f.reader(n, "sourceRelation")
	for _, when := range n.List("mergeWhenClauses") {
		switch {
		case when.Str("commandType") == "CMD_UPDATE":
			f.findGivenSet(when, t, read)
		case when.Str("commandType") == "CMD_INSERT":
			position, why := tokenPosition(when.List("targetList"), t.tables[0].TokenColumn)
			if values := when.List("values"); why == "" && position < len(values) {
				f.noteGiven(values[position])
			}
		}
	}
}

// conditionOf returns the condition of a write, or of an action of a MERGE or an upsert.
func conditionOf(at *sqltree.Node) *sqltree.Node {
	if at.Is("MergeWhenClause") {
		return at.Get("condition")
	}
	return at.Get("whereClause")
}
