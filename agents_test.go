package fencerow_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/rewrite"
)

// The text for agents has ten lines, whose statements the check accepts, in the mode that
// they are written for and, as the page says, with < in mode strict.
func TestAgentsText(t *testing.T) {
	page, err := os.ReadFile("docs/agents.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```markdown\n")
	text, _, isClosed := strings.Cut(rest, "```\n")
	require.True(t, isClosed)
	require.Len(t, regexp.MustCompile(`(?m)^[0-9]+\. .+$`).FindAllString(text, -1), 10)

	lease, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Lease})
	require.NoError(t, err)
	strict, err := rewrite.NewPolicy(rewrite.Table{Name: "orders", Mode: rewrite.Strict})
	require.NoError(t, err)
	statements := regexp.MustCompile("`((?:UPDATE|DELETE|INSERT) [^`]+)`").FindAllStringSubmatch(text, -1)
	var kinds []string
	for _, match := range statements {
		kinds = append(kinds, strings.Fields(match[1])[0])
		requireGuarded(t, lease, match[1])
		requireGuarded(t, strict, strings.ReplaceAll(match[1], "<=", "<"))
	}
	require.Equal(t, []string{"UPDATE", "DELETE", "INSERT", "INSERT"}, kinds)
	for _, id := range regexp.MustCompile(`FR[0-9]+`).FindAllString(text, -1) {
		require.NotEmpty(t, rewrite.Rule(id).Doc(), id)
	}
	for _, name := range regexp.MustCompile("`(lease|driver|lint|tokenctx)\\.([A-Z]\\w*)`").FindAllStringSubmatch(string(page), -1) {
		require.True(t, slices.ContainsFunc(sources(t, name[1]), func(source string) bool {
			return regexp.MustCompile(`(?m)^(func |var |\t)` + name[2] + `\b`).MatchString(source)
		}), "package %s has no %s", name[1], name[2])
	}
}

// requireGuarded requires that the policy sends a statement as one that writes orders.
func requireGuarded(t *testing.T, policy *rewrite.Policy, statement string) {
	t.Helper()
	plan := policy.Plan(statement)
	require.NoError(t, plan.Refusal(), statement)
	require.NotEmpty(t, plan.Writes(), statement)
}

// sources returns the texts of a package's files.
func sources(t *testing.T, dir string) (texts []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".go") && !strings.HasSuffix(entry.Name(), "_test.go") {
			text, err := os.ReadFile(dir + "/" + entry.Name())
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
	}
	return texts
}
