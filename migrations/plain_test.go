package migrations_test

import (
	"io/fs"
	gotool "os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencerow/fencerow/internal/localpg"
	"github.com/fencerow/fencerow/migrations"
)

// The plain files do what goose does, up and down.
func TestPlain(t *testing.T) {
	files, err := migrations.Plain()
	require.NoError(t, err)
	ups, err := fs.Glob(files, "*.up.sql")
	require.NoError(t, err)
	require.Equal(t, []string{"00001_fencerow.up.sql"}, ups)
	downs, err := fs.Glob(files, "*.down.sql")
	require.NoError(t, err)

	byGoose := localpg.Database(t)
	p := gooseProvider(t, byGoose)
	byHand := localpg.Database(t)
	want, got := open(t, byGoose), open(t, byHand)
	send := func(name string) {
		t.Helper()
		text, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		require.NotContains(t, string(text), "+goose")
		_, err = got.Exec(t.Context(), string(text))
		require.NoError(t, err, name)
		require.Equal(t, get[[]string](t, want, description), get[[]string](t, got, description), name)
	}
	for _, name := range ups {
		_, err := p.UpByOne(t.Context())
		require.NoError(t, err)
		send(name)
	}
	_, err = got.Exec(t.Context(), `CREATE TABLE orders (id int); SELECT fencing.register('orders', 'strict'), fencing.wall('orders')`)
	require.NoError(t, err)
	slices.Reverse(downs)
	for _, name := range downs {
		_, err := p.Down(t.Context())
		require.NoError(t, err)
		send(name)
	}
}

// What the command writes is what Plain returns.
func TestPlainCommand(t *testing.T) {
	out, err := gotool.CommandContext(t.Context(), "go", "run", "./plain").Output()
	require.NoError(t, err)
	dsn := localpg.Database(t)
	conn := open(t, dsn)
	_, err = conn.Exec(t.Context(), string(out))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `CREATE TABLE orders (id int)`)
	require.NoError(t, err)
	require.NoError(t, migrations.Register(t.Context(), dsn, migrations.Table{Name: "orders", Mode: migrations.Lease}))
	require.NoError(t, migrations.Wall(t.Context(), dsn, "orders", migrations.WallEnforce))
}
