package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fencerow/fencerow/internal/pgdownload"
)

// ErrNoServer says that there are no server binaries on this machine and none
// could be downloaded.
var ErrNoServer = errors.New("no PostgreSQL server found: install one (Debian: apt-get install postgresql, macOS: brew install postgresql), " +
	"or set " + envBin + " to its bin directory, or " + envURL + " to a running server")

// finder looks for a directory that holds initdb and postgres. ensure.sh looks
// in the same places.
type finder struct {
	globs   []string           // the places packages install to, asked in this order
	cache   string             // where downloaded binaries are kept
	release pgdownload.Release // what is downloaded
}

func newFinder() finder {
	return finder{
		globs: []string{
			"/usr/lib/postgresql/*/bin",
			"/opt/homebrew/opt/postgresql*/bin",
			"/usr/local/opt/postgresql*/bin",
		},
		cache:   cacheDir(),
		release: pgdownload.Newest(),
	}
}

// find returns the first directory that has a server, downloading one if the
// machine has none.
func (f finder) find(ctx context.Context) (string, error) {
	if dir := os.Getenv(envBin); dir != "" {
		return named(dir)
	}
	for _, dir := range f.installed(ctx) {
		if isBinDir(dir) {
			return dir, nil
		}
	}
	dir, err := download(ctx, f.cache, f.release)
	if err != nil {
		return "", fmt.Errorf("%w (a download was tried: %w)", ErrNoServer, err)
	}
	return dir, nil
}

// named checks the directory that the user chose. There is no way on from a
// wrong one: tests would run on a server nobody asked for.
func named(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s=%s: %w", envBin, dir, err)
	}
	if !isBinDir(abs) {
		return "", fmt.Errorf("%s=%s has no executable initdb and postgres: set it to the bin directory of a PostgreSQL server", envBin, dir)
	}
	return abs, nil
}

// installed lists the directories worth a look, best first.
func (f finder) installed(ctx context.Context) []string {
	var dirs []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		// What stands in PATH may be a link to one program of a server. The
		// server is where the link leads: postgres finds its files from there.
		exe, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err == nil && filepath.IsAbs(exe) {
			dirs = append(dirs, filepath.Dir(exe))
		}
	}
	for _, glob := range f.globs {
		found, _ := filepath.Glob(glob) // the patterns are constants
		slices.SortStableFunc(found, func(a, b string) int { return slices.Compare(version(b), version(a)) })
		dirs = append(dirs, found...)
	}
	return dirs
}

var digits = regexp.MustCompile(`\d+`)

// version is the numbers in the name of the directory above bin: 9.6 is older
// than 10.
func version(dir string) []int {
	var v []int
	for _, d := range digits.FindAllString(filepath.Base(filepath.Dir(dir)), -1) {
		n, _ := strconv.Atoi(d)
		v = append(v, n)
	}
	return v
}

// isBinDir says whether dir has all it takes to run a server. Client packages
// leave a bin directory without initdb.
func isBinDir(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}
