package rewrite

import "embed"

// rulePages are the pages of the rules, one file for each, named by its id.
//
//go:embed rules/*.md
var rulePages embed.FS

// Doc returns the rule's page: what it refuses, what to write instead, why,
// and what it leaves alone. It is Markdown, and empty for an unknown rule.
func (r Rule) Doc() string {
	page, err := rulePages.ReadFile("rules/" + string(r) + ".md")
	if err != nil {
		return ""
	}
	return string(page)
}

// Doc returns the page of the violation's rule, see [Rule.Doc].
func (v *Violation) Doc() string { return v.Rule.Doc() }
