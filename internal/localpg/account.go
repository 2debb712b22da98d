package localpg

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is another user that the server runs as. A nil account is our own.
type account struct{ uid, gid int }

// serverAccount returns the account for a new server. PostgreSQL refuses to
// run as root, as tests in containers do, so root becomes somebody else.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &account{uid, gid}, nil
	}
	return nil, errors.New("postgres does not run as root, and there is neither a user postgres nor a user nobody: " +
		"run as an ordinary user, or set " + envURL + " to a running server")
}
