package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const small = `package stdlib_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
)

func skipSome(t testing.TB, db *sql.DB) {
	_ = db
}

func TestOne(t *testing.T) {
	db, err := sql.Open("pgx", "")
	_, _ = db, err
	_ = stdlib.OpenDB // and sql.Open in a comment
}

func helper() {}
`

func TestSwapped(t *testing.T) {
	s, err := parse(small)
	require.NoError(t, err)
	require.Equal(t, []string{"TestOne"}, s.tests())
	got, err := s.swapped()
	require.NoError(t, err)
	want := strings.NewReplacer(
		`"github.com/jackc/pgx/v5/stdlib"`, `stdlib "github.com/fencerow/fencerow/internal/pgxsuite/opening"`,
		`sql.Open("pgx"`, `stdlib.Open("pgx"`,
		`db *sql.DB) {`, `db *sql.DB) { db = stdlib.Plain(t);`,
	).Replace(small)
	require.Equal(t, want, got)
}

func TestSwappedFindsNothing(t *testing.T) {
	for _, missing := range []string{`"github.com/jackc/pgx/v5/stdlib"`, "sql.Open(", "skipSome"} {
		s, err := parse(strings.Replace(small, missing, strings.ToUpper(missing), 1))
		require.NoError(t, err)
		_, err = s.swapped()
		require.ErrorContains(t, err, "has changed", missing)
	}
}

// TestPinnedSuite finds out with an ordinary test run that a new pgx has
// changed what the swap rests on.
func TestPinnedSuite(t *testing.T) {
	s, err := find(t.Context())
	require.NoError(t, err)
	_, err = s.source.swapped()
	require.NoError(t, err)
	tests := make(results)
	for _, name := range s.source.tests() {
		tests[name] = result{}
	}
	require.Empty(t, unknown(tests, skips))
}
