package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/internal/sqltree"
)

// SettingName returns the name of the setting that carries the token of a
// resource, "" being the default one, to the triggers of the server.
//
// Names of settings ignore case and take letters, digits, "_" and "$". So all
// bytes of a resource but a-z, 0-9 and "_" are written as "$" and two
// hexadecimal digits; a name that gets too long is "$m" and a hash.
func SettingName(resource string) string {
	if resource == "" {
		return "fencing.token"
	}
	var b strings.Builder
	b.WriteString("token_")
	for _, c := range []byte(resource) {
		if c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "$%02x", c)
		}
	}
	if b.Len() > sqltext.MaxName {
		hash := sha256.Sum256([]byte(resource))
		return "fencing.token_$m" + hex.EncodeToString(hash[:])[:40]
	}
	return "fencing." + b.String()
}

// change is a place where a text changes or deletes rows of a protected table
// under a condition of its own.
type change struct {
	stmt   *sqltree.Node // the UPDATE, DELETE or MERGE
	at     *sqltree.Node // what has the condition: the statement, or the MERGE's action
	table  *Table
	guards []guard
}

// insertion is a place where a text has the token of a row that it inserts.
type insertion struct {
	table *Table
	token operand
}

// inserted notes the token of inserted rows, if it has to go into a setting.
func (c *checker) inserted(table *Table, token operand) {
	if table.Attested && (token.param > 0 || token.literal > 0) {
		c.inserts = append(c.inserts, insertion{table, token})
	}
}

// Attested returns the text to be sent, in which the token also goes into the
// setting of SettingName, where a trigger of the server finds it: that of every
// DELETE, which leaves no row with the token, of every UPDATE of a table that
// [Table.Moves] rows by deleting them, and of every write to a table that is
// [Table.Attested]. Conditions end with a call that sets it, and in
// inserted rows the token is the result of one. The text takes the same
// arguments as the plan's own.
//
// A write whose token can't be told for all its rows at once stays as it is,
// and so does a text for which nothing shows that the calls are all that was
// added. The server then refuses it.
func (p *Plan) Attested() string {
	if !p.attests {
		return p.text
	}
	p.later.attestOnce.Do(func() { p.later.attested, p.later.counts = p.proof().attest() })
	return p.later.attested
}

// attest returns the text to be sent. Where the settings can't be added the
// comparisons are still qualified, and where the counts can't be, the settings are
// still added.
func (p *proof) attest() (string, Counts) {
	calls := p.settingCalls()
	if p.hasParts() || p.countsAnyMeant() {
		if text, counts, ok := p.sentWith(calls, true); ok {
			return text, counts
		}
	}
	if len(calls) > 0 {
		if text, _, ok := p.sentWith(calls, false); ok {
			return text, Counts{}
		}
	}
	if text, ok := qualified(p.text, p.bare); ok && len(p.casts) == 0 {
		return text, Counts{}
	}
	if text, _, ok := p.sentWith(nil, false); ok {
		return text, Counts{}
	}
	return p.text, Counts{}
}

// qualified writes the operators of guards as those of pg_catalog, where that needs no
// proof by another tree: OPERATOR() binds tighter than a comparison does, which
// changes nothing if both operands are single terms, since a guard stands in its AND
// list by itself.
func qualified(sql string, bare []*sqltree.Node) (string, bool) {
	places := slices.Clone(bare)
	slices.SortFunc(places, func(a, b *sqltree.Node) int { return cmp.Compare(a.Offset(), b.Offset()) })
	var b strings.Builder
	b.Grow(len(sql) + 24*len(places))
	last := 0
	for _, n := range places {
		op, at := n.List("name")[0].Str("sval"), n.Offset()
		if at < last || !isTerm(n.Get("lexpr")) || !isTerm(n.Get("rexpr")) || !strings.HasPrefix(sql[at:], op) {
			return "", false
		}
		b.WriteString(sql[last:at])
		if at > 0 && sqltext.JoinsNext(sql[at-1]) {
			b.WriteByte(' ')
		}
		b.WriteString("OPERATOR(pg_catalog." + op + ")")
		last = at + len(op)
	}
	b.WriteString(sql[last:])
	return b.String(), true
}

// isTerm reports whether an operand is a name, a placeholder or a number, which may
// have a cast.
func isTerm(n *sqltree.Node) bool {
	if n.Is("TypeCast") {
		n = n.Get("arg")
	}
	return n.Is("ColumnRef") || n.Is("ParamRef") || n.Is("A_Const")
}

// sentWith adds the calls to the text, and the counts if asked to, and qualifies its
// comparisons. It reports whether nothing but that was done.
func (p *proof) sentWith(calls map[*sqltree.Node]string, counted bool) (string, Counts, bool) {
	f := newFixer(p.policy, p.text, p.root, &p.lex)
	var counts Counts
	var ok bool
	if f.growth, ok = callGrowth(calls); !ok || !f.qualifyComparisons(p.bare) || !f.qualifyCasts(p.casts) {
		return "", counts, false
	}
	done := make(map[*sqltree.Node]bool, len(calls))
	for _, d := range p.changes {
		call, ok := calls[d.at]
		if !ok || done[d.at] {
			continue
		}
		done[d.at] = true
		end, ok := f.conditionEnd(d)
		if !ok {
			return "", counts, false
		}
		f.Insert(f.EndBefore(end), " AND "+call)
	}
	for _, i := range p.inserts {
		call, ok := calls[i.token.at]
		if !ok || done[i.token.at] {
			continue
		}
		done[i.token.at] = true
		if !f.callInstead(i.token, call) {
			return "", counts, false
		}
	}
	if counted {
		if counts, ok = p.addCounts(f); !ok {
			return "", counts, false
		}
	}
	proved := f.proves()
	return f.Edited, counts, proved
}

// qualifyComparisons writes the operators of guards as those of pg_catalog: a
// bare one may be somebody's own, by a search path that nothing shows.
func (f *fixer) qualifyComparisons(bare []*sqltree.Node) bool {
	for _, n := range bare {
		op := n.List("name")[0].Str("sval")
		qualified := "OPERATOR(pg_catalog." + op + ")"
		like := f.expression("a " + qualified + " b")
		at := f.TokenAt(n.Offset())
		if like == nil || at < 0 || f.SQL[f.Tokens[at].Start:f.Tokens[at].End] != op {
			return false
		}
		f.Replace(at, at+1, qualified)
		f.growth.addFirst(n, "name", like.List("name")[0])
	}
	return true
}

// qualifyCasts writes the types of casts as those of pg_catalog: a bare one may be
// somebody's own, such as a temporary table's.
func (f *fixer) qualifyCasts(casts []*sqltree.Node) bool {
	if len(casts) == 0 {
		return true
	}
	like := f.expression("1::pg_catalog.int8")
	if like == nil {
		return false
	}
	schema := like.Get("typeName").List("names")[0]
	places := make(map[int]bool, len(casts))
	for _, n := range casts {
		at := f.TokenAt(n.Offset())
		if at < 0 {
			return false
		}
		if !places[n.Offset()] {
			f.Insert(f.Tokens[at].Start, "pg_catalog.")
		}
		places[n.Offset()] = true
	}
	f.growCasts(f.root, places, schema)
	return true
}

// growCasts notes the schema of the casts at the given places, wherever the tree has
// them: it repeats the source of "(a, b) = (x, y)".
func (f *fixer) growCasts(n *sqltree.Node, places map[int]bool, schema *sqltree.Node) {
	switch {
	case n.Is("TypeName") && places[n.Offset()]:
		f.growth.addFirst(n, "names", schema)
	case n.Is("FuncCall") && places[n.Offset()]:
		f.growth.addFirst(n, "funcname", schema)
	}
	for _, k := range n.Kids {
		f.growCasts(k, places, schema)
	}
}

// proves makes the edits, and reports whether nothing but those was made.
func (f *fixer) proves() bool {
	l := sqltext.Text{SQL: f.Apply()}
	if l.Check(f.IsTooDeep) != nil {
		return false
	}
	stmts, err := sqltree.Parse(f.Edited)
	return err == nil && f.made(stmts)
}

// settingCalls returns the call that each change's condition ends with, and
// what stands in the place of each inserted token. It leaves out those whose
// token isn't known, or whose name stands for tables that take another one
// each.
func (p *proof) settingCalls() map[*sqltree.Node]string {
	calls := make(map[*sqltree.Node]string)
	note := func(at *sqltree.Node, call string) {
		if earlier, ok := calls[at]; ok && earlier != call {
			call = ""
		}
		calls[at] = call
	}
	for _, c := range p.changes {
		note(c.at, c.settingCall())
	}
	for _, i := range p.inserts {
		note(i.token.at, i.settingCall())
	}
	for at, call := range calls {
		if call == "" {
			delete(calls, at)
		}
	}
	return calls
}

// settingCall writes the call with the first guard's token that can be told:
// all the guards have to compare with the same.
func (c change) settingCall() string {
	for _, g := range c.guards {
		if text, ok := g.asText(); ok {
			return setting(c.table, text)
		}
	}
	return ""
}

// settingCall writes what gives the token and sets it.
func (i insertion) settingCall() string {
	text, ok := i.token.asText()
	if !ok {
		return ""
	}
	return "(CASE WHEN " + setting(i.table, text) + " THEN " + i.token.asBigint() + " END)"
}

func setting(t *Table, text string) string {
	return fmt.Sprintf("pg_catalog.set_config('%s', %s, true) IS NOT NULL", SettingName(t.Resource), text)
}

// asText writes the token of an operand as SQL of type text. Bare names of
// types could be somebody's own.
func (o operand) asText() (string, bool) {
	switch {
	case o.param > 0:
		return fmt.Sprintf("$%d::pg_catalog.int8::pg_catalog.text", o.param), true
	case o.literal > 0:
		return fmt.Sprintf("'%d'", o.literal), true
	case len(o.rows) == 0 || slices.ContainsFunc(o.rows, func(row operand) bool { return !row.same(o.rows[0]) }):
		return "", false
	}
	return o.rows[0].asText()
}

// asBigint writes a placeholder or literal as SQL of type bigint.
func (o operand) asBigint() string {
	if o.param > 0 {
		return fmt.Sprintf("$%d::pg_catalog.int8", o.param)
	}
	return fmt.Sprintf("%d::pg_catalog.int8", o.literal)
}

// conditionEnd returns the token before which a change's condition ends.
func (f *fixer) conditionEnd(d change) (int, bool) {
	if d.stmt == d.at {
		c, ok := f.clausesOf(d.stmt)
		return c.End, ok
	}
	whens, thens := d.stmt.List("mergeWhenClauses"), f.ActionWords(d.stmt.Get("relation").Offset(), parser.THEN)
	i := slices.Index(whens, d.at)
	if i < 0 || len(thens) != len(whens) {
		return 0, false
	}
	return thens[i], true
}

// callInstead puts a call in the place of an inserted token: its last operand
// is the token where it stands.
func (f *fixer) callInstead(o operand, call string) bool {
	at := f.TokenAt(o.at.Offset())
	if at < 0 {
		return false
	}
	t := f.Tokens[at]
	before, after, ok := strings.Cut(call, " THEN "+f.SQL[t.Start:t.End])
	if !ok {
		return false
	}
	f.Insert(t.Start, before+" THEN ")
	f.Insert(t.End, after)
	return true
}
