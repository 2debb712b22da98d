package sqlfiles

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/rewrite"
)

// A DELETE leaves no row that shows its token: the wall takes it from a setting,
// which the driver sends along. A migration has to set it itself, and then its
// WHERE may be as it likes.

// shortText is how long a literal may be that belongs to a call of set_config.
const shortText = 100

// setters begin the statements that may set it.
var setters = map[parser.TokenKind]bool{
	parser.SET: true, parser.SELECT: true, parser.DO: true, parser.WITH: true, parser.VALUES: true,
}

var gooseSection = regexp.MustCompile(`^--\s*\+goose\s+(?:Up|Down)\b`)

// onlyInWhere are the rules about a DELETE's WHERE.
var onlyInWhere = map[rewrite.Rule]bool{
	rewrite.UnguardedDelete: true, rewrite.GuardPosition: true, rewrite.GuardComparison: true,
	rewrite.AmbiguousTarget: true, rewrite.CurrentOf: true, rewrite.TokenReuse: true,
}

// checkDeletes finds the DELETEs of a migration's statement that lack the setting. It
// returns the violations that are left to judge.
func (c *fileCheck) checkDeletes(statement int, plan *rewrite.Plan) []rewrite.Violation {
	s := c.file.statements[statement]
	first := c.file.tokens[s.first].Kind
	direct := first == parser.DELETE || first == parser.WITH
	others := false
	var lacking []*rewrite.Table
	for _, w := range plan.Writes() {
		others = others || w.Kind != "DELETE"
		if w.Kind == "DELETE" && !slices.Contains(lacking, w.Table) && !c.hasSettingBefore(statement, w.Table) {
			lacking = append(lacking, w.Table)
		}
	}
	left := slices.Clone(plan.Violations)
	left = slices.DeleteFunc(left, func(v rewrite.Violation) bool {
		lacks := slices.ContainsFunc(lacking, func(t *rewrite.Table) bool { return t.String() == v.Table })
		if v.Rule == rewrite.UnguardedDelete {
			return !lacks
		}
		return !others && direct && onlyInWhere[v.Rule]
	})
	for _, t := range lacking {
		i := slices.IndexFunc(left, func(v rewrite.Violation) bool { return v.Rule == rewrite.UnguardedDelete && v.Table == t.String() })
		switch {
		case i >= 0:
			left[i].Message, left[i].Fix = lackingSetting(t)
		case direct:
			c.addLacking(statement, t, c.deletedAt(s))
		}
	}
	return left
}

// lackingSetting says what a DELETE without the setting is told.
func lackingSetting(t *rewrite.Table) (message, fix string) {
	name := rewrite.SettingName(t.Resource)
	return fmt.Sprintf("DELETE from protected table %q in a migration without its token in setting %s, where the wall looks for it", t.String(), name),
		fmt.Sprintf("in the same transaction, before it: SET LOCAL %s = '<token>';", name)
}

// addLacking is the finding at a DELETE that has a guard, and so no violation.
func (c *fileCheck) addLacking(statement int, t *rewrite.Table, at int) {
	if c.suppressed(statement, rewrite.UnguardedDelete) {
		c.result.Suppressed++
		return
	}
	message, fix := lackingSetting(t)
	v := check.Refuse(rewrite.UnguardedDelete, message)
	v.Table, v.Fix = t.String(), fix
	f := lint.FindingOf(v)
	f.Path = c.file.path
	f.Line, f.Column = c.file.lines.Place(at)
	c.result.Findings = append(c.result.Findings, f)
}

// deletedAt is where the first DELETE of a statement names its table.
func (c *fileCheck) deletedAt(s statement) int {
	tokens := c.file.tokens[s.first : s.last+1]
	for i := range len(tokens) - 2 {
		if tokens[i].Kind == parser.DELETE && tokens[i+1].Kind == parser.FROM {
			return tokens[i+2].Start
		}
	}
	return tokens[0].Start
}

// hasSettingBefore reports whether a statement before this one sets the token of a
// table, in the same section of a file of goose's.
func (c *fileCheck) hasSettingBefore(statement int, t *rewrite.Table) bool {
	f := c.file
	for i := statement - 1; i >= 0; i-- {
		s := f.statements[i]
		between := f.tokens[s.last+1 : f.statements[i+1].first]
		if slices.ContainsFunc(between, func(t parser.Token) bool {
			return t.IsComment() && gooseSection.MatchString(f.code[t.Start:t.End])
		}) {
			return false
		}
		tokens := f.tokens[s.first : s.last+1]
		if !setters[tokens[0].Kind] {
			continue // most are rows, and there may be many
		}
		if setsToken(compactCode(f.code, tokens, tokens[0].Kind == parser.DO), t) {
			return true
		}
	}
	return false
}

// compactCode is the code of tokens in one form, without comments. Long literals
// are left out, unless they are code that runs.
func compactCode(code string, tokens []parser.Token, runs bool) string {
	var b strings.Builder
	for _, t := range tokens {
		if t.IsComment() || t.IsLiteral() && t.End-t.Start > shortText && !runs {
			continue
		}
		word := code[t.Start:t.End]
		if inside, _ := unquote(word); runs && t.Kind == parser.SCONST {
			in, _ := sqltext.ScanPrefix(inside)
			word = compactCode(inside, in, false)
		}
		b.WriteString(strings.ToLower(strings.ReplaceAll(word, `"`, "")) + " ")
	}
	return b.String()
}

// setsToken reports whether compact code sets the token of a table.
func setsToken(compact string, t *rewrite.Table) bool {
	name := strings.ToLower(rewrite.SettingName(t.Resource))
	if strings.Contains(compact, "set_config ( '"+name+"' ,") {
		return true
	}
	name = strings.ReplaceAll(name, ".", " . ")
	for _, before := range []string{"set ", "set local ", "set session "} {
		for _, after := range []string{" = ", " to "} {
			if strings.Contains(" "+compact, " "+before+name+after) {
				return true
			}
		}
	}
	return false
}
