package migrateapp

import (
	"database/sql"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

func TestMain(m *testing.M) { localpg.Main(m) }

// golang-migrate applies the migrations of schema fencing, up and down.
func TestFencing(t *testing.T) {
	dsn := localpg.Database(t)
	files, err := migrations.Plain()
	require.NoError(t, err)
	source, err := iofs.New(files, ".")
	require.NoError(t, err)
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	driver, err := pgx.WithInstance(db, &pgx.Config{})
	require.NoError(t, err)
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	require.NoError(t, err)
	require.NoError(t, m.Up())
	_, err = db.Exec(`CREATE TABLE orders (id int)`)
	require.NoError(t, err)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", migrations.WallEnforce))
	_, err = db.Exec(`INSERT INTO orders VALUES (1)`)
	require.ErrorContains(t, err, "FN00")
	require.NoError(t, m.Down())
	errSource, errDriver := m.Close()
	require.NoError(t, errSource)
	require.NoError(t, errDriver)
}
