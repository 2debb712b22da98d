package fencerow_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files returns the repository's files that match a pattern, by their paths. Hidden
// directories are left out but for .github.
func files(t *testing.T, pattern string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".github" {
			return filepath.SkipDir
		}
		matches, err := filepath.Match(pattern, entry.Name())
		if matches {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	}))
	return paths
}

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	pageLink  = regexp.MustCompile(`\]\(([^)\s]+)\)|(?m)^\[[^\]]+\]: (\S+)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// ownFiles is where files of this repository are shown on the web.
const ownFiles = "https://github.com/fencerow/fencerow/blob/main/"

// Each link from a page to a file of the repository, or to a heading, leads somewhere.
func TestLinks(t *testing.T) {
	pages := files(t, "*.md")
	require.Greater(t, len(pages), 60)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		prose := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(string(text), ""), "`code`")
		for _, match := range pageLink.FindAllStringSubmatch(prose, -1) {
			link := match[1] + match[2]
			path, anchor, _ := strings.Cut(link, "#")
			switch {
			case strings.HasPrefix(link, ownFiles):
				path = strings.TrimPrefix(path, ownFiles)
			case strings.Contains(link, "://"):
				continue
			case path == "":
				path = page
			default:
				path = filepath.Join(filepath.Dir(page), path)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s: %s", page, link)
			if anchor != "" {
				require.Contains(t, anchors(t, path), anchor, "%s: %s", page, link)
			}
		}
	}
}

// anchors returns what GitHub calls the headings of a page.
func anchors(t *testing.T, page string) (slugs []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
		slugs = append(slugs, strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return slugs
}

// Dependabot looks at each module.
func TestEveryModuleIsKeptUpToDate(t *testing.T) {
	config, err := os.ReadFile(".github/dependabot.yml")
	require.NoError(t, err)
	_, gomod, _ := strings.Cut(string(config), "directories:\n")
	gomod, _, _ = strings.Cut(gomod, "schedule:")
	var want, got []string
	for _, file := range files(t, "go.mod") {
		want = append(want, strings.TrimSuffix("/"+strings.TrimSuffix(filepath.ToSlash(filepath.Dir(file)), "."), "/."))
	}
	for _, match := range regexp.MustCompile(`(?m)^ +- (/\S*)$`).FindAllStringSubmatch(gomod, -1) {
		got = append(got, match[1])
	}
	slices.Sort(want)
	require.Equal(t, want, got)
}

// What the workflows run with make is a target of the Makefile.
func TestWorkflowsRunTargets(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	count := 0
	for _, file := range files(t, "*.yml") {
		if !strings.HasPrefix(file, ".github/workflows/") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)(?:run: make|- target:) ([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, string(makefile), "\n"+match[1]+":", file)
			count++
		}
	}
	require.Greater(t, count, 10)
}
