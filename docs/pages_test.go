package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/docs"
	"github.com/fencerow/fencerow/internal/aftermath"
)

// Each error of the wall has a page, which begins with its code.
func TestWallErrors(t *testing.T) {
	codes := []string{aftermath.WallStale, aftermath.WallNoToken, aftermath.WallNotIssued, aftermath.WallNotAllowed}
	for _, code := range codes {
		require.True(t, strings.HasPrefix(docs.WallError(code), "# "+code+" "), code)
	}
	files, err := filepath.Glob("errors/*.md")
	require.NoError(t, err)
	require.Len(t, files, len(codes))
	require.Empty(t, docs.WallError("FN999"))
}

// Each finding in the sources of the doctor has a text.
func TestFindings(t *testing.T) {
	files, err := filepath.Glob("../migrations/sql/src/8*_doctor*.sql")
	require.NoError(t, err)
	files = append(files, "../migrations/doctor.go", "../migrations/doctor_try.go")
	codes := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`['"](D[0-9]{3}) ([a-z-]+)['"]`).FindAllStringSubmatch(string(source), -1) {
			codes[match[1]] = true
			text := docs.Finding(match[1])
			require.True(t, strings.HasPrefix(text, "# "+match[1]+" "+match[2]+"\n"), "%s: %s", match[0], text)
		}
	}
	require.Greater(t, len(codes), 60)
	require.Empty(t, docs.Finding("D999"))
	require.Equal(t, "# D203 trigger-disabled\n\nA finding of the doctor, of severity error (the protection is gone, in part at least, or the application's role can take it away): "+
		"a trigger of the wall that isn't ENABLE ALWAYS; where a subscription writes the table, one that isn't enabled.\n\n"+
		"`fencerow doctor` names the object, and the statement that mends it. What the doctor does:\nhttps://github.com/fencerow/fencerow/blob/main/docs/doctor.md\n", docs.Finding("D203"))
}
