package migrations_test

import (
	"database/sql"
	"io/fs"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// gooseProvider is goose as the doc comment of FS shows it, with a version
// table that is found on the search path.
func gooseProvider(t *testing.T, dsn string) *goose.Provider {
	t.Helper()
	return gooseProviderOf(t, dsn, "fencing_db_version")
}

func gooseProviderOf(t *testing.T, dsn, versions string) *goose.Provider {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	files, err := fs.Sub(migrations.FS, "sql")
	require.NoError(t, err)
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versions))
	require.NoError(t, err)
	return p
}

func TestGooseRunsTheFiles(t *testing.T) {
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	exec(t, conn, "CREATE SCHEMA app")
	dsn = with(dsn, "search_path", "app")
	p := gooseProvider(t, dsn)
	for range 2 { // up, all the way down, up again
		results, err := p.Up(t.Context())
		require.NoError(t, err)
		require.Len(t, results, len(p.ListSources()))
		require.Equal(t, int64(1), get[int64](t, conn, "SELECT fencing.next_token()"))
		require.Equal(t, int64(len(results)), get[int64](t, conn, "SELECT max(version_id) FROM app.fencing_db_version"))

		_, err = p.DownTo(t.Context(), 0)
		require.NoError(t, err)
		require.False(t, get[bool](t, conn, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'fencing')"))
	}
}

// The two ways of installing know of each other: neither destroys what the
// other keeps its record of.
func TestGooseAndUp(t *testing.T) {
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	_, err := gooseProvider(t, dsn).Up(t.Context())
	require.NoError(t, err)

	requireRefused(t, migrations.Up(t.Context(), dsn), "42P07", "not installed by migrations.Up", "go on using that")
	_, err = gooseProvider(t, dsn).DownTo(t.Context(), 0)
	require.NoError(t, err)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.NoError(t, migrations.Down(t.Context(), dsn))

	_, err = gooseProvider(t, dsn).Up(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, migrations.Down(t.Context(), dsn), "not installed by migrations.Up")
	require.Equal(t, int64(1), get[int64](t, conn, "SELECT fencing.next_token()"))
}

// A program's own Go migrations, registered with goose's global registry, are
// none of ours.
func TestUpIgnoresRegisteredGoMigrations(t *testing.T) {
	t.Cleanup(goose.ResetGlobalMigrations)
	require.NoError(t, goose.SetGlobalMigrations(goose.NewGoMigration(1, &goose.GoFunc{}, nil)))
	dsn := localpg.Database(t)
	require.NoError(t, migrations.Up(t.Context(), dsn))
	require.Equal(t, int64(1), get[int64](t, open(t, dsn), "SELECT fencing.next_token()"))
}
