package driver_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var plantHoles = flag.Bool("holes", false, "plant each hole into the closure, and see that its test finds it")

// hole is a fault that a change of what is read from the catalog could bring in: a
// text in one of the files, and what stands there instead.
type hole struct{ name, file, sound, unsound string }

// planHoles are holes in the check of one text, which a table of cases finds.
var planHoles = []hole{
	{"an event trigger is enabled in the text", "../internal/check/onetext.go", `case "AlterEventTrigStmt", "CreateEventTrigStmt":`, `case "CreateEventTrigStmt":`},
}

var holes = []hole{
	{"a generated key is not followed", "../internal/reach/closure.go", `r := b.relations[g.Relation]; r != nil {`, `r := b.relations[g.Relation]; r == nil {`},
	{"a key that a trigger changes is not followed", "../internal/reach/changer.go", `isColumn && change.changes(column)`, `isColumn && false && change.changes(column)`},
	{"a key of another table is not followed", "../internal/reach/closure.go", `b.addFor(parent.cascade, event, child.family)`, `_ = child.family`},
	{"a name that a body gives to something else is not noted", "../internal/reach/closurecode.go", `b.shadowed(out, t.Name)`, `_ = t`},
	{"a string that goes on behind a line is not joined", "../internal/reach/routinelex.go", `if gap == 0 {`, `if gap >= 0 {`},
	{"what changes the catalog is not looked for", "../internal/reach/closuremakers.go", `if c.Routines[i].read().unread != "" {`, `if c.Routines[i].read().unread == "x" {`},
	{"a trigger that changes the catalog is not looked for", "../internal/reach/closuremakers.go", `if r := b.relations[c.Relations[i].OID]; r.makes() {`, `if r := b.relations[c.Relations[i].OID]; r.makes() && false {`},
	{"an open transaction does not look for what it has changed", "within.go", `case status != 'T' || !c.within.unread:`, `case status != 'I' || !c.within.unread:`},
	{"an object that belongs to no relation is not told", "../internal/reach/closurefound.go", `out.Unseen = b.unseenFound()`, `_ = b.unseenFound()`},
	{"an expression that runs what it is given is not told", "../internal/reach/closureexpression.go", `b.addFor(r.code, event, b.reachedBy(e))`, `_ = event`},
	{"a body that isn't read writes nothing", "../internal/reach/closurecode.go", `if b.why(body) != "" {`, `if b.making && b.why(body) != "" {`},
	{"a trigger's copy of the old row is taken for one of the new row", "../internal/reach/changercopy.go", `r.word(i+2) == "new" && r.word(i+3)`, `r.word(i+3)`},
	{"a trigger may return the old row where the two are distinct", "../internal/reach/changer.go", `is, then := "is not distinct from", i-1`, `is, then := "is distinct from", i-1`},
	{"a trigger may change the token", "../internal/reach/closurefound.go", `if i := b.withoutWall(changed); !b.tables[i].HasWall || t.Trigger < wallMark {`, `if i := b.withoutWall(changed); b.tables[i].HasWall {`},
}

// A test that can't fail shows nothing: each hole has to be found. Planting them
// all takes minutes, so it is done with -holes only; without it the list is held
// against the code.
func TestHoles(t *testing.T) {
	eachHole(t, holes, func(t *testing.T, h hole, source string) {
		out, err := runPlanted(t, h, source, "-run", "^TestDifferentialEnvironments$", "-rapid.checks=5000", "-rapid.nofailfile", "-rapid.shrinktime=2s")
		require.Error(t, err, "the hole was not found within 5,000 sessions")
		require.Contains(t, out, "failed after", "%s", out)
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, "failed after") || strings.Contains(line, "statements:") || strings.Contains(line, "carried token") {
				t.Log(strings.TrimSpace(line))
			}
		}
	})
	eachHole(t, planHoles, func(t *testing.T, h hole, source string) {
		out, err := runPlanted(t, h, source, "-run", "^TestOneText$")
		require.Error(t, err, "the hole was not found")
		require.Contains(t, out, "--- FAIL: TestOneText/", "%s", out)
	})
}

// eachHole makes sure that the source has what each hole changes, and has them
// planted if that was asked for.
func eachHole(t *testing.T, holes []hole, plant func(t *testing.T, h hole, source string)) {
	for _, h := range holes {
		t.Run(h.name, func(t *testing.T) {
			source, err := os.ReadFile(h.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), h.sound), "%s no longer has this text once: %s", h.file, h.sound)
			if *plantHoles {
				plant(t, h, strings.Replace(string(source), h.sound, h.unsound, 1))
			}
		})
	}
}

// runPlanted runs a test of this package over the source with the hole.
func runPlanted(t *testing.T, h hole, source string, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(h.file)
	require.NoError(t, err)
	planted := filepath.Join(dir, filepath.Base(h.file))
	require.NoError(t, os.WriteFile(planted, []byte(source), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: planted}})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))
	out, err := exec.Command("go", append([]string{"test", "-overlay", overlayFile, "-count=1", "."}, args...)...).CombinedOutput()
	return string(out), err
}
