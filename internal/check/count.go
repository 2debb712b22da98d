package check

import (
	"slices"
	"strconv"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// A write in WITH has no count of rows of its own. So that its outcome is known without
// another round trip, the text that is sent returns the count: the write returns
// something, and the statement has one more column, with the number of rows that the
// item of WITH has. Where the statement returns no row it tells nothing.

// countColumn begins the names of the columns with counts.
const countColumn = "fencerow_count_"

// Counts says where the text of [Plan.Attested] has the numbers of rows that parts have
// written: Columns has the index of a part for each column, the last ones of each row.
// Those of Meant follow: how many rows a part found by its WHERE without the guard, when
// the statement began. HidesRows says that the text returns rows only for these columns;
// the statement itself returns none.
type Counts struct {
	Columns   []int
	Meant     []int
	HidesRows bool
}

// Hidden returns how many columns there are that the statement itself doesn't return.
func (c Counts) Hidden() int { return len(c.Columns) + len(c.Meant) }

// Counts returns where the counts are in the rows of the text of [Plan.Attested].
func (p *Plan) Counts() Counts {
	if !p.attests {
		return Counts{}
	}
	p.Attested()
	return p.later.counts
}

// addCounts has the text return the number of rows of each guarded write in its WITH. It
// reports false where there is none, or no place for it.
func (p *proof) addCounts(f *fixer) (Counts, bool) {
	if p.mayWriteRowsTwice() {
		return Counts{}, false
	}
	var counts Counts
	var items []*sqltree.Node
	columns := ""
	add := func(text string) bool {
		text += " AS " + countColumn + strconv.Itoa(len(items)+1)
		item := outputItem(text)
		items, columns = append(items, item), columns+", "+text
		return item != nil
	}
	for i, part := range p.Parts() {
		if part.cte == "" || !part.Compares {
			continue
		}
		if !f.returnSomething(p.provenOf(part).node) || !add("(SELECT pg_catalog.count(*) FROM "+sqltext.QuoteIfNeeded(part.cte)+")") {
			return Counts{}, false
		}
		counts.Columns = append(counts.Columns, i)
	}
	for i, part := range p.Parts() {
		if !p.countsMeant(part) || p.Looks()[i].meant == "" {
			continue
		}
		if !add("(" + p.Looks()[i].meant + ")") {
			return Counts{}, false
		}
		counts.Meant = append(counts.Meant, i)
	}
	if len(items) == 0 {
		return Counts{}, false
	}
	at, field, ok := f.outputEnd(p.root)
	if !ok {
		return Counts{}, false
	}
	if field == "returningList" && len(p.root.List(field)) == 0 {
		columns, counts.HidesRows = " RETURNING "+columns[len(", "):], true
	}
	f.Insert(at, columns)
	f.growth.add(p.root, field, items...)
	return counts, true
}

// mayWriteRowsTwice reports whether two writes of the statement may meet in one row. Which
// of them changes it depends on which runs first, and a count of an item of WITH has that
// run before the statement's own write has ended (PostgreSQL's manual, "Data-Modifying
// Statements in WITH").
func (p *proof) mayWriteRowsTwice() bool {
	parts := p.Parts()
	for i, part := range parts {
		for _, w := range part.Writes {
			family := p.policy.familyOf(w.Table)
			for _, other := range parts[:i] {
				if slices.ContainsFunc(other.Writes, func(w Write) bool { return family[Name{w.Table.Schema, w.Table.Name}] }) {
					return true
				}
			}
		}
	}
	return false
}

// countsMeant reports whether the rows that a part means are counted: who wrote an UPDATE
// or DELETE without a guard doesn't expect it to leave rows out. Those of an upsert aren't.
func (p *Plan) countsMeant(part Part) bool {
	return p.rewriting != nil && p.gate == nil && part.MayLeaveOut() && part.Writes[0].Kind != "INSERT" && (part.cte != "" || part.IsMain)
}

// countsAnyMeant reports whether the rows that some part means are counted.
func (p *Plan) countsAnyMeant() bool { return slices.ContainsFunc(p.Parts(), p.countsMeant) }

// returnSomething has a write in WITH return a row for each that it writes.
func (f *fixer) returnSomething(write *sqltree.Node) bool {
	if !write.HasField("returningList") {
		return false
	}
	if len(write.List("returningList")) > 0 {
		return true
	}
	c, ok := f.clausesOf(write)
	if ok {
		f.Insert(f.EndBefore(c.End), " RETURNING 1")
		f.growth.add(write, "returningList", outputItem("1"))
	}
	return ok
}

// outputEnd returns where the list ends by which a statement returns its rows, or where
// it would begin, and the field that holds it.
func (f *fixer) outputEnd(root *sqltree.Node) (at int, field string, ok bool) {
	if !root.Is("SelectStmt") {
		if !root.HasField("returningList") {
			return 0, "", false
		}
		c, ok := f.clausesOf(root)
		return f.EndBefore(f.statementEnd(c.End)), "returningList", ok
	}
	if root.Str("op") != "SETOP_NONE" || len(root.List("targetList")) == 0 || root.Get("intoClause") != nil {
		return 0, "", false
	}
	first := f.selectWord()
	if first < 0 {
		return 0, "", false
	}
	end := f.FindListEnd(sqledit.Clauses{Source: first, SourceEnd: f.statementEnd(first)}, fromOf(root))
	return f.EndBefore(end), "targetList", true
}

// selectWord returns the token SELECT of a query that begins with its WITH, -1 if it
// isn't found.
func (f *fixer) selectWord() int {
	depth := 0
	for i := range f.Tokens {
		switch f.Tokens[i].Kind {
		case parser.LPAREN, parser.LBRACK:
			depth++
		case parser.RPAREN, parser.RBRACK:
			depth--
		case parser.SELECT:
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}
