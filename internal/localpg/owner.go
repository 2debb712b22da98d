package localpg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// databasePrefix begins the names of all test databases.
const databasePrefix = "fencerow_test_"

// ownerClass tells our advisory locks from other people's: "fenc".
const ownerClass = 0x66656e63

// owner names the databases of one test binary. On a server that others use
// too it holds, in a session of its own, an advisory lock with its number for
// as long as it lives: a database without such a lock is left over.
type owner struct {
	id   int32
	conn *pgx.Conn // nil on a server of our own
}

// newOwner makes an owner; on an existing server it first drops the databases
// of owners that are gone.
func newOwner(ctx context.Context, s *Server) (*owner, error) {
	o := &owner{id: rand.Int32()}
	if s.cluster != nil {
		return o, nil
	}
	conn, err := pgx.Connect(ctx, s.DSN(""))
	if err != nil {
		return nil, fmt.Errorf("connect to the PostgreSQL server: %w", err)
	}
	if err := o.lock(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("mark this run on the server: %w", err), conn.Close(ctx))
	}
	if err := dropLeftovers(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("drop the databases of killed runs: %w", err), conn.Close(ctx))
	}
	o.conn = conn
	return o, nil
}

func (o *owner) lock(ctx context.Context, conn *pgx.Conn) error {
	// The session says nothing for minutes while tests run.
	const patient = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"
	if _, err := conn.Exec(ctx, patient); err != nil {
		return err
	}
	for locked := false; !locked; {
		o.id = rand.Int32()
		err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1::int4, $2::int4)", ownerClass, o.id).Scan(&locked)
		if err != nil {
			return err
		}
	}
	return nil
}

// close gives the lock back.
func (o *owner) close(ctx context.Context) error {
	if o.conn == nil {
		return nil
	}
	return o.conn.Close(ctx)
}

// database returns the name of the owner's nth database. The process number
// is there for people.
func (o *owner) database(n int64) string {
	return fmt.Sprintf("%s%08x_%d_%d", databasePrefix, o.id, os.Getpid(), n)
}

// ownerOfDatabase reads the owner's number out of a name.
func ownerOfDatabase(name string) (int32, bool) {
	rest, ok := strings.CutPrefix(name, databasePrefix)
	id, _, more := strings.Cut(rest, "_")
	n, err := strconv.ParseUint(id, 16, 31)
	return int32(n), ok && more && err == nil && len(id) == 8
}

// dropLeftovers drops the test databases whose owner holds no lock any more.
// pg_locks shows the locks of sessions in all databases. Databases are listed
// first: whatever is seen there, its owner had the lock before.
//
// If somebody is connected, the owner has lost its session, not its life: such
// a database stays.
func dropLeftovers(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database d WHERE starts_with(datname, $1)
		AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datid = d.oid)`, databasePrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	rows, err = conn.Query(ctx, "SELECT objid::int8 FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::int8::oid AND objsubid = 2", int64(ownerClass))
	if err != nil {
		return err
	}
	owners, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	for _, name := range names {
		if id, ok := ownerOfDatabase(name); ok && !slices.Contains(owners, int64(id)) {
			// Without FORCE, and not our error: somebody may just connect, or
			// sweep like us, or have made it under another role.
			_, _ = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name))
		}
	}
	return ctx.Err()
}
