package check

import (
	"database/sql/driver"
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
	fixUpdate = regexp.MustCompile(`^(?:(?:add to SET|change in SET|set):? ([^;]+); )?add to WHERE(?:, joined by AND)?: (?:AND )?(.+?), where \$n is the token`)
	fixRaise  = regexp.MustCompile(`^(?:add to|change in) SET: (.+?)(?:, where \? stands .*)?$`)
	fixAction = regexp.MustCompile(`^end the action with: SET \.\.\., (.+?) WHERE (.+)$`)
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
	isPlaced := strings.NewReplacer(fmt.Sprintf("where $%d is", f.highest+1), "where $n is")
	fix = isPlaced.Replace(fix)
	at := f.write
	if f.write.Is("InsertStmt") {
		at = f.write.Get("onConflictClause")
	}
	var raise, guard string
	switch {
	case fixUpdate.MatchString(fix):
		m := fixUpdate.FindStringSubmatch(fix)
		raise, guard = m[1], m[2]
	case fixAction.MatchString(fix):
		m := fixAction.FindStringSubmatch(fix)
		raise, guard = m[1], m[2]
	case fixRaise.MatchString(fix):
		raise = fixRaise.FindStringSubmatch(fix)[1]
	}
	if raise == "" && guard == "" || at == nil || f.write.Is("MergeStmt") || f.write.Is("DeleteStmt") != (raise == "") {
		return false
	}
	if raise != "" && !f.set(f.literal(at, raise)) {
		return false
	}
	return guard == "" || f.restrict(at, f.c, guard)
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
func (f fixing) set(raise string) bool {
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
	column, _, _ := strings.Cut(raise, " ")
	isSet := false
	for _, item := range f.SplitList(start+1, f.c.SetEnd) {
		if text := f.SQL[f.Tokens[item[0]].Start:f.Tokens[item[0]].End]; strings.Trim(strings.ToLower(text), `"`) != strings.Trim(column, `"`) {
			continue
		}
		if isSet {
			item[0]--
			f.Replace(item[0], item[1], gone)
			continue
		}
		isSet = true
		f.Replace(item[0], item[1], raise)
	}
	if !isSet {
		f.Insert(f.EndBefore(f.c.SetEnd), ", "+raise)
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
		err, isRefused := plan.Refusal().(*Violation)
		if !isRefused {
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
			_, err := after.BindAll(tokenctx.With(t.Context(), token), argumentsFor(after, candidates[i]))
			require.NoError(t, err, candidates[i])
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
	require.Empty(t, wrong)
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
