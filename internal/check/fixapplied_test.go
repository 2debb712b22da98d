package check

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqledit"
	"github.com/fencerow/fencerow/internal/sqltree"
	"github.com/fencerow/fencerow/tokenctx"
)

// The forms of a fix that isn't a whole text. n is the token's new placeholder.
var (
	fixRaise = regexp.MustCompile(`(?:(?:add to|change in|set \S+ once in) SET|set it by itself): ([^;]+?)(?:;|, where|$)`)
	fixGuard = regexp.MustCompile(`(?:(add to|write in) (?:the action's )?WHERE(?:, joined by AND| instead of [^:]+)?: (?:AND )?|add to the action: WHERE )(.+?)(?:, where|$)`)
)

// fixing does what a fix says to one write of a text.
type fixing struct {
	*fixer
	write *sqltree.Node
	t     target
	c     sqledit.Clauses
}

// fixed returns the text with a fix that isn't a whole text, once for each write that it may
// be meant for. It returns none if the fix is a pattern for what the text has in another form.
func fixed(p *Policy, sql, fix string) (out []string) {
	a := workspaces.Get().(*workspace)
	defer a.release()
	p.planIn(a, sql)
	count := 1
	for i := 0; i < count; i++ {
		f := p.scriptFixer(&a.checker)
		if f == nil {
			return nil
		}
		if count = len(f.writes); i >= count {
			break
		}
		t := f.target(f.writes[i].Get("relation"), f.beside(f.writes[i]))
		c, ok := f.clausesOf(f.writes[i])
		if ok && len(t.tables) > 0 && (fixing{f, f.writes[i], t, c}).apply(strings.ReplaceAll(fix, "$n", fmt.Sprintf("$%d", f.highest+1))) {
			out = append(out, strings.ReplaceAll(f.Apply(), gone, ""))
		}
	}
	return out
}

func (f fixing) apply(fix string) bool {
	at := f.write
	if f.write.Is("InsertStmt") {
		at = f.write.Get("onConflictClause")
	}
	raise, guard := fixRaise.FindStringSubmatch(fix), fixGuard.FindStringSubmatch(fix)
	if raise == nil && guard == nil || at == nil || f.write.Is("MergeStmt") || f.write.Is("DeleteStmt") && raise != nil {
		return false
	}
	if raise != nil && !f.set(at, f.literal(at, raise[1])) {
		return false
	}
	if guard == nil {
		return true
	}
	if guard[1] == "write in" {
		return f.replace(at, guard[2])
	}
	return f.restrict(at, f.c, guard[2])
}

// replace puts the guard in the place of the comparison that a violation is at.
func (f fixing) replace(at *sqltree.Node, guard string) bool {
	first, end := f.c.Where+1, f.c.End
	where := at.Get("whereClause")
	members := conjuncts(where)
	i := slices.IndexFunc(members, func(n *sqltree.Node) bool { return mentions(n, f.t.tables[0].TokenColumn) })
	if i < 0 || f.c.Where < 0 {
		return false
	}
	// The member is what stands between the ANDs around it. Brackets around several members
	// are kept, and those around one go with it.
	op := f.TokenAt(sqltree.FirstOffset(members[i]))
	if op < 0 {
		return false
	}
	depth := 0
	for j := op; j > first; j-- {
		if f.IsAt(j-1, parser.RPAREN) {
			depth++
		} else if f.IsAt(j-1, parser.LPAREN) {
			if depth--; depth < 0 && f.hasAnd(j-1) {
				first = j
				break
			}
		} else if f.IsAt(j-1, parser.AND) && depth <= 0 {
			first = j
			break
		}
	}
	depth, isBetween := 0, false
	for j := first; j < end; j++ {
		switch {
		case f.IsAt(j, parser.LPAREN):
			depth++
		case f.IsAt(j, parser.RPAREN):
			if depth--; depth < 0 {
				end = j
			}
		case f.IsAt(j, parser.BETWEEN) && depth == 0:
			isBetween = true
		case f.IsAt(j, parser.AND) && depth == 0 && isBetween:
			isBetween = false
		case f.IsAt(j, parser.AND) && depth == 0:
			end = j
		}
	}
	f.Replace(first, end, guard)
	return true
}

// hasAnd reports whether several members of an AND stand in a bracket.
func (f fixing) hasAnd(open int) bool {
	depth := 0
	for i := open + 1; i < f.FindClosing(open); i++ {
		switch {
		case f.IsAt(i, parser.LPAREN):
			depth++
		case f.IsAt(i, parser.RPAREN):
			depth--
		case f.IsAt(i, parser.AND) && depth == 0:
			return true
		}
	}
	return false
}

// literal puts the literal that the guard has in the place of ?.
func (f fixing) literal(at *sqltree.Node, raise string) string {
	if guards := f.findGuards(f.t, f.t.tables[0], conjuncts(at.Get("whereClause")), tokenOperand); len(guards) > 0 {
		return strings.ReplaceAll(raise, "?", f.spell(guards[0].operand))
	}
	return raise
}

// gone stands for what is taken out of a text.
const gone = ", gone = gone"

// set has the SET list set the token column so, and only once. It reports false if there is
// no SET list.
func (f fixing) set(at *sqltree.Node, raise string) bool {
	start := f.c.Action
	if f.write.Is("UpdateStmt") {
		start = slices.IndexFunc(f.Tokens[f.c.Target:f.c.SetEnd], func(t parser.Token) bool { return t.Kind == parser.SET })
		if start >= 0 {
			start += f.c.Target
		}
	}
	if start < 0 {
		return false
	}
	end := f.c.SetEnd
	if f.c.Action >= 0 {
		end = f.c.End
		if f.c.Where >= 0 {
			end = f.c.Where
		}
	}
	isSet := false
	sets := at.List("targetList")
	for _, item := range f.SplitList(start+1, end) {
		count := 1
		if f.IsAt(item[0], parser.LPAREN) {
			count = len(f.SplitList(item[0]+1, f.FindClosing(item[0])))
		}
		column := slices.IndexFunc(sets[:count], func(n *sqltree.Node) bool { return n.Str("name") == f.t.tables[0].TokenColumn })
		sets = sets[count:]
		switch {
		case column < 0:
		case f.IsAt(item[0], parser.LPAREN):
			if !f.takeOut(item, column, count) {
				return false
			}
		case isSet:
			f.Replace(item[0]-1, item[1], gone)
		default:
			f.Replace(item[0], item[1], raise)
			isSet = true
		}
	}
	if !isSet {
		f.Insert(f.EndBefore(end), ", "+raise)
	}
	return true
}

// takeOut takes a column and its value out of what sets several columns.
func (f fixing) takeOut(item [2]int, column, count int) bool {
	columnsEnd := f.FindClosing(item[0])
	open := columnsEnd + 2
	if !f.IsAt(open, parser.LPAREN) {
		open++ // ROW
	}
	first := open + 1
	if f.IsAt(first, parser.SELECT) {
		first++
	}
	columns := f.SplitList(item[0]+1, columnsEnd)
	values := f.SplitList(first, f.FindClosing(open))
	if len(values) != count {
		return false
	}
	if count == 1 {
		return false
	}
	for _, list := range [][][2]int{columns, values} {
		if column == 0 {
			f.Replace(list[0][0], list[1][0], " ")
		} else {
			f.Replace(list[column][0]-1, list[column][1], " ")
		}
	}
	return true
}

// told reports whether all that a plan refuses stands in an earlier message.
func told(plan *Plan, before *Violation) bool {
	return !slices.ContainsFunc(plan.Violations, func(v Violation) bool {
		return !slices.ContainsFunc(before.others, func(o Violation) bool { return o.Rule == v.Rule && o.Message == v.Message })
	})
}

// Each fix that is printed is accepted once it is applied and the token is bound, or else the
// message says what else is refused.
func TestFixesApplied(t *testing.T) {
	counts := map[string]int{}
	var wrong []string
	try := func(kind string, p *Policy, sql string) {
		plan := p.Plan(sql)
		var err *Violation
		if !errors.As(plan.Refusal(), &err) {
			return
		}
		fix, isRedacted := strings.CutSuffix(err.Fix, "   (? stands for your literal)")
		var candidates []string
		switch guarded, _ := p.Guard(sql); {
		case fix == "":
			counts[kind+": a message alone"]++
			return
		case !err.fixesAll:
			candidates = fixed(p, sql, fix)
		case isRedacted:
			require.Equal(t, fix, Redact(guarded))
			candidates = []string{guarded}
		default:
			candidates = []string{fix}
		}
		if len(candidates) == 0 {
			counts[kind+": a pattern, "+string(err.Rule)]++
			return
		}
		i := slices.IndexFunc(candidates, func(text string) bool { return told(p.Plan(text), err) })
		if i < 0 {
			counts[kind+": wrong"]++
			wrong = append(wrong, fmt.Sprintf("%s\n  %v\n  -> %s\n  %v", sql, err, candidates[0], p.Plan(candidates[0]).Refusal()))
			return
		}
		if after := p.Plan(candidates[i]); after.Refusal() != nil {
			counts[kind+": applied, the rest told"]++
		} else {
			token := tokenctx.Token(8)
			for _, use := range after.tokens {
				if use.literal > 0 {
					token = tokenctx.Token(use.literal) // as the holder has it
				}
			}
			if _, bindErr := after.BindAll(tokenctx.With(t.Context(), token), argumentsFor(after, candidates[i])); bindErr != nil {
				var unbound *Violation
				if errors.As(bindErr, &unbound) && unbound.Rule == OtherToken && slices.ContainsFunc(err.others, func(o Violation) bool { return o.Rule == OtherToken }) {
					counts[kind+": applied, the rest told"]++
					return
				}
				counts[kind+": wrong"]++
				wrong = append(wrong, fmt.Sprintf("%s\n  %v\n  -> %s\n  %v", sql, err, candidates[i], bindErr))
				return
			}
			counts[kind+": applied, accepted"]++
		}
	}
	for _, s := range readStatements(t, "testdata/cases/statements.jsonl") {
		mode, err := ParseMode(s.Mode)
		require.NoError(t, err)
		try("cases", casesPolicy(t, mode), s.SQL)
	}
	files, err := filepath.Glob("testdata/captured/*.jsonl")
	require.NoError(t, err)
	for _, file := range files {
		writing, rewriting := writingStatements(t, file)
		tables := make([]Table, len(rewriting.tables))
		for i, table := range rewriting.tables {
			tables[i] = *table
			tables[i].Rewrite = false
		}
		p, err := NewPolicy(tables...)
		require.NoError(t, err)
		for _, sql := range writing {
			try("captured", p, sql)
			try("captured, rewritten", rewriting, sql)
		}
	}
	for _, info := range Rules() {
		if _, ok := testedElsewhere[info.ID]; ok {
			continue
		}
		for _, l := range readRuleLines(t, dataFile(info.ID)) {
			if l.Expect == "refuse" && l.Without == nil {
				try("refused", l.policy(t), l.text())
			}
		}
	}
	policies := map[Mode]*Policy{Strict: casesPolicy(t, Strict), Lease: casesPolicy(t, Lease)}
	for seed := range 2000 {
		s := trim(genStatement.Example(seed))
		try("generated", policies[s.mode], s.sql)
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s %d", kind, counts[kind])
	}
	require.Empty(t, wrong, strings.Join(wrong, "\n\n"))
}

// argumentsFor has the token where it is to be, and a text anywhere else.
func argumentsFor(plan *Plan, sql string) []driver.NamedValue {
	var args []driver.NamedValue
	for _, p := range genPlaceholder.FindAllString(sql, -1) {
		var n int
		_, _ = fmt.Sscanf(p, "$%d", &n)
		for len(args) < n {
			args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: "x"})
		}
	}
	for _, use := range plan.tokens {
		if use.param > 0 {
			args[use.param-1].Value = tokenctx.Arg
		}
	}
	return args
}

// The statement in a COPY takes no placeholder, so that its guarded form isn't shown as it stands.
func TestFixOfCopy(t *testing.T) {
	var err *Violation
	require.ErrorAs(t, casesPolicy(t, Strict).Plan("COPY (UPDATE protected_rows SET value = 'a' WHERE id = 1 RETURNING id) TO STDOUT").Refusal(), &err)
	require.Contains(t, err.Fix, "COPY takes no placeholder for the token: send the statement in it by itself")
	require.NotContains(t, err.Fix, "$1")
}
