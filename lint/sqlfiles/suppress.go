package sqlfiles

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/rewrite"
)

const ignore = "fencerow:ignore"

// suppression is a comment that hides findings of some rules.
type suppression struct {
	offset     int
	rules      []rewrite.Rule
	reason     string
	statements []int // those that it is about
	used       map[rewrite.Rule]bool
}

// suppressions finds them in the comments, with the statements that each is
// about: those with a part in its line or, if no statement has one, the one that
// begins behind it, with nothing but lines of comments between.
func (f *file) suppressions() []*suppression {
	var found []*suppression
	for i, t := range f.tokens {
		text, ok := strings.CutPrefix(f.code[t.Start:t.End], "--")
		if !ok || !t.IsComment() {
			continue
		}
		text, ok = strings.CutPrefix(strings.TrimSpace(text), ignore)
		if !ok || text != "" && text[0] != ' ' && text[0] != '\t' {
			continue
		}
		s := &suppression{offset: t.Start, used: map[rewrite.Rule]bool{}}
		rules := strings.TrimSpace(text)
		if i := strings.IndexAny(rules, " \t"); i >= 0 {
			rules, s.reason = rules[:i], strings.TrimSpace(rules[i:])
		}
		for _, rule := range strings.Split(rules, ",") {
			s.rules = append(s.rules, rewrite.Rule(rule))
		}
		s.statements = f.suppressed(i)
		found = append(found, s)
	}
	return found
}

// suppressed lists the statements that a comment is about.
func (f *file) suppressed(comment int) []int {
	line := f.lines.Line(f.tokens[comment].Start)
	var here []int
	reaches := func(i int) bool { return f.lines.Line(f.tokens[f.statements[i].last].End-1) >= line }
	for i := sort.Search(len(f.statements), reaches); i < len(f.statements) && f.lines.Line(f.tokens[f.statements[i].first].Start) <= line; i++ {
		here = append(here, i)
	}
	if here != nil {
		return here
	}
	next := comment + 1
	for ; next < len(f.tokens) && f.lines.Line(f.tokens[next].Start) == line+1; next++ {
		line = f.lines.Line(f.tokens[next].End - 1)
		if !f.tokens[next].IsComment() {
			break
		}
	}
	i, found := slices.BinarySearchFunc(f.statements, next, func(s statement, next int) int { return s.first - next })
	if found && f.lines.Line(f.tokens[next].Start) <= line {
		return []int{i}
	}
	return nil
}

// suppressed reports whether findings of the rule are hidden in a statement.
func (c *fileCheck) suppressed(statement int, rule rewrite.Rule) bool {
	hidden := false
	for _, s := range c.suppressing[statement] {
		if s.reason != "" && slices.Contains(s.rules, rule) {
			s.used[rule], hidden = true, true
		}
	}
	return hidden
}

// problems are the findings about the suppression itself.
func (s *suppression) problems(f *file) []lint.Finding {
	var found []lint.Finding
	report := func(format string, args ...any) {
		finding := lint.FindingOf(check.Refuse(rewrite.BadSuppression, fmt.Sprintf(format, args...)))
		finding.Path = f.path
		finding.Line, finding.Column = f.lines.Place(s.offset)
		found = append(found, finding)
	}
	for _, rule := range s.rules {
		switch {
		case rule == "" && len(s.rules) > 1:
			report("suppression has a comma with no rule behind it: write the rules without a blank between, as in FR111,FR101")
		case rule == "":
			report("suppression names no rule: write -- %s FR101 and the reason", ignore)
		case rule.Doc() == "" && meant(rule) != "":
			report("suppression of a rule that there isn't (%q): did you mean %s?", string(rule), meant(rule))
		case rule.Doc() == "":
			report("suppression of a rule that there isn't (%q): the rules are listed in docs/rules.md", string(rule))
		case s.reason == "":
			report("suppression of %s gives no reason, so it hides nothing: write it behind the rule", rule)
		case !s.used[rule]:
			report("suppression of %s hides nothing: take it out, or put it on the line before the statement or at the end of one of its lines", rule)
		}
	}
	return found
}

// meant is the rule that is written in lower case, with other signs about it or
// by its name.
func meant(rule rewrite.Rule) rewrite.Rule {
	text := strings.Trim(string(rule), ".:;()[]\"'`")
	for _, info := range rewrite.Rules() {
		if strings.EqualFold(text, string(info.ID)) || strings.EqualFold(text, info.Slug) {
			return info.ID
		}
	}
	return ""
}
