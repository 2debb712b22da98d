package check

import (
	"slices"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// findGiven notes the placeholders that a write has in the place of a token
// without comparing with it: a model's own field, written back as it was read.
func (f *fixer) findGiven(n *sqltree.Node) {
	t, ok := f.targetOf(n)
	if !ok {
		return
	}
	switch n.Kind() {
	case "UpdateStmt":
		f.findGivenSet(n, t, f.reader(n, "fromClause"))
	case "InsertStmt":
		position, why := tokenPosition(n.List("cols"), t.tables[0].TokenColumn)
		if source := n.Get("selectStmt"); why == "" && isPlainSource(source) {
			lists := source.List("valuesLists")
			if lists == nil {
				lists = []*sqltree.Node{source}
			}
			for _, list := range lists {
				f.findGivenItem(list, position)
			}
		}
		if conflict := n.Get("onConflictClause"); conflict != nil {
			f.findGivenSet(conflict, t, excludedReader(t.tables[0]))
		}
	}
}

func (f *fixer) findGivenSet(at *sqltree.Node, t target, read operandReader) {
	value, item, ok := raise(at.List("targetList"), t.tables[0].TokenColumn)
	if ok && item != nil && len(f.findGuards(t, t.tables[0], conjuncts(at.Get("whereClause")), read)) == 0 {
		f.noteGiven(value)
	}
}

// findGivenItem looks at one row of VALUES, or at the list of a SELECT.
func (f *fixer) findGivenItem(list *sqltree.Node, position int) {
	var items []*sqltree.Node
	if list.Is("SelectStmt") {
		items = list.List("targetList")
	} else {
		items = list.List("items")
	}
	if position >= len(items) {
		return
	}
	value := items[position]
	if value.Is("ResTarget") {
		value = value.Get("val")
	}
	f.noteGiven(value)
}

func (f *fixer) noteGiven(value *sqltree.Node) {
	for _, param := range paramsIn(value) {
		f.given[param.Offset()] = true
	}
}

// paramsIn returns the placeholders below n, or n itself.
func paramsIn(n *sqltree.Node) (out []*sqltree.Node) {
	if n.Is("ParamRef") {
		return []*sqltree.Node{n}
	}
	for _, k := range n.Kids {
		out = append(out, paramsIn(k)...)
	}
	return out
}

// take returns the placeholder of the token that takes the place of a value: the
// one that stands in it, or a new one. ok is false where a placeholder would be
// left out of the text, where it has a type by its other places or none at all.
func (f *fixer) take(value *sqltree.Node, table *Table) (token string, ok bool) {
	for _, param := range paramsIn(value) {
		number, _ := param.Number("number")
		spelled := operand{param: number}.spelled()
		if f.standsElsewhere(number) || token != "" && token != spelled {
			return "", false
		}
		token = spelled
		f.taken[number] = true
	}
	if token == "" {
		token = f.next(table)
	}
	return token, true
}

// standsElsewhere reports whether a placeholder stands outside values that give
// way to a token.
func (f *fixer) standsElsewhere(number int64) bool {
	known, ok := f.elsewhere[number]
	if !ok {
		_, known = slices.BinarySearch(f.left, number)
		known = known || slices.ContainsFunc(f.params[number], func(at int32) bool { return !f.given[int(at)] })
		f.elsewhere[number] = known // a row after the other asks for it
	}
	return known
}

// takeItem has an item of a list give way to the token.
func (f *fixer) takeItem(at, value *sqltree.Node, place [2]int, table *Table, cast string) bool {
	token, ok := f.take(value, table)
	if !ok {
		return false
	}
	if o, isToken := tokenOperand(value); isToken && o.param > 0 && o.cast == nil && o.spelled() == token {
		return true
	}
	item := f.placeholder(token + cast)
	if at.Is("ResTarget") {
		item = outputItem(token + cast)
	}
	if item == nil {
		return false
	}
	f.growth.of(at).instead = item
	f.Replace(place[0], place[1], token+cast)
	return true
}

// replaceSet has the value of a SET entry give way to the token.
func (f *fixer) replaceSet(item *sqltree.Node, c sqledit.Clauses, token string) bool {
	if item.Get("val").Is("MultiAssignRef") {
		return f.cannot("the token column is set among several, as (a, b) = ...: set it by itself")
	}
	for first := c.Target; first < c.SetEnd; first++ {
		if f.Tokens[first].Start != item.Offset() {
			continue
		}
		place := f.SplitList(first, c.SetEnd)[0]
		for i := first; i < place[1]; i++ {
			if f.IsAt(i, parser.EQUAL) {
				f.Replace(i+1, place[1], token)
				f.growth.of(item.Get("val")).instead = f.placeholder(token)
				return true
			}
		}
	}
	return false
}

// setItem is an entry of a SET list.
func setItem(column, value string) *sqltree.Node {
	if update := parseOne("UPDATE t SET " + sqltext.QuoteIfNeeded(column) + " = " + value); update != nil {
		return update.List("targetList")[0]
	}
	return nil
}
