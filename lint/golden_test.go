package lint

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) { localpg.Main(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// What tests print and how they end where their application forgets guards, as a
// reader of go test sees it.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", dir, "./testdata/watched", "./testdata/verified").CombinedOutput()
	require.NoError(t, err, "%s", out)
	tests := []struct {
		name   string // of the golden file; the first word is the package's
		args   string
		env    []string
		status int
	}{
		{"watched swallowed", "-test.run=^TestSwallowed$", nil, 1},
		{"watched open handle", "-test.run=^TestOpenHandle$", nil, 1},
		{"watched reported", "-test.run=^TestReported$", nil, 1},
		{"watched no token", "-test.run=^TestNoToken$", nil, 1},
		{"watched merged", "-test.run=^TestMerged$", nil, 1},
		{"watched parallel", "-test.run=^TestParallel$", nil, 1},
		{"watched subtests", "-test.run=^TestSubtests$", nil, 1},
		{"watched allowed elsewhere", "-test.run=^TestAllowedElsewhere$", nil, 1},
		{"watched allowed wrongly", "-test.run=^TestAllowedWrongly$", nil, 1},
		{"watched unused allow", "-test.run=^TestUnusedAllow$", nil, 1},
		{"watched other driver", "-test.run=^TestOtherDriver$", nil, 1},
		{"watched late", "-test.run=^TestLate$", nil, 0},
		{"", "-test.run=^(TestAllowed|TestSilent|TestUnusedAllowAfterSkip)$", nil, 0},

		{"verified swallowed", "", []string{"CASE=swallowed"}, 1},
		{"verified failed", "", []string{"CASE=failed"}, 1},
		{"verified unused allow", "", []string{"CASE=clean", "ALLOW=1"}, 1},
		{"verified coverage", "-fencerow.coverage", []string{"CASE=coverage"}, 0},
		{"verified coverage of nothing", "", []string{"FENCEROW_COVERAGE=1"}, 0},
		{"verified coverage json", "-fencerow.coverage=json", []string{"CASE=coverage"}, 0},
		{"verified", "", []string{"CASE=clean"}, 0},
		{"verified", "", []string{"CASE=swallowed", "ALLOW=1"}, 0},
		{"verified", "-test.run=Case", []string{"CASE=clean", "ALLOW=1"}, 0},
		{"verified", "-fencerow.coverage=false", []string{"CASE=watched", "FENCEROW_COVERAGE=json"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.args, func(t *testing.T) {
			pkg, rest, _ := strings.Cut(tt.name, " ")
			if pkg == "" {
				pkg = "watched"
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, pkg+".test"), strings.Fields(tt.args)...)
			cmd.Dir = filepath.Join("testdata", pkg) // as go test has it
			cmd.Env = append(os.Environ(), tt.env...)
			out, _ := cmd.CombinedOutput()
			require.Equal(t, tt.status, cmd.ProcessState.ExitCode(), "%s", out)
			got := normal(t, string(out))
			if rest == "" {
				require.Equal(t, "PASS\n", got)
				return
			}
			file := filepath.Join("testdata", "golden", strings.ReplaceAll(tt.name, " ", "_")+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got, "run go test . -update in lint, and look at the difference")
		})
	}
}

var (
	duration = regexp.MustCompile(`\d+\.\d+s`)
	subtest  = regexp.MustCompile(`(?m)^ {4}--- .*\n(?: {5,}.*\n)*`)
)

// normal returns output as it is wherever the checkout lies and whatever the clock
// says, with the subtests of a test by their names.
func normal(t *testing.T, out string) string {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	out = duration.ReplaceAllString(strings.ReplaceAll(out, filepath.ToSlash(root), "/repo"), "0.00s")
	subtests := subtest.FindAllString(out, -1)
	slices.Sort(subtests)
	i := 0
	return subtest.ReplaceAllStringFunc(out, func(string) string {
		i++
		return subtests[i-1]
	})
}
