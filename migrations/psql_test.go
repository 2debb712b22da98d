package migrations_test

import (
	"context"
	"flag"
	"os"
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

var update = flag.Bool("update", false, "write the golden files anew")

// client prepares a run of one of the server's own client programs, deaf to
// what the environment says of other servers.
func client(ctx context.Context, path string, args ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(ctx, path, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "LC_") && !strings.HasPrefix(v, "LANG") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}

const (
	wallPage  = "../docs/wall.md"
	beginMark = "<!-- output of migrations/testdata/wall.sql -->\n```text\n"
	endMark   = "```\n<!-- end of output -->\n"
)

// The page about the wall shows what psql prints for the script. It is compared
// where the server brings its psql, as packages do: one of another version may
// print other words.
func TestWallPage(t *testing.T) {
	srv := localpg.StartServer(t)
	psql, ok := srv.Client("psql")
	if !ok {
		t.Logf("no psql beside the server %s: the page is not compared", srv.Version())
		return
	}
	require.NoError(t, srv.CreateDatabase(t.Context(), "shop", ""))
	require.NoError(t, migrations.Up(t.Context(), srv.DSN("shop")))
	script, err := os.Open("testdata/wall.sql")
	require.NoError(t, err)
	defer script.Close()
	cmd := client(t.Context(), psql, "-X", "-e", srv.DSN("shop"))
	cmd.Stdin = script
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))

	page, err := os.ReadFile(wallPage)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), beginMark)
	require.True(t, ok, "the page has no place for the output")
	shown, after, ok := strings.Cut(rest, endMark)
	require.True(t, ok, "the page has no end of the output")
	if *update {
		require.NoError(t, os.WriteFile(wallPage, []byte(before+beginMark+string(out)+endMark+after), 0o644))
		return
	}
	require.Equal(t, shown, string(out), "run go test ./migrations -run TestWallPage -update, and read the difference")
}

// golden compares a text with a file, or writes it there.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run the test with -update, and read the difference")
}
