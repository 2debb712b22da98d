package capture

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
)

var update = flag.Bool("update", false, "write the captured files instead of comparing them")

// committed is where the captured files are kept.
const committed = "../../internal/check/testdata/captured"

func TestFilesAreWhatLibrariesSend(t *testing.T) {
	srv := localpg.StartServer(t)
	if srv.Major() < 15 {
		t.Skipf("PostgreSQL %s has no MERGE, which some libraries are captured with", srv.Version())
	}
	dir := t.TempDir()
	if *update {
		dir = committed
	}
	require.NoError(t, captureAll(t.Context(), srv, dir))
	for _, lib := range libraries {
		t.Run(lib.name, func(t *testing.T) {
			file := lib.name + ".jsonl"
			want, got := readLines(t, filepath.Join(committed, file)), readLines(t, filepath.Join(dir, file))
			gone, added := missing(want, got), missing(got, want)
			if len(gone)+len(added) > 0 {
				t.Fatalf("%s is out of date: run go test . -update in internal/capture, and look at the difference.\nno longer sent:%s\nnew:%s",
					file, list(gone), list(added))
			}
			require.Equal(t, want, got, "the order differs: run go test . -update in internal/capture")
		})
	}
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// missing returns the lines of a that are not in b.
func missing(a, b []string) []string {
	have := make(map[string]bool)
	for _, line := range b {
		have[line] = true
	}
	var out []string
	for _, line := range a {
		if !have[line] {
			out = append(out, line)
		}
	}
	return out
}

// list shows some of the lines.
func list(lines []string) string {
	const most = 5
	if len(lines) == 0 {
		return " none"
	}
	more := ""
	if len(lines) > most {
		lines, more = lines[:most], "\n  ..."
	}
	return "\n  " + strings.Join(lines, "\n  ") + more
}
