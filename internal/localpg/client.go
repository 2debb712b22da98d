package localpg

import (
	"os"
	"path/filepath"
)

// Client returns the path of a client program, such as psql or pg_dump, that
// stands beside this server's own and so is of its version. There is none for
// an existing server, nor with binaries that hold a server alone.
func (s *Server) Client(name string) (path string, ok bool) {
	if s.cluster == nil {
		return "", false
	}
	path = filepath.Join(s.cluster.bin, name)
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}
