package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/pgdownload"
)

func TestChoose(t *testing.T) {
	all, err := choose("")
	require.NoError(t, err)
	require.Equal(t, pgdownload.Releases, all)
	some, err := choose("18,16")
	require.NoError(t, err)
	require.Len(t, some, 2)
	require.Equal(t, "18", some[0].Major())
	require.Equal(t, "16", some[1].Major())
	_, err = choose("16,9")
	require.EqualError(t, err, `no server of PostgreSQL "9" is pinned: add one to internal/pgdownload/pins.go`)
}

func TestRunAll(t *testing.T) {
	t.Setenv("FENCEROW_DATABASE_URL", "postgres://elsewhere/")
	t.Setenv("FENCEROW_PG_BIN", "/elsewhere")
	servers := func(_ context.Context, r pgdownload.Release) (string, error) {
		if r.Major() == "17" {
			return "", errors.New("cannot\nfetch")
		}
		return "/" + r.Major(), nil
	}
	command := []string{"/bin/sh", "-c", `echo "on $FENCEROW_PG_BIN$FENCEROW_DATABASE_URL"; [ $FENCEROW_PG_BIN != /16 ]`}
	chosen := []pgdownload.Release{{Version: "16.1.0-beta.2"}, {Version: "17.1.0-beta.2"}, {Version: "18.1.0-beta.2"}}

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
