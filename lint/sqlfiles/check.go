package sqlfiles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/internal/check"
	"github.com/fencerow/fencerow/internal/parser"
	"github.com/fencerow/fencerow/internal/sqltext"
	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/rewrite"
)

// fileCheck judges the statements of a file.
type fileCheck struct {
	file   *file
	policy *rewrite.Policy
	result *Result

	suppressions []*suppression
	suppressing  map[int][]*suppression // by statement
}

func (c *fileCheck) checkStatements() {
	c.suppressions, c.suppressing = c.file.suppressions(), map[int][]*suppression{}
	for _, s := range c.suppressions {
		for _, i := range s.statements {
			c.suppressing[i] = append(c.suppressing[i], s)
		}
	}
	for i := range c.file.statements {
		c.checkStatement(i)
	}
	if c.file.fault != nil {
		c.fault(*c.file.fault)
	}
	for _, s := range c.suppressions {
		c.result.Findings = append(c.result.Findings, s.problems(c.file)...)
	}
}

// fault tells where the rest of the file can't be read.
func (c *fileCheck) fault(f sqltext.Stop) {
	c.result.Unparsed[f.Reason]++
	v := check.Refuse(rewrite.Unparsable, fmt.Sprintf("the file cannot be read from here on (%s): what follows is not checked; correct it, or exclude the file if it is not for PostgreSQL", f.Reason))
	finding := lint.FindingOf(v)
	finding.Path = c.file.path
	finding.Line, finding.Column = c.file.lines.Place(f.Offset)
	c.result.Findings = append(c.result.Findings, finding)
}

func (c *fileCheck) checkStatement(i int) {
	s := c.file.statements[i]
	tokens := c.file.tokens[s.first : s.last+1]
	start := tokens[0].Start
	migration := c.file.migrates(s)
	q := readPlaceholders(c.file.code, tokens, migration)
	plan := c.policy.Plan(q.text)
	if plan.Cleared {
		c.result.Cleared++
	}
	violations := plan.Violations
	if migration {
		violations = c.checkDeletes(i, plan)
	}
	failed := false
	for _, v := range violations {
		at := start
		if offset, ok := v.Offset(); ok {
			at = min(start+q.offset(offset), tokens[len(tokens)-1].Start)
		}
		verdict := decide(v.Rule).verdict
		names := v.Rule == rewrite.Unparsable && c.namesTable(tokens)
		if verdict == count && !failed {
			failed = true
			reason := c.reason(v, at)
			c.result.Unparsed[reason]++
			if migration && !names {
				c.result.NotAnalysed = append(c.result.NotAnalysed, Note{c.file.path, c.file.lines.Line(at), reason})
			}
		}
		if names && migration {
			what, _, _ := strings.Cut(v.Message, ": ")
			verdict, v.Message = report, what+": it names a protected table, so see whether it writes it, and hide the finding if not"
		}
		if !migration || verdict == report {
			c.add(i, v, &q, at)
		}
		if migration && v.Rule == rewrite.HiddenCode {
			c.checkBodies(i)
		}
	}
}

// namesTable reports whether a statement has the name of a protected table in it
// as a word: where it doesn't parse, it may write that.
func (c *fileCheck) namesTable(tokens []parser.Token) bool {
	for _, t := range tokens {
		if t.IsComment() {
			continue
		}
		text := strings.ToLower(c.file.code[t.Start:t.End])
		for _, table := range c.policy.Tables() {
			if hasWord(text, strings.ToLower(table.Name)) {
				return true
			}
		}
	}
	return false
}

func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !sqltext.IsNameByte(text[start-1])) && (end == len(text) || !sqltext.IsNameByte(text[end])) {
			return true
		}
		from = start + 1
	}
}

// add adds a violation at a place of the file, if it isn't suppressed.
func (c *fileCheck) add(statement int, v rewrite.Violation, q *query, at int) {
	if c.suppressed(statement, v.Rule) {
		c.result.Suppressed++
		return
	}
	c.result.Findings = append(c.result.Findings, c.finding(v, q, at))
}

// finding is a violation at its place in the file.
func (c *fileCheck) finding(v rewrite.Violation, q *query, at int) lint.Finding {
	line, column := c.file.lines.Place(at)
	if v.Line > 0 {
		v.Line = line
		var after int
		v.Snippet, after = q.respell(&v)
		v.Column = after
	}
	v.Fix, _ = q.spelled(v.Fix, 0)
	v.Message, _ = q.spelled(v.Message, 0)
	f := lint.FindingOf(&v)
	f.Path, f.Line, f.Column = c.file.path, line, column
	return f
}

// respell shows a violation's snippet with the file's own placeholders; it
// returns its column, and sets its width.
func (q *query) respell(v *rewrite.Violation) (string, int) {
	snippet, start := q.spelled(v.Snippet, v.Column-1)
	_, end := q.spelled(v.Snippet, v.Column-1+v.Width)
	v.Width = end - start
	return snippet, start + 1
}

// reason groups statements that can't be analysed.
func (c *fileCheck) reason(v rewrite.Violation, at int) string {
	if v.Rule != rewrite.Unparsable {
		return v.Rule.Slug()
	}
	i, ok := slices.BinarySearchFunc(c.file.tokens, at, func(t parser.Token, at int) int { return t.Start - at })
	if !ok {
		return "syntax error"
	}
	t := c.file.tokens[i]
	if t.IsLiteral() {
		return "syntax error at or near a literal"
	}
	return "syntax error at or near " + strings.ToLower(c.file.code[t.Start:t.End])
}
