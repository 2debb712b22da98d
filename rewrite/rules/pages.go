// Package rules has the pages of the rules by which fencerow refuses statements:
// FR101.md and so on. What a rule is called and refuses, package rewrite says.
package rules

import "embed"

// pages has one file for each rule, named by its id.
//
//go:embed *.md
var pages embed.FS

// Page returns the page of the rule with that id, such as "FR101": what the rule
// refuses, what to write instead, why, and what it leaves alone. The page is
// Markdown, and empty if there is no such rule.
func Page(id string) string {
	page, err := pages.ReadFile(id + ".md")
	if err != nil {
		return ""
	}
	return string(page)
}
