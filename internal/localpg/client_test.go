package localpg

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClient(t *testing.T) {
	dir := t.TempDir()
	psql := filepath.Join(dir, "psql")
	require.NoError(t, os.WriteFile(psql, nil, 0o755))
	s := &Server{cluster: &cluster{bin: dir}}
	path, ok := s.Client("psql")
	require.True(t, ok)
	require.Equal(t, psql, path)
	_, ok = s.Client("pg_dump")
	require.False(t, ok)
	_, ok = (&Server{}).Client("psql")
	require.False(t, ok, "an existing server may be of another version")
}
