package check

import (
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/internal/wordsearch"
)

// rewrittenLong is rewritten for a long text, from its abridged form. The text that
// is sent is parsed and checked as a whole, and its tree compared with that of the
// abridged one, so only the text that was given isn't. Where the text stays as it is
// but for its arguments, nothing but those is returned: as it has none, if tried
// says that there is nothing more to be tried.
func (p *Policy) rewrittenLong(sql string) (out *Plan, args *rewriting, tried bool) {
	if len(sql) > maxRewritten || !slices.ContainsFunc(p.tables, func(t *Table) bool { return t.Rewrite }) {
		return nil, nil, false
	}
	defer func() {
		if recover() != nil {
			out, args, tried = nil, nil, false
		}
	}()
	short := abridge(sql)
	if short == nil {
		return nil, nil, false
	}
	a := workspaces.Get().(*workspace)
	defer a.release()
	c := a.check(p, short.text)
	plan := c.plan()
	if !plan.mayBeRewritten() {
		return nil, nil, false
	}
	f := p.fixer(c)
	if f == nil || !takesPlaceholders[f.root.Kind()] || f.sharesName() || !f.lengthen(short) {
		return nil, nil, false
	}
	how := &rewriting{text: sql, given: f.highest, added: len(f.added), taken: f.taken}
	switch {
	case len(f.Edits) == 0 && len(f.taken) == 0:
		return nil, nil, true
	case len(f.Edits) == 0:
		return nil, how, true
	case len(plan.Violations) == 0: // the plan of the text as it was given may be needed, too
		how.later = &latePlan{policy: p, text: sql}
	}
	if out = f.plan(); len(out.Violations) > 0 {
		return nil, nil, true
	}
	out.rewriting, out.direct = how, false
	return out, nil, true
}

// lengthen guards the abridged text, and makes the edits those of the long one. It
// reports whether it could.
func (f *fixer) lengthen(short *abridged) bool {
	for _, n := range f.writes {
		if !f.readRowTokens(n, short) {
			return false
		}
	}
	f.takeover, f.highest = true, short.highest
	f.left = make([]int64, 0, len(short.params))
	for _, param := range short.params {
		if !short.isToken(param.at) {
			f.left = append(f.left, param.number)
		}
	}
	slices.Sort(f.left)
	if !f.guard() {
		return false
	}
	for i := range short.cuts {
		if taken := short.cuts[i].taken; taken != nil && !taken.take(f) {
			return false
		}
	}
	edits, ok := short.edits(f.Edits)
	f.Edits, f.SQL, f.sql, f.growth.short = edits, short.long, short.long, short
	return ok
}

// rowTokens are what stands in the place of the token in the rows of an INSERT that
// were left out.
type rowTokens struct {
	params []paramAt      // placeholders, by place
	values []sqledit.Edit // what gives way to the token: constants, and placeholders with a cast to their number alone
	table  *Table
}

// take has them give way to the token.
func (r *rowTokens) take(f *fixer) bool {
	for _, param := range r.params {
		if f.standsElsewhere(param.number) {
			return false
		}
		f.taken[param.number] = true
	}
	for i := range r.values {
		if r.values[i].Text == "" {
			r.values[i].Text = f.next(r.table)
		}
	}
	return true
}

// isToken reports whether a placeholder at a place of the long text is in the place
// of the token.
func (a *abridged) isToken(at int) bool {
	return slices.ContainsFunc(a.cuts, func(c cut) bool {
		if c.taken == nil {
			return false
		}
		_, found := slices.BinarySearchFunc(c.taken.params, at, func(p paramAt, at int) int { return p.at - at })
		return found
	})
}

// readRowTokens finds what stands in the place of the token in the rows that were
// left out of an INSERT. It reports false where that can't be told for one of them.
func (f *fixer) readRowTokens(n *sqltree.Node, short *abridged) bool {
	t, ok := f.targetOf(n)
	if !ok || !n.Is("InsertStmt") {
		return ok
	}
	cols, source := n.List("cols"), n.Get("selectStmt")
	position, why := tokenPosition(cols, t.tables[0].TokenColumn)
	if position < 0 || !source.Is("SelectStmt") || len(source.List("valuesLists")) != 3 {
		return true
	}
	rows := source.List("valuesLists")
	c := short.between(rows[1], rows[2])
	if c == nil {
		return true
	}
	c.taken = &rowTokens{table: t.tables[0]}
	return why == "" && c.taken.read(short.long, c, position, len(cols))
}

// read reads the rows of a cut that were left out, each of as many items.
func (r *rowTokens) read(sql string, c *cut, position, width int) bool {
	depth, item, words, plain := 0, 0, 0, true
	var first wordsearch.Sign
	var at, end int
	ok := wordsearch.EachWord(sql[c.from:c.to], func(k wordsearch.Sign, from, to int) {
		switch {
		case k == wordsearch.OpeningSign:
			if depth++; depth == 1 {
				item, words = 0, 0
				return
			}
		case k == wordsearch.ClosingSign:
			if depth--; depth == 0 {
				plain = plain && item == width-1 && r.note(sql, first, words, at, end)
			}
			return
		case k == wordsearch.CommaSign && depth == 1:
			item++
			return
		}
		if depth > 0 && item == position {
			if words++; words == 1 {
				first, at = k, c.from+from
			}
			end = c.from + to
		}
	})
	return ok && plain && depth == 0
}

// integerCasts are the casts that a token's placeholder may have, otherCasts some of
// those that give way with it: a bare int8 is a name that may be somebody's own.
var (
	integerCasts = setOf("bigint", "integer", "int", "smallint")
	otherCasts   = setOf("text", "varchar", "numeric", "int8", "int4", "int2")
)

// note notes what stands in the place of the token in one row: a placeholder, or a
// constant.
func (r *rowTokens) note(sql string, kind wordsearch.Sign, words, at, end int) bool {
	switch word := sql[at:end]; {
	case kind == wordsearch.Placeholder && (words == 1 || words == 4):
		digits, cast, _ := strings.Cut(word[1:], "::")
		switch cast = sqltext.Lower(cast); {
		case words == 1 || integerCasts[cast]:
		case otherCasts[cast]:
			r.values = append(r.values, sqledit.Edit{At: at, End: end, Text: "$" + digits})
		default:
			return false
		}
		r.params = append(r.params, paramAt{decimal(digits), at})
		return true
	case words != 1:
	case kind == wordsearch.NumberWord || kind == wordsearch.StringLiteral || kind == wordsearch.PlainWord && (sqltext.Lower(word) == "null" || sqltext.Lower(word) == "default"):
		r.values = append(r.values, sqledit.Edit{At: at, End: end})
		return true
	}
	return false
}

// edits returns the edits of the text as ones of the long text. What is added to
// the second row of VALUES is added to each one that was left out.
func (a *abridged) edits(short []sqledit.Edit) ([]sqledit.Edit, bool) {
	out := make([]sqledit.Edit, 0, len(short))
	inRow := make([]*sqledit.Edit, len(a.cuts))
	for _, e := range short {
		at, ok := a.lengthen(e.At)
		end, okEnd := a.lengthen(e.End)
		if !ok || !okEnd {
			return nil, false
		}
		out = append(out, sqledit.Edit{At: at, End: end, Text: e.Text})
		for i := range a.cuts {
			if c := &a.cuts[i]; e.End > c.start && e.At < c.at && c.taken == nil {
				if !c.rows || inRow[i] != nil || e.At != e.End {
					return nil, false
				}
				inRow[i] = &sqledit.Edit{At: at, End: end, Text: e.Text}
			}
		}
	}
	for i, e := range inRow {
		if taken := a.cuts[i].taken; taken != nil {
			out = append(out, taken.values...)
		}
		if e == nil {
			continue
		}
		var ok bool
		if out, ok = a.addToRows(out, &a.cuts[i], e); !ok {
			return nil, false
		}
	}
	return out, true
}

// addToRows adds the edit of the second row, which stands at its end, to the rows
// that were left out.
func (a *abridged) addToRows(edits []sqledit.Edit, c *cut, second *sqledit.Edit) ([]sqledit.Edit, bool) {
	edits = slices.Grow(edits, c.items)
	depth, last, rows, atEnd := 0, c.second, 0, false
	ok := wordsearch.EachWord(a.long[c.second:c.to], func(kind wordsearch.Sign, start, end int) {
		switch kind {
		case wordsearch.OpeningSign:
			depth++
		case wordsearch.ClosingSign:
			if depth--; depth == 0 && rows == 0 {
				atEnd = second.At == last
			} else if depth == 0 {
				edits = append(edits, sqledit.Edit{At: last, End: last, Text: second.Text})
			}
			if depth == 0 {
				rows++
			}
		}
		last = c.second + end
	})
	return edits, ok && atEnd && depth == 0 && rows == c.items+1
}
