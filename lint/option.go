package lint

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// Option changes what is a finding.
type Option func(*collector)

// Allow expects statements that a rule refuses, on the named tables or, without names,
// on any table. They are not findings. The reason is for the reader of the test. If no
// such statement was sent, the Allow itself is a finding, unless the tests didn't run
// to their end or [VerifyMain] runs only some of them.
func Allow(rule rewrite.Rule, reason string, tables ...string) Option {
	_, path, line, _ := runtime.Caller(1)
	if len(tables) == 0 {
		tables = []string{""}
	}
	return func(c *collector) {
		for _, table := range tables {
			c.allowed = append(c.allowed, &allowance{rule: rule, table: strings.TrimPrefix(table, "public."), reason: reason, path: path, line: line})
		}
	}
}

// allowance is an Allow of one table, or of all.
type allowance struct {
	rule          rewrite.Rule
	table, reason string
	path          string
	line          int
	isUsed        bool
}

func (a *allowance) covers(v *rewrite.Violation) bool {
	return a.rule == v.Rule && (a.table == "" || a.table == v.Table)
}

// problem says what is wrong with an allowance before anything has run, "" if nothing is.
func (a *allowance) problem() string {
	switch {
	case !slices.ContainsFunc(rewrite.Rules(), func(r rewrite.RuleInfo) bool { return r.ID == a.rule }):
		return "lint.Allow names no rule that there is: see docs/rules.md"
	case strings.TrimSpace(a.reason) == "":
		return "lint.Allow gives no reason: say why the refusal is expected"
	}
	return ""
}

// unusedMessage is the message of the finding for an unused allowance.
func (a *allowance) unusedMessage() string {
	where := ""
	if a.table != "" {
		where = fmt.Sprintf(" on %q", a.table)
	}
	return fmt.Sprintf("lint.Allow (%s) met no such statement%s: remove it", a.reason, where)
}

func (a *allowance) finding(message string) Finding {
	return Finding{Path: a.path, Line: a.line, Rule: a.rule, Table: a.table, Message: message, Times: 1}
}
