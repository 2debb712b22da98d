package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fencerow/fencerow/lint"
	"github.com/fencerow/fencerow/lint/sqlfiles"
)

const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// maxListed is how many statements are listed in text that aren't analysed.
const maxListed = 20

// printLintText writes the findings, and to stderr the notes and a summary.
func printLintText(env *environment, r *sqlfiles.Result) {
	for _, f := range r.Findings {
		text := f.String()
		if env.colour {
			text = coloured(f)
		}
		fmt.Fprintln(env.stdout, text)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(env.stderr, n)
	}
	for i, n := range r.NotAnalysed {
		if i == maxListed {
			fmt.Fprintf(env.stderr, "%d more are not analysed: --format json lists them\n", len(r.NotAnalysed)-i)
			break
		}
		n.Text = "not analysed: " + n.Text
		fmt.Fprintln(env.stderr, n)
	}
	fmt.Fprintln(env.stderr, summary(r))
}

// coloured is the finding's text with its place, caret and fix standing out.
func coloured(f lint.Finding) string {
	lines := strings.Split(f.String(), "\n")
	if place := f.Place(); place != "" {
		lines[0] = bold + place + reset + strings.TrimPrefix(lines[0], place)
	}
	for i, line := range lines[1:] {
		trimmed := strings.TrimLeft(line, " |")
		switch {
		case trimmed != "" && strings.Trim(trimmed, "^") == "":
			line = strings.TrimSuffix(line, trimmed) + red + trimmed + reset
		case strings.HasPrefix(line, "  fix:"):
			line = green + line + reset
		case strings.HasPrefix(line, "  docs:"):
			line = dim + line + reset
		}
		lines[i+1] = line
	}
	return strings.Join(lines, "\n")
}

func summary(r *sqlfiles.Result) string {
	var b strings.Builder
	files := map[string]bool{}
	for _, f := range r.Findings {
		files[f.Path] = true
	}
	of := ""
	if n := len(files); n > 0 && n < r.Files {
		of = fmt.Sprintf("%d of ", n)
	}
	fmt.Fprintf(&b, "%s in %s%s, %s", count(len(r.Findings), "finding"), of, count(r.Files, "file"), count(r.Statements, "statement"))
	if r.Cleared > 0 {
		fmt.Fprintf(&b, " (%d cleared without the parser)", r.Cleared)
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "; %s of other databases passed over", count(r.Skipped, "file"))
	}
	if r.Suppressed > 0 {
		fmt.Fprintf(&b, "; %d suppressed", r.Suppressed)
	}
	reasons := slices.SortedFunc(maps.Keys(r.Unparsed), func(a, b string) int {
		return cmp.Or(r.Unparsed[b]-r.Unparsed[a], cmp.Compare(a, b))
	})
	for i, reason := range reasons {
		sep := ", "
		if i == 0 {
			sep = "; not analysed: "
		}
		fmt.Fprintf(&b, "%s%d (%s)", sep, r.Unparsed[reason], reason)
	}
	return b.String()
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// lintJSON is the output of lint --format json. Its keys stay as they are.
type lintJSON struct {
	Findings   []findingJSON  `json:"findings"`
	Files      int            `json:"files"`
	Skipped    int            `json:"skipped"`
	Statements int            `json:"statements"`
	Cleared    int            `json:"cleared"`
	Suppressed int            `json:"suppressed"`
	Unparsed   map[string]int `json:"unparsed"`
	Notes      []noteJSON     `json:"notes"`

	NotAnalysed []unparsedJSON `json:"not_analysed"`
}

type findingJSON struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Rule    string `json:"rule"`
	Name    string `json:"name"`
	Table   string `json:"table,omitempty"`
	Message string `json:"message"`
	Details string `json:"details"`
	Fix     string `json:"fix,omitempty"`
	Times   int    `json:"times"`
}

// unparsedJSON is a statement of unparsed that is not a finding.
type unparsedJSON struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

type noteJSON struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func printLintJSON(w io.Writer, r *sqlfiles.Result) error {
	out := lintJSON{
		Findings: []findingJSON{}, Files: r.Files, Skipped: r.Skipped, Statements: r.Statements, Cleared: r.Cleared,
		Suppressed: r.Suppressed, Unparsed: r.Unparsed, Notes: []noteJSON{}, NotAnalysed: []unparsedJSON{},
	}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, findingJSON{f.Path, f.Line, f.Column, string(f.Rule), f.Rule.Slug(), f.Table, f.Message, f.Details, f.Fix, f.Times})
	}
	for _, n := range r.Notes {
		out.Notes = append(out.Notes, noteJSON(n))
	}
	for _, n := range r.NotAnalysed {
		out.NotAnalysed = append(out.NotAnalysed, unparsedJSON{n.Path, n.Line, n.Text})
	}
	return printJSON(w, out)
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLintGitHub writes the findings as workflow commands, which show up beside
// the lines of a change.
func printLintGitHub(w io.Writer, r *sqlfiles.Result) {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range r.Findings {
		text := f.Message
		if f.Details != "" {
			text += "\n" + f.Details
		}
		fmt.Fprintf(w, "::error file=%s,line=%d,col=%d,title=%s::%s\n",
			property.Replace(f.Path), f.Line, f.Column, property.Replace(fmt.Sprintf("%s %s", f.Rule, f.Rule.Slug())), data.Replace(text))
	}
}
