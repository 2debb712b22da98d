package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/rewrite"
)

// Finding is a statement that the check refuses, at a place in a program or in a
// file of SQL.
type Finding struct {
	Path         string       // of the file, "" if it isn't known
	Line, Column int          // from 1; a column of 0 isn't known
	Rule         rewrite.Rule // why
	Table        string       // the protected table, if one is concerned
	Message      string       // one line: what is wrong and what to do
	Details      string       // the line of SQL with a caret, the fix and the rule's page, a line each
	Fix          string       // the statement as it should be, if known; literals are shown as "?"
	Times        int          // how often it was found there
}

// FindingOf makes a finding of a violation, at the line that the violation names.
func FindingOf(v *rewrite.Violation) Finding {
	f := Finding{Rule: v.Rule, Table: v.Table, Message: v.Message, Fix: v.Fix, Times: 1}
	f.Path, f.Line = splitLocation(v.Location)
	if _, details, ok := strings.Cut(v.Error(), "\n"); ok {
		f.Details = details
	}
	return f
}

// FindingFromError is [FindingOf] for the violation that an error wraps. If the error wraps no
// violation, ok is false.
func FindingFromError(err error) (f Finding, ok bool) {
	var v *rewrite.Violation
	if !errors.As(err, &v) {
		return Finding{}, false
	}
	return FindingOf(v), true
}

// Place returns path:line:column, as far as they are known.
func (f Finding) Place() string {
	switch {
	case f.Path == "":
		return ""
	case f.Line == 0:
		return f.Path
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.Path, f.Line)
	}
	return fmt.Sprintf("%s:%d:%d", f.Path, f.Line, f.Column)
}

// Headline returns the finding on one line: place, message, rule.
func (f Finding) Headline() string {
	where := f.Place()
	if where != "" {
		where += ": "
	}
	line := fmt.Sprintf("%s%s (%s %s)", where, f.Message, f.Rule, f.Rule.Slug())
	if f.Times > 1 {
		line += fmt.Sprintf(", %d times", f.Times)
	}
	return line
}

// String returns the headline and the details, without a line break at the end.
func (f Finding) String() string {
	if f.Details == "" {
		return f.Headline()
	}
	return f.Headline() + "\n" + f.Details
}

// MergeFindings sorts findings by place and rule, and merges equal findings at one place into
// one, which counts them.
func MergeFindings(findings []Finding) []Finding {
	sorted := slices.Clone(findings)
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	var out []Finding
	for _, f := range sorted {
		if n := len(out) - 1; n >= 0 && out[n].isSameAs(f) {
			out[n].Times += f.Times
			continue
		}
		out = append(out, f)
	}
	return out
}

func (f Finding) isSameAs(other Finding) bool {
	return f.Path == other.Path && f.Line == other.Line && f.Column == other.Column && f.Rule == other.Rule && f.Message == other.Message
}

// splitLocation splits file:line. Windows paths have a colon of their own.
func splitLocation(location string) (path string, line int) {
	i := strings.LastIndexByte(location, ':')
	if i < 0 {
		return location, 0
	}
	line, err := strconv.Atoi(location[i+1:])
	if err != nil {
		return location, 0
	}
	return location[:i], line
}
