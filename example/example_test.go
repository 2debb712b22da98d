//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

func TestMain(m *testing.M) { localpg.Main(m) }

// TestExample builds the program once, and runs it as a user does.
func TestExample(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "example")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	t.Run("own server", func(t *testing.T) { testOwnServer(t, exe) })
	t.Run("existing server", func(t *testing.T) { testExistingServer(t, exe) })
	t.Run("unexpected outcome", func(t *testing.T) { testUnexpectedOutcome(t, exe) })
	t.Run("command line", func(t *testing.T) { testCommandLine(t, exe) })
	t.Run("wrong URL", func(t *testing.T) { testWrongURL(t, exe) })
	t.Run("killed", func(t *testing.T) { testKilled(t, exe) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, exe) })
}

const envURL = "FENCEROW_DATABASE_URL"

// command prepares a run against the database, or, if that is "", against a
// server of the program's own.
func command(t *testing.T, exe, url string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), exe, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, envURL+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if url != "" {
		cmd.Env = append(cmd.Env, envURL+"="+url)
	}
	return cmd
}

// result is how a run ended.
type result struct {
	status         int
	stdout, stderr string
}

func finish(t *testing.T, exe, url string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := command(t, exe, url, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NotNil(t, cmd.ProcessState, err)
	if url == "" {
		skipWithoutServer(t, stderr.String())
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// skipWithoutServer skips a test where tests are meant to use a server that
// runs already, and there is no other.
func skipWithoutServer(t *testing.T, stderr string) {
	if os.Getenv(envURL) != "" && strings.Contains(stderr, "no PostgreSQL server found") {
		t.Skip("the example needs a server of its own here: " + stderr)
	}
}

// requireStory looks for texts in their order, wherever lines are broken, in a
// run that went well.
func requireStory(t *testing.T, r result, texts ...string) {
	t.Helper()
	require.Zero(t, r.status, r.stdout+r.stderr)
	require.Empty(t, r.stderr)
	rest := strings.Join(strings.Fields(r.stdout), " ")
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		require.True(t, found, "%q is not in:\n%s", text, rest)
		rest = after
	}
	for line := range strings.Lines(r.stdout) {
		require.LessOrEqual(t, len(line)-1, 100, line)
	}
}

// fencedStory is what a run with these tokens tells.
func fencedStory(a, b int) []string {
	tokenA, tokenB := "token "+strconv.Itoa(a), "token "+strconv.Itoa(b)
	return []string{
		"gives the lock on row 1 to A, with " + tokenA,
		`worker A reads "initial"`,
		"worker A is FROZEN",
		"gives the lock to B, with " + tokenB,
		`writes "written by B" with ` + tokenB + ": accepted",
		"worker A WAKES UP",
		`writes "written by A" with ` + tokenA + ": REJECTED, 409 Conflict",
		"stale " + tokenA + ` on "protected_rows": the row carries ` + tokenB,
		"REFUSED, the statement was not sent",
		"handlers.go:",
		`UPDATE on protected table "protected_rows" has no last_token guard`,
		"(FR101 unguarded-update)",
		"UPDATE protected_rows SET value = $1 WHERE id = $2",
		`final value, read over a plain connection: "written by B" (` + tokenB + ")",
	}
}

var unfencedStory = []string{
	"gives the lock on row 1 to A",
	"worker A is FROZEN",
	`worker B writes "written by B": accepted`,
	"worker A WAKES UP",
	`worker A writes "written by A": ACCEPTED`,
	`final value, read over a plain connection: "written by A"`,
	"B's work is lost",
}

func testOwnServer(t *testing.T, exe string) {
	requireStory(t, finish(t, exe, ""), fencedStory(1, 2)...)
	requireStory(t, finish(t, exe, "", "-unsafe"), unfencedStory...)
}

// On an existing server all can be run again, and the rows stay.
func testExistingServer(t *testing.T, exe string) {
	dsn := localpg.Database(t)
	last := 0
	for range 2 {
		r := finish(t, exe, dsn)
		match := regexp.MustCompile(`to A, with token (\d+)`).FindStringSubmatch(r.stdout)
		require.NotNil(t, match, r.stdout+r.stderr)
		a, err := strconv.Atoi(match[1])
		require.NoError(t, err)
		require.Greater(t, a, last)
		last = a + 1
		requireStory(t, r, fencedStory(a, last)...)

		requireStory(t, finish(t, exe, dsn, "-unsafe"), unfencedStory...)

		var fenced, unfenced string
		var token int
		require.NoError(t, read(t.Context(), dsn, `SELECT p.value, p.last_token, u.value FROM protected_rows p JOIN unprotected_rows u USING (id)`, &fenced, &token, &unfenced))
		require.Equal(t, "written by B", fenced)
		require.Equal(t, last, token)
		require.Equal(t, "written by A", unfenced)
	}
}

func testUnexpectedOutcome(t *testing.T, exe string) {
	dsn := localpg.Database(t)
	require.NoError(t, protect(t.Context(), dsn))
	require.NoError(t, execute(t.Context(), dsn, `UPDATE protected_rows SET last_token = 99`))
	r := finish(t, exe, dsn)
	require.Equal(t, 1, r.status)
	require.Equal(t, `example: the write of B should answer 200 OK, and answers 409 Conflict: stale token 2 on "protected_rows": `+
		"the row carries token 99, so another holder has taken over; stop, and take the lock again before writing\n", r.stderr)
}

func testCommandLine(t *testing.T, exe string) {
	r := finish(t, exe, "", "-h")
	require.Equal(t, result{0, usage, ""}, r)
	require.LessOrEqual(t, strings.Count(usage, "\n"), 24, "fits a terminal")

	r = finish(t, exe, "", "-nonsense")
	require.Equal(t, result{2, "", "example: flag provided but not defined: -nonsense; -h explains\n"}, r)
	r = finish(t, exe, "", "nonsense")
	require.Equal(t, result{2, "", "example: it takes no arguments but flags, and there is \"nonsense\"; -h explains\n"}, r)
}

func testWrongURL(t *testing.T, exe string) {
	r := finish(t, exe, "postgres://u:hunter2@h:x/db")
	require.Equal(t, 1, r.status)
	require.Regexp(t, `^example: FENCEROW_DATABASE_URL is not a usable connection string [^\n]+\n$`, r.stderr)

	r = finish(t, exe, "host="+t.TempDir()+" user=u password=hunter2 dbname=d")
	require.Equal(t, 1, r.status)
	require.Regexp(t, `^example: FENCEROW_DATABASE_URL: connect to the PostgreSQL server: `, r.stderr)
	require.NotContains(t, r.stdout+r.stderr, "hunter2")
}
